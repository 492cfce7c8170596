"""Diagnoses begun: who measures where, in which slots, and what it may cost the engine."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from fleet.agent.rounds.plan import Sweeps
from fleet.enums import JobKind
from fleet.models import Agent, Server
from fleet.services.jobs import job_create
from monitoring.diagnosing.asked import Host, Subject, subject_of
from monitoring.diagnosing.enums import ReportCause, ReportState
from monitoring.diagnosing.models import DiagnosisReport
from monitoring.diagnosing.places import PANEL, Place, plan_of, spread
from monitoring.diagnosing.telling import tell_report
from monitoring.probing.models import Probe
from panel.accounts.audit import Actor, audit
from panel.core.clock import now
from panel.core.errors import Conflict, InvalidInput, NotFound

ROUNDS: Final = 40
MOST_ROUNDS: Final = 60
SHORT_SLOT_SECONDS: Final = 10.0
LONG_SLOT_SECONDS: Final = 30.0
# Over this objective one request from each place may not fit into a short slot.
LONG_OBJECTIVE_MS: Final = 2_000.0
MOST_AGENTS_OUTSIDE: Final = 3
MOST_HOSTS: Final = 8
# Until agents have heard of it and begun.
LEAD: Final = timedelta(seconds=15)
# After the last slot and the sweeps: the last requests, and results on their way.
GRACE: Final = timedelta(minutes=3)
SEEN_WITHIN: Final = timedelta(minutes=2)
DEFAULT_THRESHOLD_MS: Final = 1_000.0


def diagnosis_start(
    *,
    probe_id: int,
    actor: Actor,
    hosts: Sequence[Host] = (),
    has_sweeps: bool = False,
    rounds: int = ROUNDS,
    slot_seconds: float | None = None,
    threshold_ms: float | None = None,
    cause: ReportCause = ReportCause.PERSON,
) -> DiagnosisReport:
    """Begin a diagnosis of what a probe is about; its places hear of it at once.

    hosts: the engine's machines, for a probe whose subject does not know them. has_sweeps: somebody agreed to load the engine.
    Raises NotFound, InvalidInput, or Conflict (one is under way, no place to measure from, an agent that is busy or gone).
    """
    probe = Probe.objects.filter(pk=probe_id).first()
    if probe is None:
        raise NotFound(_("There is no such probe."))
    if not 30 <= rounds <= MOST_ROUNDS:
        raise InvalidInput(_("From 30 to %(most)s rounds.") % {"most": MOST_ROUNDS}, field="rounds")
    subject = subject_of(probe, hosts)
    at = now()
    near = _hosts(subject)
    away = _outside(probe, {place.server for place in near if place.server is not None}, at)
    slot = slot_seconds or _slot_seconds(probe, threshold_ms)
    places = spread(away, near, rounds=rounds, slot_seconds=slot)
    sweeps = Sweeps() if has_sweeps else None
    length = timedelta(seconds=slot * rounds + (sweeps.most_seconds if sweeps else 0.0))
    report = DiagnosisReport(
        cause=cause,
        probe=probe,
        subject_kind=subject.kind,
        subject_id=subject.id,
        subject_name=subject.name[:100],
        target=probe.target,
        bearer=probe.bearer,
        host_bearer=subject.bearer or ("" if subject.kind != "probe" else probe.bearer),
        metric=probe.metric,
        threshold_ms=threshold_ms or probe.threshold_ms or DEFAULT_THRESHOLD_MS,
        begin_at=at + LEAD,
        slot_seconds=slot,
        rounds=rounds,
        sweeps=msgspec.to_builtins(sweeps) if sweeps else None,
        places=msgspec.to_builtins(places),
        context=subject.context(),
        progress={"percent": 0, "step": "waiting"},
        created_at=at,
        created_by_name=actor.name[:200],
        ends_at=at + LEAD + length + GRACE,
    )
    return _begin(report, places, actor)


def _begin(report: DiagnosisReport, places: list[Place], actor: Actor) -> DiagnosisReport:
    """Store it and ask the agents, all or nothing."""
    try:
        with transaction.atomic():
            report.save()
            plan_of(report, places[0])  # a target that cannot be asked is said before anybody is
            for place in places:
                if place.server is not None:
                    place.job = _ask(report, place, actor)
            report.places = msgspec.to_builtins(places)
            report.save(update_fields=["places"])
            audit(
                actor=actor, action="diagnosis.start", target=report, target_name=report.subject_name,
                after={"subject": report.subject_kind, "has_sweeps": report.sweeps is not None, "cause": report.cause},
            )  # fmt: skip
            tell_report(report)
    except IntegrityError:
        raise Conflict(_("A diagnosis of this is under way. Wait for it, or cancel it."), code="in_progress") from None
    return report


def _ask(report: DiagnosisReport, place: Place, actor: Actor) -> int:
    kind = JobKind.DIAGNOSE if place.role == "host" else JobKind.PROBE_ROUND
    assert place.server is not None  # noqa: S101  # the panel has no job
    context = {"report": report.pk, "place": place.key}
    return job_create(server_id=place.server, kind=kind, actor=actor, arguments={}, context=context).pk


def _slot_seconds(probe: Probe, threshold_ms: float | None) -> float:
    threshold = threshold_ms or probe.threshold_ms or DEFAULT_THRESHOLD_MS
    return SHORT_SLOT_SECONDS if threshold <= LONG_OBJECTIVE_MS else LONG_SLOT_SECONDS


def _hosts(subject: Subject) -> list[Place]:
    """Return the engine's machines, one port of each. Raises InvalidInput without any."""
    by_server: dict[int, Host] = {}
    for host in subject.hosts:
        by_server.setdefault(host.server_id, host)
    if not by_server:
        raise InvalidInput(
            _(
                "Nothing says on which machine the engine runs: name its server and its port there. Without the engine’s own"
                " side nobody can tell the network from the engine."
            ),
            field="hosts",
        )
    names = dict(Server.objects.filter(pk__in=by_server).values_list("pk", "name"))
    missing = set(by_server) - set(names)
    if missing:
        raise InvalidInput(_("There is no such server."), field="hosts")
    return [
        Place(
            key=f"host:{host.server_id}:{host.port}", role="host", name=names[host.server_id], server=host.server_id,
            port=host.port, replica=host.replica_id,
        )
        for host in list(by_server.values())[:MOST_HOSTS]
    ]  # fmt: skip


