"""One minute of one card: did it work, did it wait, or can nobody tell. Pure.

Utilisation is the share of time with at least one kernel resident: 0 is no proof of idleness (video, hidden slices, a driver
that stopped counting) and 100 none of work (a collective that spins). So a minute is quiet only if every signal that there is
says so, and where two of them contradict each other, or none speaks, it is unknown. Missing is never idle.
"""

from dataclasses import dataclass
from typing import Final

from monitoring.waste.enums import Ground, Use
from monitoring.waste.levels import Levels

# A desktop or a monitoring tool shows a percent or two.
WORK_FROM_PERCENT: Final = 3.0
# Below this share a card's memory is the driver's own.
HELD_FROM_SHARE: Final = 0.02
# Preparing data for a card keeps processors at least so busy (idle rules of notebook services ask for both to be low).
HOST_WORK_FROM_PERCENT: Final = 20.0
LEAST_PRESENT_SHARE: Final = 0.8


@dataclass(frozen=True, slots=True)
class Requests:
    """What the engine on a card had to do, less the panel's own probes: at most at once, and how many ended."""

    running_max: float
    waiting_max: float
    finished: float

    @property
    def is_any(self) -> bool:
        """Say whether somebody asked for anything."""
        return self.running_max > 0 or self.waiting_max > 0 or self.finished > 0


@dataclass(frozen=True, slots=True)
class Minute:
    """What was read of a card within a minute; None is not read, and never 0.

    present, expected: samples. work_percent: the most of utilisation and SM activity. media_percent: of encoder and decoder.
    power_watts: average. memory_share: most, 0 to 1. processes: None when they are not visible. requests: None without an
    engine that tells. host_cpu_percent: average of the whole machine, None while another of its cards works, because then
    it says nothing about this one. is_faulty: lost, missing, or a driver that answers with errors.
    """

    present: int
    expected: int
    work_percent: float | None = None
    media_percent: float | None = None
    power_watts: float | None = None
    memory_share: float | None = None
    processes: int | None = None
    requests: Requests | None = None
    host_cpu_percent: float | None = None
    is_faulty: bool = False

    @property
    def is_held(self) -> bool:
        """Say whether something is loaded: a process, or memory beyond the driver's own."""
        return bool(self.processes) or (self.memory_share or 0.0) >= HELD_FROM_SHARE


@dataclass(frozen=True, slots=True)
class Judged:
    """WORKING, PARKED, IDLE or UNKNOWN, and what that stands on."""

    use: Use
    ground: Ground


def judge(minute: Minute, levels: Levels) -> Judged:
    """Return what a card did in a minute. levels: what this card draws while it waits."""
    is_above = levels.is_above(minute.power_watts, is_held=minute.is_held)
    return _unreadable(minute) or _asked(minute) or _measured(minute, is_above=is_above)


def _unreadable(minute: Minute) -> Judged | None:
    if minute.is_faulty:
        return Judged(Use.UNKNOWN, Ground.UNREADABLE)
    if minute.expected <= 0 or minute.present < LEAST_PRESENT_SHARE * minute.expected:
        return Judged(Use.UNKNOWN, Ground.NO_READINGS)
    return None


def _asked(minute: Minute) -> Judged | None:
    if minute.requests is not None and minute.requests.is_any:
        return Judged(Use.WORKING, Ground.REQUESTS)
    if (minute.media_percent or 0.0) > 0:
        return Judged(Use.WORKING, Ground.MEDIA)
    return None


def _measured(minute: Minute, *, is_above: bool | None) -> Judged:
    if minute.work_percent is not None and minute.work_percent >= WORK_FROM_PERCENT:
        return _kernels(minute, is_above=is_above)
    return Judged(Use.WORKING, Ground.POWER) if is_above else _quiet(minute, is_above=is_above)


def _kernels(minute: Minute, *, is_above: bool | None) -> Judged:
    """Utilisation says busy. Believe it, unless nobody is there to work or power says that nothing is computed."""
    is_nobody_there = minute.processes == 0 and minute.memory_share is not None and not minute.is_held
    is_spinning = is_above is False and (minute.work_percent or 0.0) >= 95.0
    if is_nobody_there or is_spinning:
        return Judged(Use.UNKNOWN, Ground.CONTRADICTION)
    return Judged(Use.WORKING, Ground.KERNELS)


def _quiet(minute: Minute, *, is_above: bool | None) -> Judged:
    """No signal says work: name it quiet if enough of them speak."""
    if minute.work_percent is None and (minute.requests is None or is_above is None):
        return Judged(Use.UNKNOWN, Ground.HIDDEN)
    if not minute.is_held:
        if minute.processes is None and minute.memory_share is None:
            return Judged(Use.UNKNOWN, Ground.HIDDEN)
        return Judged(Use.IDLE, Ground.QUIET)
    if minute.requests is None and (minute.host_cpu_percent or 0.0) >= HOST_WORK_FROM_PERCENT:
        return Judged(Use.WORKING, Ground.HOST)
    return Judged(Use.PARKED, Ground.QUIET)
