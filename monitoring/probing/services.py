"""Probes: made, changed, removed, run at once; results of agents taken; what is kept and what goes."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from django.db import Error as DatabaseError
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from fleet.agent import orders
from fleet.agent.probes.result import ProbeResult
from fleet.agent.probes.target import Connection, Target
from fleet.models import Server
from fleet.services.agents import AgentIdentity
from fleet.services.telling import assignments_change
from monitoring.histograms import LogHistogram
from monitoring.probes.panel import probe_now
from monitoring.probing.models import Probe, ProbeHour
from monitoring.probing.reading import hour_values
from monitoring.probing.storing import known_probes, results_store
from monitoring.probing.tables import CONNECTIONS, KEPT_DAYS, METRICS, PANEL, TABLES
from monitoring.probing.targets import target_of
from panel.accounts.audit import Actor, audit
from panel.core.clock import now
from panel.core.errors import Conflict, InvalidInput, NotFound, TooLarge
from panel.core.partitions import PartitionsBusy, partitions_drop, partitions_make

DAYS_AHEAD: Final = 7
MOST_PROBES: Final = 5_000
# Hours are summed up again for this long, in case an agent was away.
LATE: Final = timedelta(hours=48)
SETTABLE: Final = frozenset(
    {
        "name", "target", "bearer", "interval_seconds", "vantages", "subject_kind", "subject_id", "metric",
        "threshold_ms", "is_enabled",
    }
)  # fmt: skip
log = structlog.get_logger(__name__)


def probe_create(*, actor: Actor, **given: Any) -> Probe:
    """Make a probe; given: columns of SETTABLE, `name` and `target` at least. Raises InvalidInput or Conflict."""
    if Probe.objects.count() >= MOST_PROBES:
        raise InvalidInput(_("More probes than that are not kept; remove some first."))
    probe = Probe(created_at=now(), created_by_name=actor.name[:200], vantages=["panel"])
    _set(probe, given)
    try:
        with transaction.atomic():
            probe.save()
            audit(actor=actor, action="probe.create", target=probe, target_name=probe.name, after=_shown(given))
            _tell(probe.vantages)
    except IntegrityError:
        raise Conflict(_("There is a probe of this name."), code="name_taken") from None
    return probe


def probe_update(*, probe_id: int, actor: Actor, **given: Any) -> Probe:
    """Change a probe. Its results stay, also when its target changes. Raises NotFound, InvalidInput or Conflict."""
    try:
        with transaction.atomic():
            probe = _locked(probe_id)
            before = {name: getattr(probe, name) for name in given if name in SETTABLE}
            places = set(probe.vantages)
            _set(probe, given)
            probe.save()
            audit(
                actor=actor, action="probe.update", target=probe, target_name=probe.name,
                before=_shown(before), after=_shown(given),
            )  # fmt: skip
            _tell(places | set(probe.vantages))
    except IntegrityError:
        raise Conflict(_("There is a probe of this name."), code="name_taken") from None
    return probe


def probe_delete(*, probe_id: int, actor: Actor) -> None:
    """Remove a probe with its hours; its results go with their day. Raises NotFound."""
    with transaction.atomic():
        probe = _locked(probe_id)
        audit(actor=actor, action="probe.delete", target=probe, target_name=probe.name)
        _tell(probe.vantages)
        probe.delete()


def probe_run(*, probe_id: int, actor: Actor, connection: Connection = "cold") -> ProbeResult:
    """Probe once from the panel, now, and keep the result. Takes as long as the target's timeout. Raises NotFound."""
    probe = Probe.objects.filter(pk=probe_id).first()
    if probe is None:
        raise NotFound(_("There is no such probe."))
    audit(actor=actor, action="probe.run", target=probe, target_name=probe.name)
    result = probe_now(target_of(probe), connection)
    results_store(server_id=PANEL, results=[result], known={probe.pk}, at=now())
    return result


def probe_run_everywhere(*, probe_id: int, actor: Actor) -> list[ProbeResult]:
    """Have every place of a probe look at once; returns what the panel found, if it is one of them.

    Agents hear of it with their next report and tell their results as always. A paused probe is run from the panel alone:
    agents do not have it. Takes as long as the target's timeout. Raises NotFound.
    """
    with transaction.atomic():
        probe = _locked(probe_id)
        audit(actor=actor, action="probe.run", target=probe, target_name=probe.name)
        if probe.is_enabled:
            probe.run += 1
            probe.save(update_fields=["run"])
            _tell([name for name in probe.vantages if name != "panel"])
    if "panel" not in probe.vantages and probe.is_enabled:
        return []
    target = target_of(probe)
    found = [probe_now(target, connection) for connection in target.connections]
    results_store(server_id=PANEL, results=found, known={probe.pk}, at=now())
    return found


