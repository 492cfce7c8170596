"""What is billed: accounts at providers, what they offer, the leases taken there, and where panel and provider differ."""

from datetime import datetime

from django.db import models
from django.db.models.functions import Lower

from fleet.enums import (
    AccountHealth,
    BilledMode,
    DriftKind,
    DriftResolution,
    LeaseOrigin,
    LeaseState,
    PriceComponent,
    PriceUnit,
    Wanted,
)
from fleet.models.machines import Server
from fleet.providers.base import Billing, MachineStatus, Stock
from fleet.reasons import Reason
from panel.core.clock import now
from panel.core.crypto import EncryptedTextField


class ProviderAccount(models.Model):
    """One billed login at a provider. Removed only when no lease is open; the row stays for the history of its leases.

    credentials: JSON of the provider's credential fields; wiped on removal. credential_hint: what may be shown of them.
    options: the provider's option fields (base address, regions). permissions: ability → true, false, null (not told).
    claim: of the process that syncs it now, until claimed_until. failures: syncs in a row that failed.
    monthly_budget and max_price_per_hour are in `currency`; null means no guard.
    """

    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=32)
    credentials = EncryptedTextField(blank=True, default="")
    credential_hint = models.CharField(max_length=64, blank=True, default="")
    options = models.JSONField(default=dict, blank=True)
    currency = models.CharField(max_length=3)
    identity = models.CharField(max_length=200, blank=True, default="")
    permissions = models.JSONField(default=dict)
    health = models.CharField(max_length=16, choices=AccountHealth.choices, default=AccountHealth.NEW)
    health_reason = models.CharField(max_length=32, choices=Reason.choices, blank=True, default="")
    balance = models.DecimalField(max_digits=18, decimal_places=6, null=True)
    balance_at = models.DateTimeField(null=True)
    is_adopting = models.BooleanField(default=False)
    is_paused = models.BooleanField(default=False)
    monthly_budget = models.DecimalField(max_digits=18, decimal_places=6, null=True)
    max_price_per_hour = models.DecimalField(max_digits=18, decimal_places=6, null=True)
    last_sync_at = models.DateTimeField(null=True)
    last_attempt_at = models.DateTimeField(null=True)
    last_error = models.JSONField(default=dict)
    last_error_at = models.DateTimeField(null=True)
    failures = models.PositiveIntegerField(default=0)
    next_sync_at = models.DateTimeField()
    offers_at = models.DateTimeField(null=True)
    next_offers_at = models.DateTimeField(null=True)
    claim = models.UUIDField(null=True)
    claimed_until = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    created_by_name = models.CharField(max_length=200)
    removed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(Lower("name"), condition=models.Q(removed_at=None), name="account_name_unique"),
            models.CheckConstraint(condition=models.Q(health__in=AccountHealth.values), name="account_health_known"),
        ]

    def __str__(self) -> str:
        return self.name


class Offer(models.Model):
    """What an account could rent at `fetched_at`; the rows of an account are replaced by each fetch.

    Prices are null where the vendor told none. gpu_memory_bytes: of one card. stock_count: machines.
    """

    account = models.ForeignKey(ProviderAccount, on_delete=models.CASCADE, related_name="offers")
    key = models.CharField(max_length=200)
    gpu_model = models.CharField(max_length=64, blank=True, default="")
    raw_gpu = models.CharField(max_length=100, blank=True, default="")
    gpu_count = models.PositiveSmallIntegerField()
    gpu_memory_bytes = models.BigIntegerField(null=True)
    region = models.CharField(max_length=64, blank=True, default="")
    billing = models.CharField(max_length=16, choices=Billing.choices)
    currency = models.CharField(max_length=3)
    price_per_hour = models.DecimalField(max_digits=18, decimal_places=6, null=True)
    price_per_term = models.DecimalField(max_digits=18, decimal_places=6, null=True)
    price_stopped_per_hour = models.DecimalField(max_digits=18, decimal_places=6, null=True)
    stock = models.CharField(max_length=16, choices=Stock.choices, default=Stock.UNKNOWN)
    stock_count = models.PositiveIntegerField(null=True)
    cpu_count = models.PositiveIntegerField(null=True)
    memory_bytes = models.BigIntegerField(null=True)
    disk_bytes = models.BigIntegerField(null=True)
    details = models.JSONField(default=dict)
    fetched_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["account", "key"], name="offer_unique_in_account")]
        indexes = [models.Index(fields=["gpu_model", "price_per_hour"], name="offer_by_model")]

    def __str__(self) -> str:
        return f"{self.gpu_count} × {self.gpu_model or self.raw_gpu} {self.region}"


class TimeTerms(models.Model):
    """How the time of a run is counted (`fleet.leasing.terms`): agreed on a lease, kept with each of its runs."""

    step_seconds = models.PositiveIntegerField(default=1)
    least_seconds = models.PositiveIntegerField(default=0)
    free_seconds = models.PositiveIntegerField(default=0)

    class Meta:
        abstract = True


