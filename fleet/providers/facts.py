"""What providers and panel tell each other: machines, offers, orders, charges, and the words for their states."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal

from django.db import models
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

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
