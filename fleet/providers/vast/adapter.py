"""Vast.ai's instances as machines, its asks as offers: each ask is one machine of one host, for a price or for a bid."""

import base64
import gzip
from datetime import datetime
from typing import Any, ClassVar, Final

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from fleet.providers.base import (
    AccountCheck,
    Billing,
    CanOrder,
    CanReboot,
    CanStop,
    Charge,
    Field,
    HasBilling,
    HasSpot,
    Machine,
    MachineOrder,
    OfferFound,
    Provider,
    StopEffect,
)
from fleet.providers.errors import NotThere, Refused
from fleet.providers.order_values import script_text, whole_text
from fleet.providers.permissions import tried
from fleet.providers.reading import money, number, text, time
from fleet.providers.vast.client import VastClient
from fleet.providers.vast.facts import CURRENCY, OFFER_DISK_GB, machine_of, offers_of
from fleet.reasons import Reason

ONSTART_LIMIT: Final = 4048
DEFAULT_IMAGE: Final = "vastai/base-image:@vastai-automatic-tag"


class Vast(Provider, CanOrder, CanReboot, CanStop, HasSpot, HasBilling):
    """Instances of one Vast.ai account. Interruptible ones are outbid without notice and resume by themselves."""

    kind: ClassVar[str] = "vast"
    label = "Vast.ai"
    currency: ClassVar[str] = CURRENCY
    docs_url = "https://docs.vast.ai/api-reference/introduction"
    credential_fields = (
        Field(
            name="api_key",
            label=_("API key"),
            is_secret=True,
            help=_(
                "Console → Keys. A key with limits needs the rights to read and write instances, to search offers, and to "
                "read the user and billing."
            ),
        ),
    )
    option_fields = (
        Field(
            name="min_reliability",
            label=_("Least reliability of hosts"),
            default="0.95",
            max_length=6,
            help=_("From 0 to 1, as Vast.ai measures it. Offers of other hosts are not shown."),
        ),
        Field(
            name="countries",
            label=_("Countries"),
            is_required=False,
            max_length=200,
            help=_("Two-letter codes with commas between them; empty for all."),
        ),
    )
    order_fields = (
        Field(name="image", label=_("Container image"), default=DEFAULT_IMAGE),
        Field(
            name="disk_gb",
            label=_("Disk in GB"),
            default=str(OFFER_DISK_GB),
            max_length=5,
            help=_("It cannot be changed later. Prices of offers are for 50 GB."),
        ),
    )

    def _client(self) -> VastClient:
        return VastClient(self.credentials["api_key"], account=self.account, transport=self.transport)

    def check(self) -> AccountCheck:
        """See Provider. Reading instances and charges are tried; ordering cannot be without doing it."""
        client = self._client()
        user, _may = tried(client.user)
        at = datetime.now().astimezone()
        return AccountCheck(
            identity=text(user, "id"),  # not the e-mail address: whoever sees the account would see it
            permissions={
                "list": tried(client.instances)[1],
                "billing": tried(lambda: client.charges(at, at))[1],
                "order": None,
            },
            balance=money((user or {}).get("balance"), CURRENCY),
        )

    def machines(self) -> list[Machine]:
        """See Provider."""
        return [machine_of(instance) for instance in self._client().instances()]

    def machine(self, external_id: str) -> Machine | None:
        """See Provider."""
        try:
            return machine_of(self._client().instance(external_id))
        except NotThere:
            return None

    def named(self, name: str) -> list[Machine]:
        """See Provider; the label is looked for by Vast.ai itself."""
        found = [machine_of(instance) for instance in self._client().instances(label=name)]
        return [machine for machine in found if machine.name == name]

    def offers(self) -> list[OfferFound]:
        """See HasOffers: every ask of verified hosts, once at its price and once for a bid."""
        filters: dict[str, Any] = {
            "type": "ondemand",
            "verified": {"eq": True},
            "rentable": {"eq": True},
            "rented": {"eq": False},
            "reliability": {"gte": float(self._reliability())},
            "allocated_storage": OFFER_DISK_GB,
        }
        if countries := self.options["countries"].replace(",", " ").upper().split():
            filters["geolocation"] = {"in": countries}
        return [offer for ask in self._client().offers(filters) for offer in offers_of(ask)]

    def _reliability(self) -> Any:
        least = number(self.options["min_reliability"])
        if least is None or not 0 <= least <= 1:
            raise Refused(gettext("The least reliability is a number from 0 to 1."), permanent=True)
        return least

    def create(self, order: MachineOrder) -> str:
        """See CanOrder. There is no key against doing it twice: the label is searched for after a lost answer.

        `cancel_unavail`: an order that cannot start now is refused instead of waiting, stopped, with its disk billed.
        """
        body: dict[str, Any] = {
            "image": order.options["image"],
            "disk": int(whole_text(order.options["disk_gb"])),
            "label": order.name,
            "runtype": "ssh_direct",
            "env": {"-p 8000:8000": "1"},
            "onstart": onstart(order.startup_script),
            "target_state": "running",
            "cancel_unavail": True,
        }
        if order.billing == Billing.SPOT:
            body["price"] = float(self._bid(order))
        try:
            return self._client().order(int(order.details["ask_id"]), body)
        except NotThere as error:
            raise Refused(error.message, reason=Reason.NO_OFFER, raw_code=error.raw_code) from error

    def _bid(self, order: MachineOrder) -> Any:
        """Return the bid in USD per hour for the machine: the maximum that was given, else the least that wins now."""
        if order.max_price_per_hour is None:
            return order.details["min_bid"]
        if order.max_price_per_hour.currency != CURRENCY:
            raise Refused(gettext("A bid on Vast.ai is in US dollars."), permanent=True)
        return order.max_price_per_hour.amount

    def terminate(self, external_id: str) -> None:
        """See CanOrder: the instance and its disk."""
        try:
            self._client().end(external_id)
        except NotThere:
            return

    def start(self, external_id: str) -> None:
        """See CanStop. A stopped instance waits for its own cards, which others may have rented meanwhile."""
        self._client().change(external_id, {"state": "running"})

    def stop(self, external_id: str) -> None:
        """See CanStop."""
        self._client().change(external_id, {"state": "stopped"})

    def reboot(self, external_id: str) -> None:
        """See CanReboot."""
        self._client().reboot(external_id)

    def stop_effect(self, billing: Billing) -> StopEffect:  # noqa: ARG002 (the same for all)
        """See Provider."""
        return StopEffect(
            saves_compute=True,
            keeps_billing=("disk",),
            note=_("The disk goes on costing; the GPUs are not kept, so starting again may wait for long."),
        )

    def charges(self, *, start: datetime, end: datetime) -> list[Charge]:
        """See HasBilling: a line for each instance; volumes and the like belong to the account."""
        return [
            Charge(
                external_id=source.removeprefix("instance-") if source.startswith("instance-") else "",
                start=time(record.get("start")) or start,
                end=time(record.get("end")) or end,
                amount=amount,
                kind=text(record, "type"),
            )
            for record in self._client().charges(start, end)
            if (amount := money(record.get("amount"), CURRENCY)) is not None and (source := text(record, "source"))
        ]


def onstart(script: str) -> str:
    """Return a start-up script within Vast.ai's 4048 characters, packed where it is longer. Raises Refused."""
    plain = script if script.startswith("#!") else f"#!/bin/sh\n{script}"
    if len(plain.encode()) > ONSTART_LIMIT:
        packed = base64.b64encode(gzip.compress(plain.encode(), mtime=0)).decode()
        plain = f"#!/bin/bash\necho {packed}|base64 -d|gunzip|bash\n"
    return script_text(plain, limit_bytes=ONSTART_LIMIT)