class Lease(TimeTerms):
    """The billed thing. Open until the provider confirms that it is gone (`ended_at`), whatever its state says before.

    name: given to the provider as name or tag, `fleetdeck-<install>-<id>`; of found machines the provider's own name.
    external_id: empty until the provider has told it; of an account's open leases one has it, since some give ids again.
    wanted: what people want it to be (spec); state: what it is (status); raw_status, observed, observed_at: the provider's
    last word. misses: complete listings in a row without it.
    spec: what was ordered or typed in {gpu_model, gpu_count, gpu_memory_bytes, cpu_count, memory_bytes, …}.
    create_sent_at: when a create was last sent, create_settled_at: when its outcome became known; until then
    sealed_order keeps what was sent, with its join token, and lookups counts the searches for its machine.
    renews_at: end of the paid term, reminded_for: the last one that people were told of.
    expects_agent: an agent was installed with the order, so running is not yet active.
    """

    account = models.ForeignKey(ProviderAccount, on_delete=models.PROTECT, null=True, related_name="leases")
    server = models.ForeignKey(Server, on_delete=models.SET_NULL, null=True, related_name="leases")
    name = models.CharField(max_length=200)
    external_id = models.CharField(max_length=200, blank=True, default="")
    origin = models.CharField(max_length=16, choices=LeaseOrigin.choices)
    wanted = models.CharField(max_length=16, choices=Wanted.choices, default=Wanted.RUNNING)
    state = models.CharField(max_length=32, choices=LeaseState.choices)
    state_reason = models.CharField(max_length=32, choices=Reason.choices, blank=True, default="")
    state_detail = models.CharField(max_length=500, blank=True, default="")
    state_changed_at = models.DateTimeField()
    version = models.PositiveIntegerField(default=0)
    status = models.CharField(max_length=16, choices=MachineStatus.choices, default=MachineStatus.UNKNOWN)
    raw_status = models.CharField(max_length=100, blank=True, default="")
    observed = models.JSONField(default=dict)
    observed_at = models.DateTimeField(null=True)
    misses = models.PositiveSmallIntegerField(default=0)
    is_stop_saving = models.BooleanField(null=True)
    spec = models.JSONField(default=dict)
    region = models.CharField(max_length=64, blank=True, default="")
    billing = models.CharField(max_length=16, choices=Billing.choices)
    expects_agent = models.BooleanField(default=False)
    landlord = models.CharField(max_length=100, blank=True, default="")
    notes = models.TextField(blank=True, default="")
    renews_at = models.DateTimeField(null=True)
    is_renewing = models.BooleanField(default=False)
    reminder_days = models.PositiveSmallIntegerField(default=7)
    reminded_for = models.DateTimeField(null=True)
    requested_at = models.DateTimeField()
    create_sent_at = models.DateTimeField(null=True)
    create_settled_at = models.DateTimeField(null=True)
    sealed_order = EncryptedTextField(blank=True, default="")
    lookups = models.PositiveIntegerField(default=0)
    started_at = models.DateTimeField(null=True)
    termination_requested_at = models.DateTimeField(null=True)
    termination_attempts = models.PositiveIntegerField(default=0)
    termination_accepted_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    next_step_at = models.DateTimeField(null=True)
    claim = models.UUIDField(null=True)
    claimed_until = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["account", "external_id"],
                condition=~models.Q(external_id="") & models.Q(ended_at=None),
                name="lease_unique_at_provider",
            ),
            models.UniqueConstraint(
                fields=["server"],
                condition=models.Q(ended_at=None, server__isnull=False),
                name="lease_one_open_for_server",
            ),
            models.CheckConstraint(condition=models.Q(state__in=LeaseState.values), name="lease_state_known"),
            models.CheckConstraint(condition=models.Q(wanted__in=Wanted.values), name="lease_wanted_known"),
        ]
        indexes = [
            models.Index(fields=["next_step_at"], condition=models.Q(ended_at=None), name="lease_next_step"),
            models.Index(fields=["account"], condition=models.Q(ended_at=None), name="lease_open"),
        ]

    def __str__(self) -> str:
        return self.name

    def _prices_not_over(self) -> "list[LeasePrice]":
        read: list[LeasePrice] = vars(self)["prices_not_over"]  # read along by fleet.selectors.leasing.with_prices
        return read

    @property
    def prices_in_force(self) -> "list[LeasePrice]":
        """Return the parts of the price that count now."""
        at = now()
        return [price for price in self._prices_not_over() if price.effective_from <= at]

    @property
    def prices_coming(self) -> "list[LeasePrice]":
        """Return the parts that are agreed on and count later, each from its `effective_from` on."""
        at = now()
        return sorted(
            (price for price in self._prices_not_over() if price.effective_from > at),
            key=lambda each: each.effective_from,
        )

    @property
    def title(self) -> str:
        """Return what people call it: the name that one of them gave, else its server's, else that at the provider."""
        if self.origin == LeaseOrigin.TYPED or self.server is None:
            return self.name
        return self.server.name


