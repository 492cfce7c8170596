"""Diagnoses that nobody asked for: an endpoint misses its objective beyond doubt, and the reason is looked for at once."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

import structlog

from monitoring.diagnosing.enums import ReportCause, ReportState
from monitoring.diagnosing.models import DiagnosisReport
from monitoring.diagnosing.starting import diagnosis_start
from monitoring.percentiles import breaches_needed
from monitoring.probing.models import Probe
from monitoring.probing.reading import Latency, latency
from panel.accounts.audit import Actor
from panel.core.errors import FleetdeckError

WINDOW: Final = timedelta(minutes=30)
# One endpoint is looked into at most this often: the reason rarely changes within hours, and measuring is traffic.
PAUSE: Final = timedelta(hours=6)
# At once, of all endpoints together: when everything is slow, ten reports say no more than three.
MOST_RUNNING: Final = 3
PERCENTILE: Final = 0.95
ALPHA: Final = 0.01
FEWEST: Final = 30  # samples of one place
log = structlog.get_logger(__name__)


def objectives_watch(*, at: datetime) -> list[int]:
    """Begin a diagnosis for each endpoint whose probe misses its threshold; returns the ids of the reports.

    Paired rounds only: sweeps load an engine, which nobody has agreed to.
    """
    probes = Probe.objects.filter(is_enabled=True, subject_kind="endpoint").exclude(threshold_ms=None).order_by("pk")
    begun: list[int] = []
    for probe in probes:
        if DiagnosisReport.objects.filter(state=ReportState.RUNNING).count() >= MOST_RUNNING:
            break
        if not _is_due(probe, at) or not is_missed(_latencies(probe, at), probe.threshold_ms or 0.0):
            continue
        try:
            report = diagnosis_start(probe_id=probe.pk, actor=Actor.system("diagnosis"), cause=ReportCause.OBJECTIVE)
        except FleetdeckError as error:  # no place, a busy agent: the next round tries again
            log.info("diagnosis.not_begun", probe=probe.pk, reason=error.message)
        else:
            begun.append(report.pk)
    return begun


def is_missed(found: Iterable[Latency], threshold_ms: float) -> bool:
    """Say whether a place sees more than 5 % of requests over the threshold beyond doubt (exact binomial test at 1 %).

    `found` has shares over threshold_ms, failures included. Fewer than 30 samples say nothing.
    """
    return threshold_ms > 0 and any(_is_over(each) for each in found if each.connection == "cold")


def _is_over(each: Latency) -> bool:
    n = each.percentiles[0].n if each.percentiles else 0
    if n < FEWEST or each.over is None:
        return False
    return round(each.over * n) >= breaches_needed(n, q=PERCENTILE, alpha=ALPHA)


def _latencies(probe: Probe, at: datetime) -> list[Latency]:
    return latency(probe_id=probe.pk, metric=probe.metric, start=at - WINDOW, end=at, threshold_ms=probe.threshold_ms)


def _is_due(probe: Probe, at: datetime) -> bool:
    """Whether nothing was looked into for the endpoint within the pause, by anybody."""
    same = DiagnosisReport.objects.filter(subject_kind=probe.subject_kind, subject_id=probe.subject_id or 0)
    return not same.filter(created_at__gt=at - PAUSE).exclude(state=ReportState.CANCELLED).exists()
