"""What clouds with regions have in common: a server for each region, ids that name the region, users named by an ARN.

Every list is of all the account's regions or none: a part of it would say that machines are gone.
"""

import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar

from fleet.providers.base import (
    CanOrder,
    CanReboot,
    CanStop,
    HasSnapshots,
    HasSpot,
    Machine,
    MachineOrder,
    Provider,
    Snapshot,
)
from fleet.providers.errors import NotThere
from fleet.providers.regions import global_id, local_id, region_list

# acs:ram::1234567890:user/panel, qcs::cam::uin/100000000001:uin/100000000002: the account stands first, then its user.
_ACCOUNT: Final = re.compile(r"\d{4,}")


class RegionalClient(Protocol):
    """The calls that every such cloud has, to the server of one region."""

    def instance(self, region: str, instance_id: str) -> dict[str, Any] | None:
        """Return one instance, None when the region does not know it."""

    def start(self, region: str, instance_id: str) -> None:
        """Start a stopped instance."""

    def stop(self, region: str, instance_id: str, stopped_mode: str) -> None:
        """Stop an instance in a mode that says what goes on costing."""

    def reboot(self, region: str, instance_id: str) -> None:
        """Restart an instance."""

    def create_image(self, region: str, instance_id: str, name: str) -> str:
        """Begin saving an instance as an image; return the image's id."""


ClientT = TypeVar("ClientT", bound=RegionalClient)


class RegionalCloud(Provider, CanOrder, CanReboot, CanStop, HasSnapshots, HasSpot, Generic[ClientT]):
    """Instances of one account in the regions that its option `regions` names."""

    has_client_token: ClassVar[bool] = True
    image_name_length: ClassVar[int] = 128

    @classmethod
    def login_of(cls, identity: str) -> str:
        """See Provider: the number of the account, which all its users and roles share."""
        found = _ACCOUNT.search(identity)
        return found[0] if found else identity

    @abstractmethod
    def _client(self) -> ClientT:
        """Return the calls, signed with the account's key."""

    @abstractmethod
    def _machine(self, instance: Mapping[str, Any], region: str) -> Machine:
        """Return an instance of a region as a machine. Pure."""

    @abstractmethod
    def _instances(self, client: ClientT, region: str, *, name: str = "") -> Iterable[Mapping[str, Any]]:
        """Return a region's instances, all pages; with a name those that the cloud finds for it."""

    @abstractmethod
    def _run(self, client: ClientT, region: str, order: MachineOrder) -> str:
        """Order one instance and return its id in its region; the order's name is the client token too."""

    @abstractmethod
    def _stopped_mode(self, instance: Mapping[str, Any]) -> str:
        """Return the mode that saves most for an instance. Pure."""

    @abstractmethod
    def _choices(self, client: ClientT, region: str, name: str) -> Iterable[tuple[str, str, str]]:
        """Return (id, label, place) of everything in a region for one order field; nothing for fields that are typed."""

    @abstractmethod
    def _images(self, client: ClientT, region: str) -> Iterable[Snapshot]:
        """Return the account's own images in a region, also those that are still being saved."""

    def _regions(self) -> list[str]:
        return list(region_list(self.options["regions"]))

    def machines(self) -> list[Machine]:
        """See Provider: of all regions, or none."""
        client = self._client()
        return [self._machine(each, region) for region in self._regions() for each in self._instances(client, region)]

    def machine(self, external_id: str) -> Machine | None:
        """See Provider. The id names the region, so a region that was taken off the list is still asked."""
        region, instance_id = local_id(external_id)
        found = self._client().instance(region, instance_id)
        return None if found is None else self._machine(found, region)

    def named(self, name: str) -> list[Machine]:
        """See Provider. The cloud filters, and some take parts of names or wildcards, so it is compared here too."""
        client = self._client()
        found = [
            self._machine(each, region)
            for region in self._regions()
            for each in self._instances(client, region, name=name)
        ]
        return [machine for machine in found if machine.name == name]

    def order_choices(self, name: str) -> Mapping[str, str]:
        """See CanOrder: of all regions, each with the place where it is."""
        client, found = self._client(), {}
        for region in self._regions():
            for key, label, place in self._choices(client, region, name):
                if key:
                    found[key] = f"{label or key} ({place or region})"
        return found

    def create(self, order: MachineOrder) -> str:
        """See CanOrder. The name is the client token too, so that the same order is never met twice."""
        region = str(order.details["region"])
        return global_id(region, self._run(self._client(), region, order))

    def start(self, external_id: str) -> None:
        """See CanStop. The hardware of a stopped instance may be given up, so this may be refused for want of stock."""
        self._client().start(*local_id(external_id))

    def stop(self, external_id: str) -> None:
        """See CanStop. The mode is always sent, because what the account has as default is not known here."""
        region, instance_id = local_id(external_id)
        client = self._client()
        found = client.instance(region, instance_id)
        if found is None:
            raise NotThere(f"There is no instance {instance_id} in {region}.")
        client.stop(region, instance_id, self._stopped_mode(found))

    def reboot(self, external_id: str) -> None:
        """See CanReboot."""
        self._client().reboot(*local_id(external_id))

    def snapshots(self) -> list[Snapshot]:
        """See HasSnapshots: images, from which a machine is ordered as from any other."""
        client = self._client()
        return [image for region in self._regions() for image in self._images(client, region)]

    def snapshot(self, external_id: str, name: str) -> str:
        """See HasSnapshots: an image, while the machine runs on."""
        region, instance_id = local_id(external_id)
        return self._client().create_image(region, instance_id, name[: self.image_name_length])
