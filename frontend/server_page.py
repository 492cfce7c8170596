"""What a server's page shows beside its charts: headline, banners, cards, processes, faults; read and shaped for templates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from fleet.advice import Advice, driver_advice, health_advice, server_advice
from fleet.enums import DriverState, ServerState
from fleet.lifecycle import REBUILDING_REASON, REPLACED_REASON
from fleet.models import Gpu, GpuFault, Server
from fleet.reasons import REASON_WORDS, Reason
from fleet.xids import fault_meaning
from frontend import formatting
from frontend.chart_config import Subject
from frontend.fleet_reading import fleet_rows
from frontend.fleet_rows import GpuRow, ServerRow, gpu_label, short_uuid
from frontend.formatting import KINDS, listed
from monitoring.clock_reasons import reasons_in_words
from panel.core.errors import NotFound

FAULTS_LISTED: Final = 20
PROCESSES_LISTED: Final = 200
EARLIER_LISTED: Final = 64


@dataclass(frozen=True, slots=True)
class Banner:
    """A state of the whole server that its page says first."""

    severity: str
    sentence: str
    next_step: str
    since: datetime | None


@dataclass(frozen=True, slots=True)
class Card:
    """One GPU with its readings (`row`) and everything stored of it (`gpu`)."""

    row: GpuRow
    gpu: Gpu
    reasons: tuple[str, ...]
    advice: tuple[Advice, ...]

    @property
    def readings(self) -> list["Reading"]:
        """Return every reading of the card that people look at, missing ones with their reason."""
        return [self._reading(spec) for spec in READINGS]

    def _reading(self, spec: "ReadingSpec") -> "Reading":
        value = self.row.values.get(spec.metric)
        reason = str(self.gpu.unsupported.get(spec.metric, "")) or (
            "not_supported" if self.row.is_fresh else "server_silent"
        )
        limit = {"memory_percent": self.row.memory_total_bytes, "power_percent": self.row.power_limit_watts}.get(
            spec.bar
        )
        percent = {
            "memory_percent": self.row.memory_percent,
            "power_percent": self.row.power_percent,
            "": None,
        }.get(spec.bar, value)
        return Reading(
            metric=spec.metric,
            label=spec.label,
            kind=spec.kind,
            unit=KINDS[spec.kind][1],
            value=value,
            reason=reason,
            bar=spec.bar,
            percent=percent,
            limit=formatting.with_unit(limit, spec.kind) if limit else "",
        )


@dataclass(frozen=True, slots=True)
class EarlierCard:
    """A card of a machine that this server was before."""

    gpu: Gpu
    label: str
    short_uuid: str


@dataclass(frozen=True, slots=True)
class ReadingSpec:
    """A reading of a card's page. kind: of frontend.formatting; bar: the share that its bar shows, if any."""

    metric: str
    label: str | Promise
    kind: str
    bar: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """A reading with its value, or the reason why there is none."""

    metric: str
    label: str | Promise
    kind: str
    unit: str
    value: float | None
    reason: str
    bar: str
    percent: float | None
    limit: str


READINGS: Final = (
    ReadingSpec("utilization_percent", gettext_lazy("Utilisation"), "percent", "utilization_percent"),
    ReadingSpec("memory_used_bytes", gettext_lazy("VRAM"), "gib", "memory_percent"),
    ReadingSpec("power_watts", gettext_lazy("Power"), "watts", "power_percent"),
    ReadingSpec("temperature_celsius", gettext_lazy("Temperature"), "celsius"),
    ReadingSpec("memory_temperature_celsius", gettext_lazy("Memory temperature"), "celsius"),
    ReadingSpec("sm_clock_mhz", gettext_lazy("SM clock"), "mhz"),
    ReadingSpec("memory_clock_mhz", gettext_lazy("Memory clock"), "mhz"),
    ReadingSpec("memory_busy_percent", gettext_lazy("Memory controller"), "percent"),
    ReadingSpec("encoder_percent", gettext_lazy("Video encoder"), "percent"),
    ReadingSpec("decoder_percent", gettext_lazy("Video decoder"), "percent"),
    ReadingSpec("fan_percent", gettext_lazy("Fan"), "percent"),
    ReadingSpec("pcie_rx_bytes_per_second", gettext_lazy("PCIe received"), "mb_per_second"),
    ReadingSpec("nvlink_rx_bytes_per_second", gettext_lazy("NVLink received"), "mb_per_second"),
)


