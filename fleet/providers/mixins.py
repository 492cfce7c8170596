"""What only some providers can do, as mixins beside the protocol."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import ClassVar

from fleet.providers.facts import Charge, Field, MachineOrder, OfferFound, Snapshot


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

    def installs_agent(self) -> bool:
        """Say whether a machine that is ordered now runs its start-up script by itself."""
        return self.runs_startup_script

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
