"""What is billed, as the API shows it. Amounts are decimal text with their currency beside them; no secret is ever here."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from fleet.enums import PriceComponent, PriceUnit
from fleet.leasing.exchange import Joint
from fleet.models import Drift, ExchangeRate, Lease, LeasePrice, Offer, Operation, ProviderAccount
from fleet.providers.base import Billing
from fleet.reasons import REASON_WORDS, Reason
from panel.core.money import Money


def amount(places: int = 6, **options: Any) -> serializers.DecimalField:
    """Return a field for an amount of money of at most twelve digits before the point."""
    return serializers.DecimalField(max_digits=12 + places, decimal_places=places, **options)


class MoneySerializer(serializers.Serializer[Any]):
    """An amount in one currency (ISO 4217)."""

    amount = amount()
    currency = serializers.RegexField(r"^[A-Z]{3}$")

    def to_internal_value(self, data: Any) -> Any:
        """Return Money."""
        value = super().to_internal_value(data)
        return Money(value["amount"], value["currency"])


class ReasonedSerializer(serializers.Serializer[Any]):
    """A typed reason in words."""

    sentence = serializers.CharField()
    next_step = serializers.CharField()


def reason_words(reason: str) -> dict[str, str] | None:
    """Return the words of a reason, None when there is none."""
    if not reason or reason not in Reason.values:
        return None
    words = REASON_WORDS[Reason(reason)]
    return {"sentence": str(words.sentence), "next_step": str(words.next_step)}


class FieldSerializer(serializers.Serializer[Any]):
    """One thing that a provider asks for."""

    name = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # the name shadows the framework's own attribute
    is_secret = serializers.BooleanField()
    is_required = serializers.BooleanField()
    default = serializers.CharField(allow_blank=True)
    help = serializers.CharField(allow_blank=True)
    choices = serializers.DictField(child=serializers.CharField())


class ProviderSerializer(serializers.Serializer[Any]):
    """A kind of provider: what it can do and what an account there needs."""

    kind = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # the name shadows the framework's own attribute
    currency = serializers.CharField()
    abilities = serializers.ListField(child=serializers.CharField())
    credential_fields = FieldSerializer(many=True)
    option_fields = FieldSerializer(many=True)
    order_fields = FieldSerializer(many=True)
    docs_url = serializers.CharField(allow_blank=True)


class AccountSerializer(serializers.ModelSerializer[ProviderAccount]):
    """A billed login at a provider: never its key."""

    health_words = serializers.SerializerMethodField()
    last_error = serializers.DictField(read_only=True, help_text="reason, message, raw_code; empty when all is well.")
    permissions = serializers.DictField(
        child=serializers.BooleanField(allow_null=True), read_only=True, help_text="null: cannot be told beforehand."
    )
    options = serializers.DictField(child=serializers.CharField(), read_only=True)
    leases_open = serializers.IntegerField(read_only=True)
    drifts_open = serializers.IntegerField(read_only=True)

    class Meta:
        model = ProviderAccount
        fields = [
            "id",
            "name",
            "kind",
            "identity",
            "credential_hint",
            "options",
            "currency",
            "permissions",
            "health",
            "health_reason",
            "health_words",
            "balance",
            "balance_at",
            "is_adopting",
            "is_paused",
            "monthly_budget",
            "max_price_per_hour",
            "last_sync_at",
            "last_attempt_at",
            "last_error",
            "last_error_at",
            "failures",
            "next_sync_at",
            "offers_at",
            "leases_open",
            "drifts_open",
            "created_at",
            "created_by_name",
        ]
        read_only_fields = fields

    @extend_schema_field(ReasonedSerializer(allow_null=True))
    def get_health_words(self, account: ProviderAccount) -> dict[str, str] | None:
        """Return why the account is not asked, in words."""
        return reason_words(account.health_reason)


class OfferSerializer(serializers.ModelSerializer[Offer]):
    """What can be rented; prices that the vendor does not tell are null."""

    account_name = serializers.CharField(source="account.name", read_only=True)
    account_kind = serializers.CharField(source="account.kind", read_only=True)
    price_per_gpu = amount(read_only=True, allow_null=True, help_text="An hour of one GPU.")

    class Meta:
        model = Offer
        fields = [
            "id",
            "account",
            "account_name",
            "account_kind",
            "gpu_model",
            "raw_gpu",
            "gpu_count",
            "gpu_memory_bytes",
            "region",
            "billing",
            "currency",
            "price_per_hour",
            "price_per_gpu",
            "price_per_term",
            "price_stopped_per_hour",
            "stock",
            "stock_count",
            "cpu_count",
            "memory_bytes",
            "disk_bytes",
            "fetched_at",
        ]
        read_only_fields = fields


class PriceSerializer(serializers.ModelSerializer[LeasePrice]):
    """One part of a price while it is in force."""

    class Meta:
        model = LeasePrice
        fields = [
            "component",
            "amount",
            "currency",
            "unit",
            "runs_while_stopped",
            "effective_from",
            "effective_to",
            "source",
        ]
        read_only_fields = fields


class LeaseSerializer(serializers.ModelSerializer[Lease]):
    """The billed thing, open until the provider confirms that it is gone."""

    account_name = serializers.CharField(source="account.name", read_only=True, allow_null=True, default=None)
    server_name = serializers.CharField(source="server.name", read_only=True, allow_null=True, default=None)
    state_words = serializers.SerializerMethodField()
    spec = serializers.DictField(read_only=True, help_text="What was ordered or agreed.")
    observed = serializers.DictField(read_only=True, help_text="What the provider says of it.")
    title = serializers.CharField(
        read_only=True, help_text="What people call it: its server's name, or the name that was typed in."
    )
    prices = PriceSerializer(source="prices_in_force", many=True, read_only=True, help_text="In force now.")
    prices_coming = PriceSerializer(many=True, read_only=True, help_text="Agreed on; each counts from effective_from.")

    class Meta:
        model = Lease
        fields = [
            "id",
            "name",
            "title",
            "account",
            "account_name",
            "server",
            "server_name",
            "external_id",
            "origin",
            "wanted",
            "state",
            "state_reason",
            "state_words",
            "state_detail",
            "state_changed_at",
            "status",
            "raw_status",
            "observed_at",
            "observed",
            "spec",
            "region",
            "billing",
            "is_stop_saving",
            "prices",
            "prices_coming",
            "landlord",
            "notes",
            "renews_at",
            "is_renewing",
            "reminder_days",
            "step_seconds",
            "least_seconds",
            "free_seconds",
            "requested_at",
            "started_at",
            "termination_requested_at",
            "termination_attempts",
            "ended_at",
        ]
        read_only_fields = fields

    @extend_schema_field(ReasonedSerializer(allow_null=True))
    def get_state_words(self, lease: Lease) -> dict[str, str] | None:
        """Return the reason of the state in words."""
        return reason_words(lease.state_reason)


class StepSerializer(serializers.Serializer[Any]):
    """One step of an operation."""

    name = serializers.CharField()
    state = serializers.ChoiceField(choices=["waiting", "running", "done", "failed"])
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    detail = serializers.CharField(allow_blank=True)


class OperationSerializer(serializers.ModelSerializer[Operation]):
    """A long call to a provider, with its steps."""

    reason_words = serializers.SerializerMethodField()
    steps = StepSerializer(many=True, read_only=True)
    request = serializers.DictField(read_only=True)
    result = serializers.DictField(read_only=True)
    lease_name = serializers.CharField(source="lease.name", read_only=True, allow_null=True, default=None)
    account_name = serializers.CharField(source="account.name", read_only=True, allow_null=True, default=None)

    class Meta:
        model = Operation
        fields = [
            "id",
            "kind",
            "state",
            "reason",
            "reason_words",
            "detail",
            "account",
            "account_name",
            "lease",
            "lease_name",
            "server",
            "request",
            "result",
            "steps",
            "actor_name",
            "attempts",
            "created_at",
            "started_at",
            "ended_at",
            "deadline_at",
        ]
        read_only_fields = fields

    @extend_schema_field(ReasonedSerializer(allow_null=True))
    def get_reason_words(self, operation: Operation) -> dict[str, str] | None:
        """Return why it failed, in words."""
        return reason_words(operation.reason)


class DriftSerializer(serializers.ModelSerializer[Drift]):
    """One way in which panel and provider differ."""

    account_name = serializers.CharField(source="account.name", read_only=True)
    found = serializers.DictField(read_only=True)
    expected = serializers.DictField(read_only=True)

    class Meta:
        model = Drift
        fields = [
            "id",
            "account",
            "account_name",
            "lease",
            "kind",
            "external_id",
            "name",
            "found",
            "expected",
            "cost_per_hour",
            "currency",
            "first_seen_at",
            "last_seen_at",
            "resolved_at",
            "resolution",
            "ignored_until",
            "ignored_by_name",
        ]
        read_only_fields = fields


class ExchangeRateSerializer(serializers.ModelSerializer[ExchangeRate]):
    """One `base` is `rate` `quote` from a day on."""

    class Meta:
        model = ExchangeRate
        fields = ["id", "base", "quote", "rate", "effective_on", "entered_at", "entered_by_name"]
        read_only_fields = fields


class PartSerializer(serializers.Serializer[Any]):
    """One part of a price, as typed in."""

    component = serializers.ChoiceField(choices=PriceComponent.choices, default=PriceComponent.COMPUTE)
    amount = amount(min_value=0)
    currency = serializers.RegexField(r"^[A-Z]{3}$")
    unit = serializers.ChoiceField(choices=PriceUnit.choices)
    runs_while_stopped = serializers.BooleanField(default=True)


class RateUsedSerializer(serializers.Serializer[Any]):
    """An exchange rate that a sum rests on: one `base` is `rate` `quote` from a day on."""

    base = serializers.CharField()
    quote = serializers.CharField()
    rate = serializers.DecimalField(max_digits=18, decimal_places=8)
    effective_on = serializers.DateField()


class JointSerializer(serializers.Serializer[Any]):
    """Sums of several currencies as one, by the rates that are listed with it."""

    total = MoneySerializer()
    rates = RateUsedSerializer(many=True)


def joint_shown(found: Joint | None) -> dict[str, Any] | None:
    """Return a joint total as the API shows it."""
    return None if found is None else {"total": found.total.rounded(), "rates": found.rates}


class CostSerializer(serializers.Serializer[Any]):
    """What a lease cost in a time: each currency by itself."""

    start = serializers.DateTimeField()
    end = serializers.DateTimeField()
    totals = MoneySerializer(many=True)
    joint = JointSerializer(
        allow_null=True, help_text="All in one currency; null for one currency, or where a rate is missing."
    )
    hours = serializers.DecimalField(max_digits=18, decimal_places=6, help_text="Billed hours.")
    unknown_hours = serializers.DecimalField(
        max_digits=18, decimal_places=6, help_text="Billed hours without a known price; they are in no total."
    )


class ChoiceSerializer(serializers.Serializer[Any]):
    """One way to have paid."""

    billing = serializers.ChoiceField(choices=Billing.choices)
    cost = MoneySerializer()


class BreakEvenSerializer(serializers.Serializer[Any]):
    """Ways of paying compared by the hours billed in the last 30 days."""

    used_hours = serializers.DecimalField(max_digits=18, decimal_places=6)
    break_even_hours = serializers.DecimalField(
        max_digits=18, decimal_places=6, allow_null=True, help_text="A month is cheaper from so many billed hours on."
    )
    choices = ChoiceSerializer(many=True, help_text="Cheapest first.")
    saving = MoneySerializer(allow_null=True)