class LeasePriceQuerySet(models.QuerySet["LeasePrice"]):
    """Parts of prices by time."""

    def not_over(self, at: datetime) -> "LeasePriceQuerySet":
        """Return what counts at a time or is to count later; what a later change took the place of never does."""
        later = models.Q(effective_to__gt=at) & models.Q(effective_to__gt=models.F("effective_from"))
        return self.filter(models.Q(effective_to=None) | later)

    def in_force(self, at: datetime) -> "LeasePriceQuerySet":
        """Return what counts at a time."""
        return self.not_over(at).filter(effective_from__lte=at)


class LeasePrice(models.Model):
    """One part of a lease's price from `effective_from` on; a later price is a new row, history is never re-priced.

    amount: in `currency` for one `unit`, whole machine. runs_while_stopped: goes on costing while the machine is stopped.
    effective_to: null where no later price is known. source: offer, provider (read back), person.
    """

    lease = models.ForeignKey(Lease, on_delete=models.CASCADE, related_name="prices")
    component = models.CharField(max_length=16, choices=PriceComponent.choices, default=PriceComponent.COMPUTE)
    amount = models.DecimalField(max_digits=18, decimal_places=6)
    currency = models.CharField(max_length=3)
    unit = models.CharField(max_length=8, choices=PriceUnit.choices)
    runs_while_stopped = models.BooleanField(default=False)
    effective_from = models.DateTimeField()
    effective_to = models.DateTimeField(null=True)
    source = models.CharField(max_length=16)
    noted_at = models.DateTimeField()

    objects = LeasePriceQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["lease", "component"],
                condition=models.Q(effective_to=None),
                name="leaseprice_one_in_force",
            ),
            models.CheckConstraint(
                condition=models.Q(effective_to=None) | models.Q(effective_to__gte=models.F("effective_from")),
                name="leaseprice_forward",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.component} {self.amount} {self.currency}/{self.unit}"


class BilledInterval(TimeTerms):
    """A stretch of time in which a lease was billed in one mode, as the provider told or as must be assumed.

    ended_at: null while it runs. is_confirmed: its end was told by the provider, not assumed. Its terms are those of the lease
    when it began: what was billed is not counted anew by later ones.
    """

    lease = models.ForeignKey(Lease, on_delete=models.CASCADE, related_name="intervals")
    mode = models.CharField(max_length=16, choices=BilledMode.choices)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    is_confirmed = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["lease"], condition=models.Q(ended_at=None), name="billedinterval_one_running"
            ),
            models.CheckConstraint(
                condition=models.Q(ended_at=None) | models.Q(ended_at__gte=models.F("started_at")),
                name="billedinterval_forward",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.mode} from {self.started_at:%Y-%m-%d %H:%M}"


class Drift(models.Model):
    """One way in which panel and provider differ, open until `resolved_at`.

    lease: null for a machine that is unknown to us. found, expected: JSON-ready facts. cost_per_hour: null when not told.
    ignored_until: not shown as open before then.
    """

    account = models.ForeignKey(ProviderAccount, on_delete=models.CASCADE, related_name="drifts")
    lease = models.ForeignKey(Lease, on_delete=models.CASCADE, null=True, related_name="drifts")
    kind = models.CharField(max_length=32, choices=DriftKind.choices)
    external_id = models.CharField(max_length=200)
    name = models.CharField(max_length=200, blank=True, default="")
    found = models.JSONField(default=dict)
    expected = models.JSONField(default=dict)
    cost_per_hour = models.DecimalField(max_digits=18, decimal_places=6, null=True)
    currency = models.CharField(max_length=3, blank=True, default="")
    first_seen_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    resolved_at = models.DateTimeField(null=True)
    resolution = models.CharField(max_length=16, choices=DriftResolution.choices, blank=True, default="")
    ignored_until = models.DateTimeField(null=True)
    ignored_by_name = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["account", "kind", "external_id"],
                condition=models.Q(resolved_at=None),
                name="drift_one_open",
            ),
            models.CheckConstraint(condition=models.Q(kind__in=DriftKind.values), name="drift_kind_known"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.external_id}"


class ExchangeRate(models.Model):
    """A rate that a person entered: one `base` is `rate` `quote` from `effective_on` on. Without one, sums stay apart."""

    base = models.CharField(max_length=3)
    quote = models.CharField(max_length=3)
    rate = models.DecimalField(max_digits=18, decimal_places=8)
    effective_on = models.DateField()
    entered_at = models.DateTimeField()
    entered_by_name = models.CharField(max_length=200)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["base", "quote", "effective_on"], name="exchangerate_one_a_day"),
            models.CheckConstraint(condition=models.Q(rate__gt=0), name="exchangerate_positive"),
        ]

    def __str__(self) -> str:
        return f"1 {self.base} = {self.rate} {self.quote}"
