"""What a GPU's page shows beside its charts: the card, its facts and health, every server it was on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from fleet.advice import Advice, gpu_advice, reason_words
from fleet.enums import GpuState
from fleet.models import Gpu, Server
from fleet.selectors import gpu_history
from frontend import formatting
from frontend.chart_config import Subject
from frontend.fleet_reading import fleet_rows
from frontend.fleet_rows import GpuRow, ServerRow
from frontend.server_page import Card, card_of, gpu_subject
from monitoring.activity import Activity
from panel.core.errors import NotFound

MOST_PLACES_DRAWN: Final = 8
_RECOVERY: Final = {
    0: gettext_lazy("none"),
    1: gettext_lazy("reset the card"),
    2: gettext_lazy("reboot the server"),
    3: gettext_lazy("drain its peers"),
    4: gettext_lazy("drain and reset"),
    5: gettext_lazy("restart IMEX"),
    6: gettext_lazy("reset the bus"),
    7: gettext_lazy("reboot the system"),
}
_HEALTH: Final = (
    ("recovery_action", gettext_lazy("Driver asks for")),
    ("ecc_corrected_volatile", gettext_lazy("ECC corrected, since driver load")),
    ("ecc_uncorrected_volatile", gettext_lazy("ECC uncorrected, since driver load")),
    ("ecc_corrected_aggregate", gettext_lazy("ECC corrected, lifetime")),
    ("ecc_uncorrected_aggregate", gettext_lazy("ECC uncorrected, lifetime")),
    ("remapped_rows_correctable", gettext_lazy("Rows remapped after corrected errors")),
    ("remapped_rows_uncorrectable", gettext_lazy("Rows remapped after uncorrected errors")),
    ("remapped_rows_pending", gettext_lazy("Row remap waits for a reset")),
    ("remapped_rows_failure", gettext_lazy("Row remap failed")),
    ("retired_pages_single_bit", gettext_lazy("Pages retired, single bit")),
    ("retired_pages_double_bit", gettext_lazy("Pages retired, double bit")),
    ("retired_pages_pending", gettext_lazy("Page retirement waits for a reset")),
    ("pcie_replays", gettext_lazy("PCIe replays")),
    ("nvlink_errors", gettext_lazy("NVLink errors")),
)


# The readings stand beside these sentences and move; the sentences hold no figures.
_ACTIVITY_ADVICE: Final = {
    Activity.BUSY: Advice(gettext_lazy("Busy: the card works.")),
    Activity.PARKED: Advice(gettext_lazy("Loaded, quiet: memory is held and nothing runs. The card is not free.")),
    Activity.IDLE: Advice(gettext_lazy("Idle: nothing runs and nothing is loaded.")),
    Activity.GHOST: Advice(
        gettext_lazy("Ghost memory: memory is held and no process is there to own it."),
        gettext_lazy("Mostly left behind by a killed program: reset the card once nothing uses it."),
    ),
    Activity.NO_DATA: Advice(gettext_lazy("No reading of now: what stands here is of the past.")),
    Activity.MISSING: Advice(gettext_lazy("Missing.")),
    Activity.LOST: Advice(gettext_lazy("Lost.")),
}


@dataclass(frozen=True, slots=True)
class Place:
    """A card where it is looked at: its row, its server's row, all it stored, and every row of its UUID."""

    row: GpuRow
    server: ServerRow
    card: Card
    history: Sequence[Gpu]

    @property
    def is_here(self) -> bool:
        """Say whether the card is still known on this server."""
        return self.card.gpu.removed_at is None and self.server.server.retired_at is None


@dataclass(frozen=True, slots=True)
class Figure:
    """One fact or counter: its value in words, or why there is none."""

    name: str
    value: str
    reason: str
    is_bad: bool = False


def gpu_found(gpu_id: int, *, now: datetime) -> Place:
    """Return one card or slice, also of a retired server. Raises NotFound."""
    gpu = Gpu.objects.filter(pk=gpu_id).first()
    if gpu is None:
        raise NotFound(_("There is no such GPU, or its server was removed."))
    server = fleet_rows(now=now, servers=Server.objects.filter(pk=gpu.server_id), with_forgotten=True).servers[0]
    rows = [*server.gpus, *(part for card in server.gpus for part in card.slices)]
    row = next(found for found in rows if found.id == gpu_id)
    return Place(row, server, card_of(row, gpu), list(gpu_history(uuid=gpu.uuid)))


def state_sentence(place: Place) -> Advice:
    """Return what the card is doing or suffering, in one sentence."""
    row = place.row
    if row.state != GpuState.OK:
        return gpu_advice(row.state, row.state_reason)
    if row.activity == Activity.CANNOT_TELL:
        text = _("Cannot tell whether it works: the driver does not give its utilisation (%(why)s).")
        return Advice(text % {"why": why_no_utilization(place)})
    return _ACTIVITY_ADVICE[row.activity]


