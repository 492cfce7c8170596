"""The panel's own prober as a place of diagnoses: their rounds beside its schedule, in the process that probes."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import structlog

from fleet.agent import __version__
from fleet.agent.probes.thread import NotRunningError, ProberThread
from fleet.agent.rounds.plan import Found, Plan, RoundFound
from fleet.agent.rounds.running import Probe, run_rounds
from monitoring.diagnosing.enums import ReportState
from monitoring.diagnosing.following import panel_found
from monitoring.diagnosing.models import DiagnosisReport
from monitoring.diagnosing.places import PANEL, places_of, plan_of
from monitoring.probes.panel import VANTAGE
from panel.core.errors import FleetdeckError

# A diagnosis that began longer ago was not seen in time: its other places are far ahead.
MISSED: Final = timedelta(minutes=5)
log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Work:
    future: "Future[None]"
    wanted: int
    rounds: list[RoundFound] = field(default_factory=list)


class PanelRounds:
    """The rounds under way. `step` is called again and again by the process's own loop; it never waits."""

    def __init__(self, thread: ProberThread) -> None:
        self._thread = thread
        self._works: dict[int, _Work] = {}

    def step(self, at: datetime) -> None:
        """Begin what is asked for, say how far everything is, hand over what is done, end what nobody wants."""
        for report in _asked(at):
            if report.pk not in self._works:
                self._begin(report)
        for report_id, work in list(self._works.items()):
            is_done = work.future.done()
            found = Found(rounds=list(work.rounds), agent_version=__version__) if is_done else None
            percent = min(100 * len(work.rounds) // max(work.wanted, 1), 100)
            if not _is_wanted(report_id, found, percent, at) or is_done:
                work.future.cancel()
                del self._works[report_id]

    def close(self) -> None:
        """End everything."""
        for work in self._works.values():
            work.future.cancel()
        self._works.clear()

    def _begin(self, report: DiagnosisReport) -> None:
        place = next(each for each in places_of(report) if each.key == PANEL)
        try:
            plan = plan_of(report, place)
            work = _Work(Future(), len(plan.slots))
            work.future = self._thread.begin(_measuring(plan, work.rounds.append))
        except (FleetdeckError, NotRunningError) as error:
            log.warning("diagnosis.panel_cannot", report=report.pk, error=str(error))
            return
        self._works[report.pk] = work


def _measuring(plan: Plan, on_round: Callable[[RoundFound], None]) -> "Callable[[Probe], asyncio.Future[None]]":
    def begin(probe: Probe) -> "asyncio.Future[None]":
        return asyncio.ensure_future(run_rounds(plan, VANTAGE, probe, on_round))

    return begin


def _asked(at: datetime) -> list[DiagnosisReport]:
    """Return diagnoses that want this place and have not heard from it to the end."""
    running = DiagnosisReport.objects.filter(state=ReportState.RUNNING, begin_at__gt=at - MISSED)
    return [
        report
        for report in running.order_by("pk")
        if PANEL not in report.found and any(place.key == PANEL for place in places_of(report))
    ]


def _is_wanted(report_id: int, found: Found | None, percent: int, at: datetime) -> bool:
    try:
        return panel_found(report_id=report_id, found=found, percent=percent, at=at)
    except FleetdeckError:  # it is gone
        return False