@dataclass(frozen=True, slots=True)
class ProcessLine:
    """One process on one card."""

    card: GpuRow
    pid: int
    name: str
    user: str
    container: str
    kinds: str
    memory_used_bytes: int | None
    sm_percent: int | None
    started_at: datetime | None


@dataclass(frozen=True, slots=True)
class FaultLine:
    """One fault with its meaning in words."""

    fault: GpuFault
    card: str
    sentence: str
    next_step: str


def server_found(server_id: int, *, now: datetime) -> ServerRow:
    """Return one server, retired ones too, with its cards. Raises NotFound."""
    rows = fleet_rows(now=now, servers=Server.objects.filter(pk=server_id)).servers
    if not rows:
        raise NotFound(_("There is no such server, or it was removed."))
    return rows[0]


def cards_of(row: ServerRow) -> list[Card]:
    """Return the server's cards with their stored facts. One query."""
    stored = Gpu.objects.in_bulk([gpu.id for gpu in row.gpus])
    return [card_of(gpu, stored[gpu.id]) for gpu in row.gpus if gpu.id in stored]


def earlier_cards(row: ServerRow) -> list[EarlierCard]:
    """Return the cards of machines that this server was before, the latest first; their pages keep the history. One query."""
    gone = Gpu.objects.filter(server=row.server, parent=None, state_reason=REPLACED_REASON).exclude(removed_at=None)
    found = gone.order_by("-removed_at", "index", "pk")[:EARLIER_LISTED]
    return [EarlierCard(gpu, gpu_label(gpu.index, gpu.uuid), short_uuid(gpu.uuid)) for gpu in found]


def card_of(row: GpuRow, gpu: Gpu) -> Card:
    """Return one card with what its readings and its slow tier mean."""
    mask = row.latest.clock_event_reasons if row.latest and row.is_fresh else None
    return Card(row, gpu, tuple(reasons_in_words(mask)), tuple(health_advice(gpu.health)))


def banners(row: ServerRow) -> list[Banner]:
    """Return what stands above everything else: state, driver, missing cards, a clock that is wrong."""
    server = row.server
    found = []
    if server.state not in {ServerState.READY, ServerState.DEGRADED}:
        found.append(_banner(_advice(server), server.state_changed_at))
    if server.driver_state not in {DriverState.OK, DriverState.UNKNOWN} and server.state != ServerState.RETIRED:
        found.append(_driver_banner(server))
    if row.gone:
        found.append(gone_banner(row))
    if row.has_skew:
        found.append(_skew_banner())
    return found


def _advice(server: Server) -> Advice:
    """Return what the state means; more is said of a server that is, or could not be, built again."""
    if server.state == ServerState.PENDING and server.state_reason == REBUILDING_REASON:
        return Advice(
            _("Another machine is being built for it. The cards of the one before are history."),
            _("Its GPUs appear with the first report of the new machine's agent."),
        )
    advice = server_advice(server.state)
    if server.state == ServerState.RETIRED and server.state_reason in Reason.values and server.state_reason:
        words = REASON_WORDS[Reason(server.state_reason)]
        sentence = _("No other machine came to be: %(reason)s") % {"reason": words.sentence}
        return Advice(f"{advice.sentence} {sentence}", words.next_step, advice.severity)
    return advice


def _banner(advice: Advice, since: datetime | None) -> Banner:
    return Banner(advice.severity, str(advice.sentence), str(advice.next_step), since)


