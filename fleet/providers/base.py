"""The protocol of a provider: what every one can do, and mixins for what only some can."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final, Literal

import httpx
from django.db import models
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from fleet.reasons import Reason
from panel.core import egress
from panel.core.money import Money


class MachineStatus(models.TextChoices):
    """What a provider says of a machine, in our words; the provider's own word is kept beside it."""

    PROVISIONING = "provisioning", _("Provisioning")
    RUNNING = "running", _("Running")
    STOPPING = "stopping", _("Stopping")
    STOPPED = "stopped", _("Stopped")
    LOCKED = "locked", _("Locked")  # by the provider: arrears, security, expiry
    PREEMPTED = "preempted", _("Preempted")
    FAILED = "failed", _("Failed")
    TERMINATING = "terminating", _("Terminating")
    GONE = "gone", _("Gone")
    UNKNOWN = "unknown", _("Unknown")


class Billing(models.TextChoices):
    """How a machine is paid for."""

    HOURLY = "hourly", _("Hourly")
    DAILY = "daily", _("Daily")
    WEEKLY = "weekly", _("Weekly")
    MONTHLY = "monthly", _("Monthly")
    YEARLY = "yearly", _("Yearly")
    SPOT = "spot", _("Spot")
    OWNED = "owned", _("Owned")


PREPAID: Final = frozenset({Billing.DAILY, Billing.WEEKLY, Billing.MONTHLY, Billing.YEARLY})
# Over how many hours a term's price is spread to compare it with others: a month is a twelfth of 365 days.
TERM_HOURS: Final = {Billing.DAILY: 24, Billing.WEEKLY: 168, Billing.MONTHLY: 730, Billing.YEARLY: 8760}


class Stock(models.TextChoices):
    """How much of an offer there is."""

    HIGH = "high", _("Plenty")
    MEDIUM = "medium", _("Some")
    LOW = "low", _("Few")
    NONE = "none", _("Sold out")
    UNKNOWN = "unknown", _("Not told")


@dataclass(frozen=True, kw_only=True, slots=True)
class Field:
    """One thing a person types in: a credential, or an option of an account or of an order.

    is_secret: stored encrypted, never shown again. choices: value → label; empty for free text.
    """

    name: str
    label: str | Promise
    is_secret: bool = False
    is_required: bool = True
    default: str = ""
    help: str | Promise = ""
    choices: Mapping[str, str | Promise] = field(default_factory=dict)
    max_length: int = 4096


@dataclass(frozen=True, kw_only=True, slots=True)
class AccountCheck:
    """What a live check of a key found.

    identity: who the key belongs to, as the provider names it. permissions: what it may do, by name of the ability
    ("list", "order", "billing"); None when it cannot be told without doing it. balance: None where the API has none.
    """

    identity: str = ""
    permissions: Mapping[str, bool | None] = field(default_factory=dict)
    balance: Money | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """One machine as the provider tells of it: what is billed.

    name: what we gave it at creation (or the provider's name). price_per_hour: for the whole machine as it is billed now
    while it runs; None when the provider tells none. gpu_memory_bytes: of one card. created_at: None where the API has
    none. renews_at: the end of the paid term. actions: what the provider allows now, None when it does not say.
    details: JSON-ready facts of this provider, cleaned of secrets.
    """

    external_id: str
    name: str
    status: MachineStatus
    raw_status: str
    gpu_model: str = ""
    raw_gpu: str = ""
    gpu_count: int | None = None
    gpu_memory_bytes: int | None = None
    cpu_count: int | None = None
    memory_bytes: int | None = None
    region: str = ""
    billing: Billing = Billing.HOURLY
    price_per_hour: Money | None = None
    price_stopped_per_hour: Money | None = None
    address: str = ""
    ssh_port: int | None = None
    created_at: datetime | None = None
    renews_at: datetime | None = None
    is_stop_saving: bool | None = None
    actions: frozenset[str] | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class OfferFound:
    """What can be rented now.

    key: unique within the account; names the same thing in the next fetch. price_per_hour: the whole machine, also for
    terms (the term's price over its hours is for comparing; price and term are what is paid). None when not told.
    stock_count: machines free, when told. details: what `create` needs beside the key; JSON-ready.
    """

    key: str
    gpu_model: str
    raw_gpu: str
    gpu_count: int
    gpu_memory_bytes: int | None = None
    region: str = ""
    billing: Billing = Billing.HOURLY
    price_per_hour: Money | None = None
    price_per_term: Money | None = None
    price_stopped_per_hour: Money | None = None
    stock: Stock = Stock.UNKNOWN
    stock_count: int | None = None
    cpu_count: int | None = None
    memory_bytes: int | None = None
    disk_bytes: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineOrder:
    """What is ordered.

    name: `fleetdeck-<install>-<id>`, by which the machine is found again; also the client token where the provider takes
    one. startup_script: shell text that the machine runs at its first start. max_price_per_hour: also the bid for spot.
    options: values of the provider's `order_fields`.
    """

    name: str
    offer_key: str
    gpu_model: str
    gpu_count: int
    region: str
    billing: Billing
    details: Mapping[str, Any]
    options: Mapping[str, str]
    startup_script: str
    max_price_per_hour: Money | None = None


