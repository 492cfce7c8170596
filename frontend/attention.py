"""What needs a person now: a pure function from the fleet's rows to a short list of sentences, each with one action."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from fleet.advice import Advice, driver_advice, gpu_advice, health_advice, server_advice
from fleet.enums import DriverState, GpuState, ServerState
from fleet.lifecycle import DRIVER_REASON
from fleet.xids import fault_meaning
from frontend import formatting
from frontend.fleet_rows import LOST_STATES, FleetRows, GpuRow, LastFault, ServerRow
from frontend.formatting import listed, said_of
from monitoring.activity import Activity
from panel.core.enums import Severity

SHOWN: Final = 8
FALLEN_OFF_XID: Final = 79
FAULTS_COUNT: Final = timedelta(hours=24)
# A person has said of these that nothing is expected of them.
_LEFT_ALONE: Final = frozenset({ServerState.MAINTENANCE, ServerState.PENDING, ServerState.JOINING, ServerState.RETIRED})
_RANK: Final = {Severity.CRITICAL: 0, Severity.WARNING: 1, Severity.INFO: 2}


_COOLING: Final = gettext_lazy("Look at cooling and at the cards beside it; move load away if it stays.")
_THROTTLED: Final = Advice(gettext_lazy("slowed down by heat or power supply"), _COOLING, Severity.WARNING)
_HOT: Final = Advice(gettext_lazy("hot"), _COOLING, Severity.WARNING)
_NO_READINGS: Final = Advice(
    gettext_lazy("the server reports and no readings of this card come"),
    gettext_lazy("Look at the agent's log there; a call to this card's driver may not return."),
    Severity.WARNING,
)
_GHOST: Final = Advice(
    gettext_lazy("memory is held and no process is there to own it"),
    gettext_lazy("Mostly left behind by a killed program: reset the card once nothing uses it."),
    Severity.WARNING,
)


@dataclass(frozen=True, slots=True)
class Attention:
    """One thing to look at. hint: the next step, in words; action and href: where to go."""

    key: str
    severity: Severity
    sentence: str
    hint: str
    action: str
    href: str
    since: datetime | None = None


def attention(fleet: FleetRows) -> list[Attention]:
    """Return everything that needs somebody, worst first, then the newest first; the page shows the first `SHOWN`."""
    found = [
        item for row in fleet.servers if row.server.state not in _LEFT_ALONE for item in _of_server(row, fleet.now)
    ]
    return worst_first(found, now=fleet.now)


def worst_first(found: Iterable[Attention], *, now: datetime) -> list[Attention]:
    """Return what needs somebody, worst first, then the newest first."""
    return sorted(found, key=lambda item: (_RANK[item.severity], -(item.since or now).timestamp(), item.key))


def _of_server(row: ServerRow, now: datetime) -> Iterator[Attention]:
    if row.server.state == ServerState.NOT_REPORTING:
        yield _silent(row)
        return
    if row.server.driver_state not in {DriverState.OK, DriverState.UNKNOWN} and row.gpus:
        yield _driver(row)
    elif row.gone:
        yield _gone(row)
    yield from _of_cards(row, (item for gpu in row.gpus for item in _of_gpu(gpu, now)))
    if row.is_fresh:
        silent = (gpu for gpu in row.gpus if gpu.activity == Activity.NO_DATA and gpu.state == GpuState.OK)
        yield from _of_cards(row, (_CardItem("no_readings", gpu, _NO_READINGS, gpu.at) for gpu in silent))
    if row.has_skew:
        yield _skew(row, row.clock_skew_seconds or 0.0)


def _server_item(row: ServerRow, key: str, words: Advice, since: datetime | None = None) -> Attention:
    href = reverse("server", args=[row.server.pk])
    sentence, hint = str(words.sentence), str(words.next_step)
    return Attention(f"{key}.{row.server.pk}", words.severity, sentence, hint, _("Open server"), href, since)


@dataclass(frozen=True, slots=True)
class _CardItem:
    """Something about one card. detail: its own figure, left out when several cards share the sentence."""

    key: str
    gpu: GpuRow
    words: Advice
    since: datetime | None = None
    detail: str = ""


def _of_cards(row: ServerRow, items: Iterable[_CardItem]) -> Iterator[Attention]:
    """Say the same of several cards of a server once, so that one server does not fill the list."""
    groups: dict[tuple[str, str], list[_CardItem]] = defaultdict(list)
    for item in items:
        groups[item.key, str(item.words.sentence)].append(item)
    for group in groups.values():
        yield _one_card(group[0]) if len(group) == 1 else _several_cards(row, group)


def _one_card(item: _CardItem) -> Attention:
    gpu, words = item.gpu, item.words
    detail = f" ({item.detail})" if item.detail else ""
    sentence = said_of(f"{gpu.server_name} {gpu.label}", f"{words.sentence}{detail}")
    href = reverse("gpu", args=[gpu.id])
    return Attention(
        f"{item.key}.{gpu.id}", words.severity, sentence, str(words.next_step), _("Open GPU"), href, item.since
    )


def _several_cards(row: ServerRow, group: Sequence[_CardItem]) -> Attention:
    words = group[0].words
    names = listed(item.gpu.label for item in group)
    sentence = said_of(f"{row.server.name} {names}", str(words.sentence))
    since = min((item.since for item in group if item.since is not None), default=None)
    return _server_item(row, group[0].key, Advice(sentence, words.next_step, words.severity), since)


def _silent(row: ServerRow) -> Attention:
    advice = server_advice(ServerState.NOT_REPORTING)
    words = Advice(said_of(row.server.name, str(advice.sentence)), advice.next_step, advice.severity)
    return _server_item(row, "silent", words, row.last_seen_at or row.server.state_changed_at)


def _driver(row: ServerRow) -> Attention:
    advice = driver_advice(row.server.driver_state)
    words = Advice(said_of(row.server.name, str(advice.sentence)), advice.next_step, advice.severity)
    return _server_item(row, "driver", words, row.server.driver_since)


def _gone(row: ServerRow) -> Attention:
    sentence = _("%(server)s: %(present)s of %(known)s GPUs. Gone: %(names)s.") % {
        "server": row.server.name,
        "present": len(row.gpus) - len(row.gone),
        "known": len(row.gpus),
        "names": listed(f"{gpu.label} {gpu.short_uuid}" for gpu in row.gone),
    }
    advice = gpu_advice(row.gone[0].state, row.gone[0].state_reason)
    since = min(gpu.state_changed_at for gpu in row.gone)
    return _server_item(row, "gone", Advice(sentence, advice.next_step, Severity.CRITICAL), since)


def _of_gpu(gpu: GpuRow, now: datetime) -> Iterator[_CardItem]:
    if gpu.activity in LOST_STATES:
        return
    if gpu.state == GpuState.DEGRADED or (gpu.state == GpuState.UNKNOWN and gpu.state_reason != DRIVER_REASON):
        yield _CardItem("state", gpu, gpu_advice(gpu.state, gpu.state_reason), gpu.state_changed_at)
    fault = gpu.fault
    if fault is not None and now - fault.last_at <= FAULTS_COUNT and _is_back(gpu, fault):
        yield _came_back(gpu, fault)
    elif fault is not None and fault.severity != Severity.INFO and now - fault.last_at <= FAULTS_COUNT:
        meaning = fault_meaning(fault.kind, fault.code)
        sentence = f"{fault.kind.upper()} {fault.code}. {meaning.sentence}"
        advice = Advice(sentence, str(meaning.step.value), Severity(fault.severity))
        yield _CardItem("fault", gpu, advice, fault.last_at)
    else:
        yield from (_CardItem("health", gpu, advice) for advice in health_advice(gpu.health)[:1])
    yield from _of_readings(gpu)


def _is_back(gpu: GpuRow, fault: LastFault) -> bool:
    """Say whether the card fell off the bus and answers again since then."""
    has_fallen = fault.kind == "xid" and fault.code == FALLEN_OFF_XID
    return has_fallen and gpu.state == GpuState.OK and gpu.state_changed_at > fault.last_at


def _came_back(gpu: GpuRow, fault: LastFault) -> _CardItem:
    at = formatting.absolute(gpu.state_changed_at, zone=False, seconds=False)
    sentence = _("lost with XID %(code)s, came back at %(at)s; watch it") % {"code": fault.code, "at": at}
    hint = _("Should it be lost again, ask the provider for another card.")
    return _CardItem("fault", gpu, Advice(sentence, hint, Severity.WARNING), gpu.state_changed_at)


def _of_readings(gpu: GpuRow) -> Iterator[_CardItem]:
    temperature = gpu.values.get("temperature_celsius")
    if gpu.is_throttled or gpu.is_hot:
        words = _THROTTLED if gpu.is_throttled else _HOT
        yield _CardItem(
            "hot", gpu, words, detail=formatting.with_unit(temperature, "celsius") if temperature is not None else ""
        )
    if gpu.activity == Activity.GHOST:
        yield _CardItem(
            "ghost", gpu, _GHOST, detail=formatting.with_unit(gpu.values.get("memory_used_bytes") or 0, "gib")
        )


def _skew(row: ServerRow, seconds: float) -> Attention:
    text = (
        _("The clock of %(server)s is %(skew)s ahead.")
        if seconds > 0
        else _("The clock of %(server)s is %(skew)s behind.")
    )
    hint = _("Turn on time synchronisation there; until then its samples carry the panel's time.")
    sentence = text % {"server": row.server.name, "skew": formatting.duration(seconds)}
    return _server_item(row, "skew", Advice(sentence, hint, Severity.WARNING))


@dataclass(frozen=True, slots=True)
class Counts:
    """The tiles: whole cards only, slices are part of them."""

    total: int
    reporting: int
    busy: int
    idle: int
    parked: int
    unsure: int
    gone: int
    silent: int
    hot: int
    throttled: int
    mean_utilization_percent: float | None
    servers: int
    servers_ready: int
    servers_joining: int


def counts(fleet: FleetRows) -> Counts:
    """Count cards by what they do. The mean is over those that reported within three intervals; None when none did."""
    gpus = fleet.gpus
    by = Counter(gpu.activity for gpu in gpus)
    readings = [value for gpu in gpus if gpu.reports and (value := gpu.values.get("utilization_percent")) is not None]
    return Counts(
        total=len(gpus),
        reporting=sum(gpu.reports for gpu in gpus),
        busy=by[Activity.BUSY],
        idle=by[Activity.IDLE],
        parked=by[Activity.PARKED] + by[Activity.GHOST],
        unsure=by[Activity.CANNOT_TELL],
        gone=by[Activity.MISSING] + by[Activity.LOST],
        silent=by[Activity.NO_DATA],
        hot=sum(gpu.is_hot for gpu in gpus),
        throttled=sum(gpu.is_throttled for gpu in gpus),
        mean_utilization_percent=sum(readings) / len(readings) if readings else None,
        servers=len(fleet.servers),
        servers_ready=_count_state(fleet.servers, ServerState.READY),
        servers_joining=_count_state(fleet.servers, ServerState.JOINING),
    )


def _count_state(rows: Iterable[ServerRow], state: ServerState) -> int:
    return sum(row.server.state == state for row in rows)