def _driver_banner(server: Server) -> Banner:
    advice = driver_advice(server.driver_state)
    sentence = str(advice.sentence)
    if server.driver_state == DriverState.VERSION_MISMATCH and server.driver_library_version:
        sentence += " " + _("Kernel module %(module)s, library %(library)s.") % {
            "module": server.driver_version or "?",
            "library": server.driver_library_version,
        }
    elif server.driver_detail:
        sentence += f" ({server.driver_detail})"
    return Banner(advice.severity, sentence, str(advice.next_step), server.driver_since)


def gone_banner(row: ServerRow) -> Banner:
    """Return "7 of 8 GPUs" with the names of those that are gone and since when."""
    names = listed(f"{gpu.label} ({gpu.short_uuid})" for gpu in row.gone)
    sentence = _("%(present)s of %(known)s GPUs. Missing: %(names)s.") % {
        "present": len(row.gpus) - len(row.gone),
        "known": len(row.gpus),
        "names": names,
    }
    step = _(
        "Reboot the server when its work can stop. If the card does not come back, ask the provider for another one."
    )
    return Banner("critical", sentence, step, min(gpu.state_changed_at for gpu in row.gone))


def _skew_banner() -> Banner:
    sentence = _("The server's clock is wrong; its samples are kept at the time at which they arrive.")
    return Banner("warning", sentence, _("Turn on time synchronisation there (chrony, systemd-timesyncd)."), None)


def process_lines(cards: Sequence[Card]) -> list[ProcessLine]:
    """Return the processes of all cards, those that hold most memory first."""
    lines = [_process(card.row, process) for card in cards for process in card.gpu.processes]
    return sorted(lines, key=lambda line: (-(line.memory_used_bytes or 0), line.pid))[:PROCESSES_LISTED]


def _process(row: GpuRow, process: Mapping[str, Any]) -> ProcessLine:
    started = process.get("started_at_ms")
    return ProcessLine(
        card=row,
        pid=process["pid"],
        name=process.get("name", ""),
        user=process.get("user", ""),
        container=process.get("container", ""),
        kinds=", ".join(process.get("kinds", [])),
        memory_used_bytes=process.get("memory_used_bytes"),
        sm_percent=process.get("sm_percent"),
        started_at=datetime.fromtimestamp(started / 1000, tz=UTC) if started else None,
    )


def process_visibility(cards: Sequence[Card]) -> str:
    """Return how much of the processes can be seen: `hidden` when any card hides them, `visible`, or `unknown`."""
    seen = {card.gpu.processes_visibility for card in cards}
    if "hidden" in seen:
        return "hidden"
    return "visible" if "visible" in seen else "unknown"


def fault_lines(faults: Sequence[GpuFault]) -> list[FaultLine]:
    """Return faults with their meaning; select the cards along."""
    return [_fault_line(fault) for fault in faults]


def _fault_line(fault: GpuFault) -> FaultLine:
    meaning = fault_meaning(fault.kind, fault.code)
    gpu = fault.gpu
    card = gpu_label(gpu.index, gpu.uuid) if gpu is not None else fault.pci_bus_id
    return FaultLine(fault, card, str(meaning.sentence), str(meaning.step.value))


def chart_subjects(row: ServerRow) -> list[Subject]:
    """Return what the charts of the server draw: every card, and the host."""
    limit = row.memory_limit_bytes
    totals = {"memory_total_bytes": float(limit)} if limit else {}
    host = Subject("server", row.server.pk, row.server.name, "", row.host.values if row.host else {}, totals=totals)
    return [*(gpu_subject(gpu) for gpu in row.gpus), host]


def gpu_subject(gpu: GpuRow) -> Subject:
    """Return one card as the subject of lines, named by index and UUID, never by its model."""
    return Subject(
        "gpu",
        gpu.id,
        f"{gpu.label} {gpu.short_uuid}",
        gpu.label,
        gpu.values,
        gpu.memory_total_bytes,
        gpu.power_limit_watts,
        gpu.slowdown_celsius,
    )
