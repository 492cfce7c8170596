"""The places of a diagnosis and their plans: who measures in which slots, what, and when within them. Pure but for the models."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from fleet.agent.probes.target import Target
from fleet.agent.rounds.plan import Measure, Plan, Sweeps
from monitoring.diagnosing.assembling import measure_of
from monitoring.diagnosing.models import DiagnosisReport
from monitoring.probing.targets import target_read
from panel.core.marks import probe_mark

PANEL: Final = "panel"
# Beside the ids of probes, so that a prober's own connections and schedule stay apart.
TARGET_ID: Final = 1_000_000_000
STREAMS: Final = frozenset({"chat", "completion"})


class Place(Struct, omit_defaults=True, kw_only=True):
    """One place. key: `panel`, or `server:<id>` (outside) and `host:<id>:<port>` (the engine's machine).

    slots: those in which it measures. job: of its agent, None for the panel. port, path: of the engine, on the host.
    """

    key: Annotated[str, Meta(max_length=48)]
    role: Literal["outside", "host"]
    name: str
    server: int | None = None
    job: int | None = None
    port: int | None = None
    replica: int | None = None
    slots: list[int] = []
    offset_seconds: float = 0.0
    control: dict[str, Any] | None = None


def places_of(report: DiagnosisReport) -> list[Place]:
    """Return the report's places."""
    return msgspec.convert(report.places, list[Place])


def spread(outside: Sequence[Place], hosts: Sequence[Place], *, rounds: int, slot_seconds: float) -> list[Place]:
    """Return the places with slots and moments of their own.

    Places outside measure in every slot, at moments that lie apart, so that they do not queue behind one another. Hosts take
    turns, as a gateway gives each its share of callers; each at the end of its slot.
    """
    step = slot_seconds / (len(outside) + 1)
    every = list(range(rounds))
    away = [
        msgspec.structs.replace(place, slots=every, offset_seconds=round(number * step, 3))
        for number, place in enumerate(outside)
    ]
    near = [
        msgspec.structs.replace(place, slots=every[number :: len(hosts)], offset_seconds=round(len(outside) * step, 3))
        for number, place in enumerate(hosts)
    ]
    return [*away, *near]


def measure_for(report: DiagnosisReport) -> Measure:
    """Return which time the report is about, as agents write it."""
    return _MEASURES[measure_of(report.metric, is_stream=report.target["kind"] in STREAMS).value]


_MEASURES: Final[Mapping[str, Measure]] = {"total": "total", "ttft": "ttft", "e2e": "e2e"}


def plan_of(report: DiagnosisReport, place: Place, *, clock_skew_seconds: float = 0.0) -> Plan:
    """Return what a place is told. clock_skew_seconds: its clock minus the panel's."""
    is_host = place.role == "host"
    return Plan(
        target=_host_target(report, place) if is_host else _outside_target(report),
        begin_at=report.begin_at.timestamp() + clock_skew_seconds,
        slot_seconds=report.slot_seconds,
        slots=place.slots,
        offset_seconds=place.offset_seconds,
        control=_control(place),
        metrics_path=str(report.context.get("metrics_path") or "") if is_host else "",
        metrics_port=report.context.get("metrics_port") if is_host else None,
        measure=measure_for(report),
        typical_tokens=int(report.context.get("typical_tokens") or 512),
        sweeps=_sweeps(report, place),
    )


def _outside_target(report: DiagnosisReport) -> Target:
    given = {**report.target, "connections": ["cold", "warm"]}
    if given["kind"] not in _WITH_WARM:
        given["connections"] = ["cold"]
    target = _read(report, given, report.bearer)
    if report.subject_kind == "endpoint":  # gateways count such requests apart from load
        return msgspec.structs.replace(target, mark=probe_mark(report.subject_kind, report.subject_id))
    return target


_WITH_WARM: Final = frozenset({"http", "chat", "completion", "kserve_ready", "kserve_infer", "grpc_health"})


def _host_target(report: DiagnosisReport, place: Place) -> Target:
    """Return the same request to the engine itself, over loopback and without what stands before it."""
    given = {key: value for key, value in report.target.items() if key not in _OF_THE_WAY}
    prefix = str(report.context.get("path_prefix") or "")
    path = str(given.get("path") or "/")
    if prefix and path.startswith(prefix + "/"):
        given["path"] = path.removeprefix(prefix)
    given |= {"host": "127.0.0.1", "port": place.port, "connections": ["cold"]}
    if report.context.get("model") and "model" in given:
        given["model"] = report.context["model"]
    return _read(report, given, report.host_bearer)


# What belongs to the way to the engine, and not to what is asked of it.
_OF_THE_WAY: Final = frozenset(
    {"host", "port", "is_tls", "server_name", "is_verified", "family", "headers", "follow", "server", "connections"}
)


def _read(report: DiagnosisReport, given: dict[str, Any], bearer: str) -> Target:
    return target_read(
        given, number=TARGET_ID + report.pk, interval_seconds=max(report.slot_seconds, 1.0), bearer=bearer
    )


def _control(place: Place) -> Target | None:
    return msgspec.convert(place.control, Target) if place.control is not None else None


def _sweeps(report: DiagnosisReport, place: Place) -> Sweeps | None:
    """Return the sweeps for the first host alone: two at once would load one service twice."""
    hosts = [each for each in places_of(report) if each.role == "host"]
    if report.sweeps is None or not hosts or hosts[0].key != place.key:
        return None
    return msgspec.convert(report.sweeps, Sweeps)
