"""The simulated provider: machines that start, stop, are taken back and end by the clock, and cost nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, ClassVar, Final

from django.db.models import Q, QuerySet
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
    MachineStatus,
    OfferFound,
    Provider,
    Stock,
    StopEffect,
)
from fleet.providers.errors import NotThere, Refused
from fleet.providers.gpu_models import gpu_model
from fleet.providers.simulated.world import ENDING, has_host, machine_status
from fleet.reasons import Reason
from panel.core.clock import now
from panel.core.money import Money

if TYPE_CHECKING:
    from fleet.models import SimulatedMachine

HOUR: Final = timedelta(hours=1)
GIB: Final = 1024**3


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind of machine on offer; price in CNY an hour for the whole machine."""

    key: str
    gpu: str
    count: int
    region: str
    price: str
    cpus: int
    memory_gib: int
    stock: Stock
    billing: Billing = Billing.HOURLY


_KINDS: Final = (
    _Kind("h200-8-east", "H200 SXM 141GB", 8, "east-1", "248.00", 192, 2048, Stock.LOW),
    _Kind("h100-8-east", "H100 SXM 80GB", 8, "east-1", "136.00", 192, 2048, Stock.MEDIUM),
    _Kind("h100-1-east", "H100 SXM 80GB", 1, "east-1", "17.50", 24, 240, Stock.HIGH),
    _Kind("a100-4-south", "A100 SXM 80GB", 4, "south-1", "28.00", 64, 512, Stock.HIGH),
    _Kind("l40s-2-south", "L40S 48GB", 2, "south-1", "9.80", 32, 256, Stock.HIGH),
    _Kind("4090-1-north", "RTX 4090 24GB", 1, "north-1", "1.98", 16, 62, Stock.HIGH),
    _Kind("4090-8-north", "RTX 4090 24GB", 8, "north-1", "15.84", 128, 496, Stock.LOW),
    _Kind("b200-8-east", "B200 180GB", 8, "east-1", "412.00", 224, 2048, Stock.NONE),
    _Kind("4090-1-north-spot", "RTX 4090 24GB", 1, "north-1", "1.19", 16, 62, Stock.MEDIUM, Billing.SPOT),
    _Kind("h100-1-east-spot", "H100 SXM 80GB", 1, "east-1", "10.50", 24, 240, Stock.LOW, Billing.SPOT),
)
KINDS: Final[Mapping[str, _Kind]] = {kind.key: kind for kind in _KINDS}


