"""The protocol of a provider: what every one can do. Its facts and the mixins are told from here too, as one vocabulary."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import ClassVar, Final

import httpx
from django.utils.functional import Promise

from fleet.providers.facts import (
    PREPAID,
    TERM_HOURS,
    AccountCheck,
    Billing,
    Charge,
    Field,
    Keeps,
    Machine,
    MachineOrder,
    MachineStatus,
    OfferFound,
    Snapshot,
    Stock,
    StopEffect,
)
from fleet.providers.mixins import CanOrder, CanReboot, CanStop, HasBilling, HasOffers, HasSnapshots, HasSpot
from fleet.reasons import Reason
from panel.core import egress

__all__ = [
    "ABILITIES",
    "PREPAID",
    "TERM_HOURS",
    "AccountCheck",
    "Billing",
    "CanOrder",
    "CanReboot",
    "CanStop",
    "Charge",
    "Field",
    "HasBilling",
    "HasOffers",
    "HasSnapshots",
    "HasSpot",
    "Keeps",
    "Machine",
    "MachineOrder",
    "MachineStatus",
    "OfferFound",
    "Provider",
    "Snapshot",
    "Stock",
    "StopEffect",
    "abilities",
    "missing_fields",
    "order_options",
    "reason_of",
    "status_of",
]


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
    # Whether its machines only act as if they were there; their servers carry a badge that says so.
    is_simulated: ClassVar[bool] = False
    credential_fields: ClassVar[Sequence[Field]] = ()
    option_fields: ClassVar[Sequence[Field]] = ()
    docs_url: ClassVar[str] = ""
    # How long a machine that was created may be missing from the list before that means something.
    appears_within: ClassVar[timedelta] = timedelta(minutes=5)
    # Usual time from order to running, to begin with; measured times replace it.
    usual_boot: ClassVar[timedelta] = timedelta(minutes=5)
    boot_deadline: ClassVar[timedelta] = timedelta(minutes=30)
    # What goes on costing after a machine has ended, as one sentence; empty where nothing does.
    end_keeps: ClassVar[str | Promise] = ""

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