def why_no_utilization(place: Place) -> str:
    """Return why there is no utilisation, as the agent said, or as MIG explains it."""
    reason = place.card.gpu.unsupported.get("utilization_percent", "mig_mode" if place.row.is_mig else "not_supported")
    return str(reason_words(str(reason)))


def gpu_subjects(place: Place) -> list[Subject]:
    """Return the card's lines: one for each server that its UUID was seen on, this one first."""
    own = gpu_subject(place.row)
    others = [gpu for gpu in place.history if gpu.pk != place.row.id][: MOST_PLACES_DRAWN - 1]
    if not others:
        return [own]
    here = replace(own, label=place.row.server_name, short=place.row.server_name)
    return [here, *(_past(gpu, place.row.server_name) for gpu in others)]


def _past(gpu: Gpu, here: str) -> Subject:
    """Return the card as it was in another place; one of the same name says until when."""
    name = gpu.server.name
    if name == here and gpu.last_seen_at is not None:
        name = _("%(name)s, until %(date)s") % {
            "name": name,
            "date": f"{timezone.localtime(gpu.last_seen_at):%m-%d %H:%M}",
        }
    return Subject("gpu", gpu.pk, name, name, {}, gpu.memory_total_bytes, gpu.power_limit_watts)


def facts(gpu: Gpu) -> list[Figure]:
    """Return what is known of the card itself."""
    known = gpu.facts
    pairs: list[tuple[str, Any]] = [
        (_("Model"), gpu.name),
        (_("UUID"), gpu.uuid),
        (_("Serial number"), known.get("serial")),
        (_("Architecture"), known.get("architecture")),
        (_("Compute capability"), known.get("compute_capability")),
        (_("VRAM"), _as(gpu.memory_total_bytes, "gib")),
        (_("VRAM reserved by the driver"), _as(known.get("memory_reserved_bytes"), "gib")),
        (_("Power limit in force"), _as(gpu.power_limit_watts, "watts")),
        (_("Power limit by default"), _milliwatts(known.get("power_limit_default_milliwatts"))),
        (_("Slows down at"), _as(known.get("temperature_slowdown_celsius"), "celsius")),
        (_("Shuts down at"), _as(known.get("temperature_shutdown_celsius"), "celsius")),
        (_("SM clock at most"), _as(known.get("sm_clock_maximum_mhz"), "mhz")),
        (_("PCI address"), gpu.pci_bus_id),
        (_("PCIe"), pcie(gpu)),
        (_("NVLink links"), _links(gpu)),
        (_("ECC"), _switch(known.get("ecc_mode"))),
        (_("MIG"), _switch(known.get("mig_mode"))),
        (_("Persistence mode"), _switch(gpu.health.get("persistence_mode"))),
        (_("VBIOS"), known.get("vbios")),
    ]
    return [Figure(name, str(value) if value not in (None, "") else "", "not_supported") for name, value in pairs]


def _as(value: float | None, kind: str) -> str | None:
    return None if value is None else formatting.with_unit(value, kind)


def _milliwatts(value: float | None) -> str | None:
    return None if value is None else formatting.with_unit(value / 1000, "watts")


def _switch(value: bool | None) -> str | None:  # noqa: FBT001 - three-valued fact
    return None if value is None else _("on") if value else _("off")


def pcie(gpu: Gpu) -> str | None:
    """Return "gen 4 of 5, ×16 of ×16"."""
    health, known = gpu.health, gpu.facts
    if health.get("pcie_width") is None:
        return None
    return _("gen %(gen)s of %(most_gen)s, ×%(width)s of ×%(most_width)s") % {
        "gen": health.get("pcie_generation") or "?",
        "most_gen": known.get("pcie_generation_maximum") or "?",
        "width": health["pcie_width"],
        "most_width": known.get("pcie_width_maximum") or "?",
    }


def _links(gpu: Gpu) -> str | None:
    active, total = gpu.health.get("nvlink_active_links"), gpu.facts.get("nvlink_links")
    if total is None and active is None:
        return None
    return f"{active if active is not None else '?'} / {total if total is not None else '?'}"


def health(gpu: Gpu) -> list[Figure]:
    """Return the counters and flags of the slow tier, each with its value or the reason why there is none."""
    return [_health_figure(gpu, key, str(name)) for key, name in _HEALTH]


def _health_figure(gpu: Gpu, key: str, name: str) -> Figure:
    value = gpu.health.get(key)
    reason = str(gpu.unsupported.get(key, "not_supported"))
    if value is None:
        return Figure(name, "", reason)
    if key == "recovery_action":
        return Figure(name, str(_RECOVERY.get(value, value)), reason, is_bad=value != 0)
    if isinstance(value, bool):
        return Figure(name, _("yes") if value else _("no"), reason, is_bad=value)
    is_bad = value > 0 and "uncorrect" in key and "remapped" not in key
    return Figure(name, formatting.number(value, "count"), reason, is_bad=is_bad)