class Simulated(Provider, CanOrder, CanStop, CanReboot, HasSpot, HasBilling):
    """Machines of one simulated account."""

    kind: ClassVar[str] = "simulated"
    label = _("Simulated")
    currency: ClassVar[str] = "CNY"
    is_simulated: ClassVar[bool] = True
    option_fields = (
        Field(name="boot_seconds", label=_("Seconds until a machine runs"), default="20", max_length=5),
        Field(
            name="capacity",
            label=_("Capacity"),
            default="yes",
            choices={"yes": _("there is some"), "no": _("every order is refused")},
        ),
        Field(
            name="spot_minutes",
            label=_("Minutes until a spot machine is taken back"),
            default="30",
            max_length=6,
        ),
    )
    has_client_token: ClassVar[bool] = True
    runs_startup_script: ClassVar[bool] = False  # but where something runs its machines, see installs_agent
    appears_within: ClassVar[timedelta] = timedelta(0)
    usual_boot: ClassVar[timedelta] = timedelta(seconds=20)
    boot_deadline: ClassVar[timedelta] = timedelta(minutes=10)
    preemption_notice: ClassVar[timedelta | None] = None

    def check(self) -> AccountCheck:
        """See Provider: there is no key, so everything is allowed."""
        return AccountCheck(identity="simulated", permissions={"list": True, "order": True, "billing": True})

    def machines(self) -> list[Machine]:
        """See Provider."""
        alive = Q(ended_at=None) | Q(ended_at__gt=now() - ENDING)
        return [_machine(row) for row in self._rows().filter(alive).order_by("pk")]

    def machine(self, external_id: str) -> Machine | None:
        """See Provider."""
        row = self._rows().filter(pk=external_id.removeprefix("sim-")).first()
        if row is None or (row.ended_at is not None and row.ended_at <= now() - ENDING):
            return None
        return _machine(row)

    def offers(self) -> list[OfferFound]:
        """See HasOffers."""
        return [_offer(kind) for kind in KINDS.values()]

    def create(self, order: MachineOrder) -> str:
        """See CanOrder; the order's name is its client token."""
        kind = KINDS.get(order.offer_key)
        if kind is None:
            raise Refused("There is no such kind of machine.", reason=Reason.NO_OFFER)
        if self.options["capacity"] == "no" or kind.stock == Stock.NONE:
            raise Refused("No such machine is free.", reason=Reason.NO_CAPACITY)
        at = now()
        spot_until = at + timedelta(minutes=_number(self.options["spot_minutes"], 30))
        row, _is_new = self._rows().get_or_create(
            world=self.account,
            client_token=order.name,
            defaults={
                "name": order.name,
                "offer_key": kind.key,
                "startup_script": order.startup_script,
                "created_at": at,
                "running_from": at + self._boot(),
                "preempted_at": spot_until if kind.billing == Billing.SPOT else None,
            },
        )
        return f"sim-{row.pk}"

    def terminate(self, external_id: str) -> None:
        """See CanOrder."""
        row = self._rows().filter(pk=external_id.removeprefix("sim-"), ended_at=None)
        row.update(ended_at=now(), startup_script="")

    def installs_agent(self) -> bool:
        """See CanOrder: machines run their scripts while something runs the machines."""
        return has_host()

    def start(self, external_id: str) -> None:
        """See CanStop."""
        self._change(external_id, stopped_at=None, running_from=now() + self._boot())

    def stop(self, external_id: str) -> None:
        """See CanStop."""
        self._change(external_id, stopped_at=now())

    def reboot(self, external_id: str) -> None:
        """See CanReboot."""
        self._change(external_id, running_from=now() + timedelta(seconds=5))

    def stop_effect(self, billing: Billing) -> StopEffect:  # noqa: ARG002 (the same for all)
        """See Provider."""
        return StopEffect(
            saves_compute=True,
            keeps_billing=("disk",),
            note=_("A tenth of the price stays, for the disk. None of it is real."),
        )

    def charges(self, *, start: datetime, end: datetime) -> list[Charge]:
        """See HasBilling: the hours of each machine from its creation to its end."""
        charges = []
        for row in self._rows():
            first, last = max(row.created_at, start), min(row.ended_at or end, end, now())
            if first < last:
                price = Decimal(KINDS[row.offer_key].price)
                hours = Decimal((last - first) // timedelta(seconds=1)) / 3600
                amount = Money(price * hours, self.currency).rounded()
                charges.append(Charge(external_id=f"sim-{row.pk}", start=first, end=last, amount=amount))
        return charges

    def _rows(self) -> "QuerySet[SimulatedMachine]":
        from fleet.models import SimulatedMachine

        return SimulatedMachine.objects.filter(world=self.account)

    def _change(self, external_id: str, **values: object) -> None:
        changed = self._rows().filter(pk=external_id.removeprefix("sim-"), ended_at=None).update(**values)
        if not changed:
            raise NotThere("There is no such machine.")

    def _boot(self) -> timedelta:
        return timedelta(seconds=_number(self.options["boot_seconds"], 20))


def _number(value: str, otherwise: int) -> int:
    return int(value) if value.isdigit() else otherwise


def _offer(kind: _Kind) -> OfferFound:
    model = gpu_model(kind.gpu)
    price = Money(Decimal(kind.price), Simulated.currency)
    return OfferFound(
        key=kind.key,
        gpu_model=kind.gpu,
        raw_gpu=kind.gpu,
        gpu_count=kind.count,
        gpu_memory_bytes=model.memory_bytes if model else None,
        region=kind.region,
        billing=kind.billing,
        price_per_hour=price,
        price_stopped_per_hour=price / 10 if kind.billing == Billing.HOURLY else None,
        stock=kind.stock,
        cpu_count=kind.cpus,
        memory_bytes=kind.memory_gib * GIB,
        disk_bytes=200 * GIB,
        details={"kind": kind.key},
    )


def _machine(row: "SimulatedMachine") -> Machine:
    kind, at = KINDS[row.offer_key], now()
    status, model = machine_status(row, at), gpu_model(kind.gpu)
    return Machine(
        external_id=f"sim-{row.pk}",
        name=row.name,
        status=status,
        raw_status=str(status),
        gpu_model=kind.gpu,
        raw_gpu=kind.gpu,
        gpu_count=kind.count,
        gpu_memory_bytes=model.memory_bytes if model else None,
        cpu_count=kind.cpus,
        memory_bytes=kind.memory_gib * GIB,
        region=kind.region,
        billing=kind.billing,
        price_per_hour=Money(Decimal(kind.price), Simulated.currency),
        created_at=row.created_at,
        is_stop_saving=True if status in {MachineStatus.STOPPED, MachineStatus.PREEMPTED} else None,
    )