def probe_check(*, actor: Actor, probe_id: int | None = None, **given: Any) -> tuple[Target, ProbeResult]:
    """Probe once from the panel what is not saved yet, and keep nothing but the trace in the audit trail.

    probe_id: whose bearer is used when none is given. Raises NotFound or InvalidInput.
    """
    probe = Probe(name="check", vantages=["panel"])
    if probe_id is not None:
        known = Probe.objects.filter(pk=probe_id).first()
        if known is None:
            raise NotFound(_("There is no such probe."))
        probe.bearer = known.bearer
    _set(probe, {"name": "check", **given})
    target = target_of(probe)
    where = f"{target.kind} {target.host}:{target.default_port}"
    audit(actor=actor, action="probe.check", target_name=where[:200])
    return target, probe_now(target, target.connections[0])


def _locked(probe_id: int) -> Probe:
    probe = Probe.objects.select_for_update().filter(pk=probe_id).first()
    if probe is None:
        raise NotFound(_("There is no such probe."))
    return probe


def _shown(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name != "bearer"}


def _set(probe: Probe, given: Mapping[str, Any]) -> None:
    """Set and check. Raises InvalidInput."""
    unknown = set(given) - SETTABLE
    if unknown:
        raise InvalidInput(_("There is no such setting: %(names)s") % {"names": ", ".join(sorted(unknown))})
    for name, value in given.items():
        setattr(probe, name, value)
    if not probe.name.strip():
        raise InvalidInput(_("A probe needs a name."), field="name")
    if probe.metric not in METRICS:
        raise InvalidInput(_("It is one of: %(names)s") % {"names": ", ".join(METRICS)}, field="metric")
    if probe.threshold_ms is not None and not probe.threshold_ms > 0:
        raise InvalidInput(_("A threshold is more than 0 ms."), field="threshold_ms")
    _check_vantages(probe.vantages)
    target_of(probe)


def _check_vantages(vantages: Sequence[str]) -> None:
    ids = {name.removeprefix("server:") for name in vantages if name not in {"panel", "agents"}}
    wrong = [each for each in ids if not (each.isascii() and each.isdecimal() and len(each) < 10)]
    known = set(Server.objects.filter(pk__in=ids - set(wrong)).values_list("pk", flat=True))
    if wrong or not vantages or {int(each) for each in ids} - known:
        raise InvalidInput(
            _("A place is `panel`, `agents` (all of them) or `server:` with the id of a server; name one at least."),
            field="vantages",
        )


def _tell(vantages: Sequence[str] | set[str]) -> None:
    """Have the agents concerned fetch their assignments once the transaction commits."""
    if "agents" in vantages:
        assignments_change(Server.objects.filter(retired_at=None).values_list("pk", flat=True))
    else:
        assignments_change(int(name.removeprefix("server:")) for name in vantages if name.startswith("server:"))


def agent_results(*, identity: AgentIdentity, report: orders.ProbesReport) -> int:
    """Take what an agent found; returns how many results were new. Raises TooLarge."""
    if len(report.results) > orders.LIMITS["probe_results"]:
        raise TooLarge(_("Those are more results than one message may hold."))
    known = known_probes(identity.server_id)
    return results_store(server_id=identity.server_id, results=report.results, known=known, at=now())


def hours_sum_up(*, at: datetime) -> int:
    """Keep a histogram for each closed hour of the last two days; returns how many were written. Repeatable."""
    end = at.replace(minute=0, second=0, microsecond=0)
    count = 0
    hour = end - LATE
    while hour < end:
        count += _sum_up(hour)
        hour += timedelta(hours=1)
    return count


def _sum_up(hour: datetime) -> int:
    known = set(Probe.objects.values_list("pk", flat=True))
    rows = [
        ProbeHour(
            probe_id=probe_id,
            server_id=server_id,
            connection=CONNECTIONS.index(connection),
            metric=METRICS.index(metric),
            hour_at=hour,
            histogram=LogHistogram.of(values).as_json(),
        )
        for (probe_id, server_id, connection, metric), values in hour_values(hour).items()
        if probe_id in known
    ]
    ProbeHour.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["probe", "server_id", "connection", "metric", "hour_at"],
        update_fields=["histogram"],
    )
    return len(rows)


def result_partitions_make(*, at: datetime) -> None:
    """Have room for results of yesterday to a week ahead; trouble with one table does not stop the other."""
    for table in TABLES:
        try:
            partitions_make(table, first=(at - timedelta(days=2)).date(), last=(at + timedelta(days=DAYS_AHEAD)).date())
        except PartitionsBusy:
            continue
        except DatabaseError as error:
            log.exception("probing.partitions_failed", table=table.name, error=str(error))


def results_forget(*, at: datetime) -> None:
    """Drop the days that are older than results are kept."""
    for table in TABLES:
        try:
            partitions_drop(table, before=(at - timedelta(days=KEPT_DAYS)).date())
        except PartitionsBusy:
            continue
        except DatabaseError as error:
            log.exception("probing.partitions_failed", table=table.name, error=str(error))