Keeps = Literal["disk", "address", "everything", "nothing"]


@dataclass(frozen=True, kw_only=True, slots=True)
class StopEffect:
    """What stopping a machine changes on the bill.

    saves_compute: None when it depends or is not known. keeps_billing: what goes on costing ("disk", "address",
    "everything"). loses: what may be lost. note: one sentence for the confirm.
    """

    saves_compute: bool | None
    keeps_billing: Sequence[Keeps]
    note: str | Promise


@dataclass(frozen=True, kw_only=True, slots=True)
class Charge:
    """One line of the provider's own account of what was billed. external_id: of the machine, "" for the account."""

    external_id: str
    start: datetime
    end: datetime
    amount: Money
    kind: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """A saved disk or image from which a machine can be ordered again. is_ready: it is saved as a whole."""

    external_id: str
    name: str
    status: str
    is_ready: bool
    created_at: datetime | None = None
    size_bytes: int | None = None


class Provider(ABC):
    """One account at one provider. Every method may raise a fleet.providers.errors.ProviderError.

    Methods are plain calls over HTTP; none retries, sleeps long, or touches the database. The next round of
    reconciliation repeats what did not work.

    credentials, options: values of the provider's fields. account: a name for spacing calls. transport: for tests.
    """

    kind: ClassVar[str]
    label: ClassVar[str | Promise]
    currency: ClassVar[str]
    is_synced: ClassVar[bool] = True
    credential_fields: ClassVar[Sequence[Field]] = ()
    option_fields: ClassVar[Sequence[Field]] = ()
    docs_url: ClassVar[str] = ""
    # How long a machine that was created may be missing from the list before that means something.
    appears_within: ClassVar[timedelta] = timedelta(minutes=5)
    # Usual time from order to running, to begin with; measured times replace it.
    usual_boot: ClassVar[timedelta] = timedelta(minutes=5)
    boot_deadline: ClassVar[timedelta] = timedelta(minutes=30)

    def __init__(
        self,
        *,
        credentials: Mapping[str, str],
        options: Mapping[str, str],
        account: str = "",
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.credentials = dict(credentials)
        self.options = {each.name: options.get(each.name) or each.default for each in self.option_fields}
        self.account = account
        secrets = (self.credentials.get(each.name, "") for each in self.credential_fields if each.is_secret)
        self.transport: httpx.BaseTransport = egress.Forgetful(transport, secrets)

    @abstractmethod
    def check(self) -> AccountCheck:
        """Ask the provider who the key is and what it may do, changing nothing. Raises AccessRefused."""

    @classmethod
    def login_of(cls, identity: str) -> str:
        """Return what of `AccountCheck.identity` names the login that is billed: the same for all its keys. Pure."""
        return identity

    @abstractmethod
    def machines(self) -> list[Machine]:
        """Return every machine of the account, all pages: raises rather than returning a part."""

    @abstractmethod
    def machine(self, external_id: str) -> Machine | None:
        """Return one machine, None when the provider does not know it (any more)."""

    @abstractmethod
    def stop_effect(self, billing: Billing) -> StopEffect:
        """Say what stopping a machine paid in this way changes on the bill. Pure."""

    def named(self, name: str) -> list[Machine]:
        """Return the machines that carry a name which we gave. More than one means that something created it twice."""
        return [machine for machine in self.machines() if machine.name == name]


class HasOffers(ABC):
    """The provider lists what can be rented."""

    @abstractmethod
    def offers(self) -> list[OfferFound]:
        """Return everything on offer, GPUs only. Raises rather than returning a part."""


class CanOrder(HasOffers):
    """The provider creates and ends machines by API."""

    order_fields: ClassVar[Sequence[Field]] = ()
    # Whether the provider itself refuses to create twice for one client token, so that a lost create may be sent again.
    has_client_token: ClassVar[bool] = False
    # For how long after the first create the token is relied on. Where the vendor does not say how long it keeps tokens,
    # this is far below what others keep them (hours to days).
    client_token_lifetime: ClassVar[timedelta] = timedelta(minutes=10)
    # Whether a new machine runs `startup_script` by itself; where not, a person runs the join line on it.
    runs_startup_script: ClassVar[bool] = True

    @abstractmethod
    def create(self, order: MachineOrder) -> str:
        """Order one machine and return its external id.

        Raises Refused (with the reason), Throttled, AccessRefused when nothing was created; OutcomeUnknown when it may
        have been.
        """

    @abstractmethod
    def terminate(self, external_id: str) -> None:
        """End a machine for good; its disks too where they would go on costing money. Not found is a success.

        Returns when the provider has taken the request; that it is gone is seen by `machine`.
        """

    def order_choices(self, name: str) -> Mapping[str, str]:  # noqa: ARG002 (for those that have some)
        """Return what the account has for an order field without fixed choices (images, SSH keys); {} for free text."""
        return {}


class CanReboot(ABC):
    """The provider restarts machines."""

    @abstractmethod
    def reboot(self, external_id: str) -> None:
        """Restart a machine; its disks stay."""


class CanStop(ABC):
    """The provider stops and starts machines; whether that saves money, `Provider.stop_effect` says."""

    @abstractmethod
    def start(self, external_id: str) -> None:
        """Start a stopped machine. May be Refused with NO_CAPACITY: a stopped machine's cards are not kept everywhere."""

    @abstractmethod
    def stop(self, external_id: str) -> None:
        """Stop a machine in the mode that saves most. What it really saves is read back as `Machine.is_stop_saving`."""


class HasSnapshots(ABC):
    """The provider saves a machine's disk."""

    @abstractmethod
    def snapshots(self) -> list[Snapshot]:
        """Return the account's snapshots."""

    @abstractmethod
    def snapshot(self, external_id: str, name: str) -> str:
        """Begin saving a machine's disk; return the snapshot's id."""


class HasSpot:
    """The provider has machines that it may take back; offers of that kind carry Billing.SPOT."""

    preemption_notice: ClassVar[timedelta | None] = None


class HasBilling(ABC):
    """The provider tells what it billed."""

    @abstractmethod
    def charges(self, *, start: datetime, end: datetime) -> list[Charge]:
        """Return what was billed in [start, end), by machine where the API has it."""


ABILITIES: Final[Mapping[str, type]] = {
    "offers": HasOffers,
    "order": CanOrder,
    "reboot": CanReboot,
    "stop": CanStop,
    "snapshots": HasSnapshots,
    "spot": HasSpot,
    "billing": HasBilling,
}


def abilities(provider: type[Provider] | Provider) -> frozenset[str]:
    """Return the names of what a provider can do beside listing machines."""
    kind = provider if isinstance(provider, type) else type(provider)
    return frozenset(name for name, mixin in ABILITIES.items() if issubclass(kind, mixin))


def status_of(raw: str | None, table: Mapping[str, MachineStatus]) -> MachineStatus:
    """Return our word for a provider's; a word that is not in the table is UNKNOWN and never an error."""
    return table.get((raw or "").strip(), MachineStatus.UNKNOWN)


def reason_of(text: str, table: Sequence[tuple[str, Reason]], otherwise: Reason) -> Reason:
    """Return the reason of the first fragment found in a provider's code or sentence, compared without case."""
    lowered = text.lower()
    return next((reason for fragment, reason in table if fragment.lower() in lowered), otherwise)


def missing_fields(fields: Sequence[Field], values: Mapping[str, str]) -> Collection[str]:
    """Return the names of required fields that have no value."""
    return [each.name for each in fields if each.is_required and not (values.get(each.name) or each.default).strip()]


def order_options(provider: CanOrder, order: MachineOrder) -> dict[str, str]:
    """Return the value of every order field: what was given, else its default."""
    return {each.name: order.options.get(each.name) or each.default for each in provider.order_fields}