def _outside(probe: Probe, hosts: set[int], at: datetime) -> list[Place]:
    """Return the places from which the probe is measured, without the engine's own machines. Raises Conflict without any."""
    places = (
        [Place(key=PANEL, role="outside", name="panel", control=_control(PANEL))] if "panel" in probe.vantages else []
    )
    agents = Agent.objects.filter(revoked_at=None, last_seen_at__gte=at - SEEN_WITHIN).select_related("server")
    named = {int(name.removeprefix("server:")) for name in probe.vantages if name.startswith("server:")}
    if "agents" not in probe.vantages:
        agents = agents.filter(server_id__in=named)
    for agent in agents.exclude(server_id__in=hosts).order_by("server_id")[:MOST_AGENTS_OUTSIDE]:
        key = f"server:{agent.server_id}"
        places.append(
            Place(key=key, role="outside", name=agent.server.name, server=agent.server_id, control=_control(key))
        )
    if not places:
        raise Conflict(
            _("No place outside the engine’s machine measures this: add the panel, or another server, to the probe."),
            code="no_vantage",
        )
    return places


def _control(key: str) -> dict[str, Any] | None:
    """Return the target by which a place is judged itself, if one is set up there: JSON of a Target."""
    for probe in Probe.objects.filter(is_enabled=True, target__is_control=True).order_by("pk"):
        if key in probe.vantages or (key != PANEL and "agents" in probe.vantages):
            return {**probe.target, "id": probe.pk, "interval_seconds": probe.interval_seconds, "bearer": ""}
    return None


def running_of(kind: str, subject_id: int) -> DiagnosisReport | None:
    """Return the diagnosis of a subject that is under way."""
    return DiagnosisReport.objects.filter(subject_kind=kind, subject_id=subject_id, state=ReportState.RUNNING).first()
