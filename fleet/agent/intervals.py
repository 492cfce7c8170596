"""How often things are done: what the panel asks, within what this machine allows, passed on to whoever keeps the time."""

from typing import Final, Protocol

from fleet.agent import wire
from fleet.agent.policy import Policy
from fleet.agent.state import Identity

LONGEST_SECONDS: Final = 60.0
SYNC_SECONDS: Final = 30.0


class Timetable(Protocol):
    """Calls `sample`, `report` and `sync` at intervals."""

    def set_interval(self, name: str, seconds: float) -> None:
        """Do this so often from now on."""

    def hasten(self, name: str, seconds: float) -> None:
        """Do this in so many seconds at the latest, once."""


class Intervals:
    """The intervals that hold now; changes reach the timetable at once."""

    def __init__(self, identity: Identity, policy: Policy) -> None:
        self._policy = policy
        self._timetable: Timetable | None = None
        self._assignments_version: int | None = None
        self._is_pcie_asked = False
        self.sample_seconds = self._bounded(identity.sample_interval_seconds)
        self.report_seconds = min(max(identity.report_interval_seconds, 1.0), LONGEST_SECONDS)

    @property
    def is_pcie_wanted(self) -> bool:
        """Whether the panel asks for PCIe traffic where only calls that block tell it, and this machine allows it."""
        return self._is_pcie_asked and self._policy.allow_pcie_throughput

    def attach(self, timetable: Timetable) -> None:
        """Tell the intervals to a timetable, now and whenever they change."""
        self._timetable = timetable
        timetable.set_interval("sample", self.sample_seconds)
        timetable.set_interval("report", self.report_seconds)
        timetable.set_interval("sync", SYNC_SECONDS)

    def hasten(self, name: str, seconds: float) -> None:
        """Have something done sooner than its interval says."""
        if self._timetable is not None:
            self._timetable.hasten(name, seconds)

    def follow_answer(self, answer: wire.ReportAnswer) -> None:
        """Take the intervals of an answer; have the assignments fetched if they changed."""
        self._follow(answer.sample_interval_seconds, answer.report_interval_seconds)
        if answer.assignments_version != self._assignments_version:
            self._assignments_version = answer.assignments_version
            self.hasten("sync", 0.0)

    def follow_assignments(self, assignments: wire.Assignments) -> None:
        """Take what the panel assigns."""
        self._is_pcie_asked = assignments.collect_pcie_throughput

    def _follow(self, sample_seconds: float, report_seconds: float) -> None:
        sample_seconds = self._bounded(sample_seconds)
        report_seconds = min(max(report_seconds, 1.0), LONGEST_SECONDS)
        if sample_seconds != self.sample_seconds:
            self.sample_seconds = sample_seconds
            if self._timetable is not None:
                self._timetable.set_interval("sample", sample_seconds)
        if report_seconds != self.report_seconds:
            self.report_seconds = report_seconds
            if self._timetable is not None:
                self._timetable.set_interval("report", report_seconds)

    def _bounded(self, seconds: float) -> float:
        return min(max(seconds, self._policy.minimum_sample_interval_seconds), LONGEST_SECONDS)
