"""Rules on what is known already: silent agents, faults of cards, cards that are missing, certificates that end."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.db import connection

from fleet.enums import GpuState, ServerState
from fleet.models import Agent, Gpu, GpuFault, Lease
from monitoring.alerts.conditions.reading import NO_DATA, QUIET, Reading
from monitoring.alerts.subjects import Key
from monitoring.probing.models import Probe
from panel.core.enums import Severity

Found = tuple[Key, Reading, dict[str, Any]]

SILENT_AFTER: Final = timedelta(minutes=3)
HEARD_WITHIN: Final = timedelta(seconds=60)
FAULT_LASTS: Final = timedelta(minutes=10)
# Days left, the severest last.
CERTIFICATE: Final = ((21.0, Severity.INFO), (7.0, Severity.WARNING), (1.0, Severity.CRITICAL))
_RENEWED: Final = 21.0
_LOOKED_EVERY: Final = timedelta(minutes=10)


def agents_silent(now: datetime) -> Iterator[Found]:
    """Yield servers whose agent was not heard for a while; of one that was stopped or ended on purpose nothing is expected."""
    asleep = set(
        Lease.objects.filter(ended_at=None, server__isnull=False)
        .exclude(wanted="running")
        .values_list("server_id", flat=True)
    )
    agents = Agent.objects.filter(revoked_at=None, server__retired_at=None, last_seen_at__isnull=False)
    for server_id, seen_at in agents.values_list("server_id", "last_seen_at"):
        if seen_at is None:
            continue
        silence = now - seen_at
        if server_id in asleep or silence < HEARD_WITHIN:
            yield ("server", server_id), QUIET, {}
        else:
            evidence = {"silent_seconds": int(silence.total_seconds()), "seen_at": seen_at.isoformat()}
            yield ("server", server_id), Reading(is_breach=silence >= SILENT_AFTER), evidence


def faults(now: datetime) -> Iterator[Found]:
    """Yield cards with a fault that matters within the last ten minutes. What a card keeps saying is not a new one."""
    recent = GpuFault.objects.filter(last_at__gt=now - FAULT_LASTS, gpu__isnull=False, server__retired_at=None)
    worst: dict[int, GpuFault] = {}
    for fault in recent.exclude(severity=Severity.INFO).order_by("last_at"):
        held = worst.get(fault.gpu_id or 0)
        if held is None or held.severity != Severity.CRITICAL or fault.severity == Severity.CRITICAL:
            worst[fault.gpu_id or 0] = fault
    for gpu_id, fault in worst.items():
        evidence = {"kind": fault.kind, "code": fault.code, "message": fault.message, "count": fault.count}
        yield ("gpu", gpu_id), Reading(is_breach=True, severity=Severity(fault.severity)), evidence


def cards_missing(_now: datetime) -> Iterator[Found]:
    """Yield cards that are lost or missing; of those of a silent server nothing is known."""
    rows = Gpu.objects.filter(removed_at=None, server__retired_at=None).exclude(state=GpuState.OK)
    for gpu_id, state, reason, server_state in rows.values_list("pk", "state", "state_reason", "server__state"):
        if (
            server_state not in {ServerState.READY, ServerState.DEGRADED, ServerState.DRAINING}
            or state == GpuState.UNKNOWN
        ):
            yield ("gpu", gpu_id), NO_DATA, {}
        elif state in {GpuState.LOST, GpuState.MISSING}:
            yield ("gpu", gpu_id), Reading(is_breach=True), {"state": state, "reason": reason}


_CERTIFICATES: Final = """
    SELECT DISTINCT ON (probe_id) probe_id, (facts ->> 'certificate_days')::float8 FROM probe_result
    WHERE probe_id = ANY(%s) AND started_at > %s AND jsonb_exists(facts, 'certificate_days') ORDER BY probe_id, started_at DESC
"""


class Certificates:
    """How long certificates last, looked up every ten minutes: they end in days."""

    def __init__(self) -> None:
        self._looked_at = datetime.min.replace(tzinfo=UTC)
        self._days: dict[int, float] = {}

    def found(self, now: datetime) -> Iterator[Found]:
        """Yield what each probe's target shows."""
        if now - self._looked_at >= _LOOKED_EVERY or now < self._looked_at:
            self._look(now)
        about = {
            pk: (kind, subject_id) if kind and subject_id else ("probe", pk)
            for pk, kind, subject_id in Probe.objects.filter(pk__in=self._days, is_enabled=True).values_list(
                "pk", "subject_kind", "subject_id"
            )
        }
        soonest: dict[Key, float] = {}
        for pk, days in self._days.items():
            if pk in about:
                soonest[about[pk]] = min(days, soonest.get(about[pk], days))
        for key, days in soonest.items():
            reached = [severity for limit, severity in CERTIFICATE if days <= limit]
            reading = Reading(is_breach=True, severity=reached[-1]) if reached else QUIET
            yield key, reading, {"days": round(days, 1)}

    def _look(self, now: datetime) -> None:
        known = [
            pk for pk, target in Probe.objects.filter(is_enabled=True).values_list("pk", "target")
            if target.get("is_tls") or target.get("kind") == "tls"
        ]  # fmt: skip
        with connection.cursor() as cursor:
            cursor.execute(_CERTIFICATES, [known, now - 2 * _LOOKED_EVERY])
            self._days = dict(cursor.fetchall()) if known else {}
        self._looked_at = now
