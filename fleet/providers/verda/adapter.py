"""Verda's instances as machines: ordered with a script of their own, ended with their disk, never saved by a stop."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, Final

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from fleet.providers.base import (
    AccountCheck,
    Billing,
    CanOrder,
    CanStop,
    Field,
    HasSpot,
    Machine,
    MachineOrder,
    MachineStatus,
    OfferFound,
    Provider,
    StopEffect,
)
from fleet.providers.errors import NotThere, NotUnderstood, OutcomeUnknown, ProviderError, Refused, Unavailable
from fleet.providers.order_values import script_text, whole_text
from fleet.providers.permissions import tried
from fleet.providers.reading import money, text
from fleet.providers.verda.client import VerdaClient
from fleet.providers.verda.facts import machine_of, offers_of
from fleet.reasons import Reason

SCRIPT_LIMIT: Final = 64 * 1024  # the vendor names none
OURS: Final = "fleetdeck-"


class Verda(Provider, CanOrder, CanStop, HasSpot):
    """Instances of one Verda project. What is shut down costs as much as what runs; only ending it saves."""

    kind: ClassVar[str] = "verda"
    label = "Verda"
    currency: ClassVar[str] = "USD"
    end_keeps = _("Other volumes that were attached are detached and go on costing.")
    docs_url = "https://api.verda.com/v1/docs"
    credential_fields = (
        Field(
            name="client_id",
            label=_("Client ID"),
            help=_("Verda console → Keys → Cloud API credentials. They may do everything in their project."),
        ),
        Field(
            name="client_secret", label=_("Client secret"), is_secret=True, help=_("Shown once, beside the client ID.")
        ),
    )
    option_fields = (
        Field(
            name="currency",
            label=_("Currency of the account"),
            default="USD",
            choices={"USD": "USD", "EUR": "EUR"},
            help=_("Prices of instances come without a currency; they are in that of the account."),
        ),
    )
    order_fields = (
        Field(name="image", label=_("Image"), default="ubuntu-24.04-cuda-12.8-open-docker", max_length=100),
        Field(name="ssh_key", label=_("SSH key"), max_length=64, help=_("A key of the project.")),
        Field(name="disk_gb", label=_("System disk in GB"), default="50", max_length=5),
    )

    @cached_property
    def _client(self) -> VerdaClient:
        """The connection; kept, so that one token serves all calls."""
        secret = self.credentials["client_secret"]
        return VerdaClient(self.credentials["client_id"], secret, account=self.account, transport=self.transport)

    def check(self) -> AccountCheck:
        """See Provider. Credentials have no scopes. A balance in another currency than the account's is refused."""
        _machines, may_list = tried(self._client.instances)
        found = self._client.balance()
        currency = text(found, "currency").upper()
        if currency and currency != self.options["currency"]:
            raise Refused(
                gettext("The account is kept in %(currency)s; choose that as its currency.") % {"currency": currency},
                permanent=True,
            )
        balance = money(found.get("amount"), self.options["currency"])
        return AccountCheck(permissions={"list": may_list, "order": None}, balance=balance)

    def machines(self) -> list[Machine]:
        """See Provider."""
        return [machine_of(instance, self.options["currency"]) for instance in self._client.instances()]

    def machine(self, external_id: str) -> Machine | None:
        """See Provider."""
        try:
            found = machine_of(self._client.instance(external_id), self.options["currency"])
        except NotThere:
            return None
        return None if found.status == MachineStatus.GONE else found

    def offers(self) -> list[OfferFound]:
        """See HasOffers: each type at its price and as spot, in each location that has it; without one where none has."""
        currency = self.options["currency"]
        types = self._client.instance_types(currency)
        return [
            offer
            for billing in (Billing.HOURLY, Billing.SPOT)
            for offer in offers_of(types, self._client.available(is_spot=billing == Billing.SPOT), billing, currency)
        ]

    def order_choices(self, name: str) -> Mapping[str, str]:
        """See CanOrder: the project's SSH keys, and the images."""
        if name == "ssh_key":
            return {text(key, "id"): text(key, "name") for key in self._client.ssh_keys() if text(key, "id")}
        if name == "image":
            return {text(image, "image_type"): text(image, "name") for image in self._client.images()}
        return {}

    def create(self, order: MachineOrder) -> str:
        """See CanOrder. The start-up script is an object of its own, taken away again when nothing was ordered."""
        if not order.region:
            raise Refused(gettext("No region of this provider has such a machine free."), reason=Reason.NO_CAPACITY)
        body = _order_body(order)
        script = script_text(order.startup_script, limit_bytes=SCRIPT_LIMIT)
        body["startup_script_id"] = self._script(order.name, script)
        try:
            return self._client.create_instance(body)
        except NotUnderstood as error:
            raise OutcomeUnknown(error.message) from error
        except NotThere as error:
            self._drop_script(body["startup_script_id"])
            raise Refused(error.message, raw_code=error.raw_code) from error
        except ProviderError as error:
            if error.is_definite:
                self._drop_script(body["startup_script_id"])
            raise

    def _script(self, name: str, script: str) -> str:
        """Store the script. Whatever goes wrong here, no machine was ordered."""
        try:
            return self._client.create_script(name, script)
        except (OutcomeUnknown, NotUnderstood) as error:
            raise Unavailable(error.message) from error

    def _drop_script(self, script_id: str) -> None:
        """Take a script away. One that stays costs nothing, so no failure here hides what matters more."""
        try:
            self._client.delete_script(script_id)
        except ProviderError:
            return

    def terminate(self, external_id: str) -> None:
        """See CanOrder: the instance, its system disk and the script that we stored for it. Other volumes are detached."""
        try:
            instance = self._client.instance(external_id)
            self._client.act(external_id, "delete")
        except NotThere:
            return
        script_id = text(instance, "startup_script_id")
        if script_id and text(instance, "hostname").startswith(OURS):
            self._drop_script(script_id)

    def start(self, external_id: str) -> None:
        """See CanStop."""
        self._client.act(external_id, "start")

    def stop(self, external_id: str) -> None:
        """See CanStop: a shutdown; the API has no mode that saves."""
        self._client.act(external_id, "shutdown")

    def stop_effect(self, billing: Billing) -> StopEffect:  # noqa: ARG002 (the same for all)
        """See Provider."""
        return StopEffect(
            saves_compute=False,
            keeps_billing=("everything",),
            note=_("Verda bills a machine that is shut down as if it ran. Only ending it ends the bill."),
        )


def _order_body(order: MachineOrder) -> dict[str, Any]:
    is_spot = order.billing == Billing.SPOT
    disk: dict[str, Any] = {"name": order.name, "size": int(whole_text(order.options["disk_gb"]))}
    if is_spot:
        disk["on_spot_discontinue"] = "move_to_trash"  # detached, as is usual, it would go on costing unseen
    return {
        "instance_type": order.details["instance_type"],
        "image": order.options["image"],
        "hostname": order.name,
        "description": order.name,
        "ssh_key_ids": [order.options["ssh_key"]],
        "location_code": order.region,
        "contract": "SPOT" if is_spot else "PAY_AS_YOU_GO",
        "pricing": "FIXED_PRICE",
        "is_spot": is_spot,
        "os_volume": disk,
    }
