"""How often and how long: every span of time that engines are treated by, in seconds."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """look: how often it is seen whether an engine runs. check: the real request while it is answered; recheck: before the first

    answer and after one that did not come. metrics: its page. grace: between SIGTERM and SIGKILL. quiet: for how long nothing may
    run before an engine counts as drained; unannounced_quiet: the same when gateways may not know yet. first_answer: patience
    with a first request, which may compile kernels. steady: an engine that was ready for so long starts anew without a pause.
    """

    look: float = 1.0
    check: float = 5.0
    recheck: float = 1.0
    metrics: float = 2.0
    first_answer: float = 60.0
    grace: float = 30.0
    quiet: float = 1.0
    unannounced_quiet: float = 3.0
    first_backoff: float = 1.0
    longest_backoff: float = 60.0
    crash_window: float = 600.0
    most_starts: int = 3
    steady: float = 600.0
    report: float = 10.0
    logs: float = 1.0
    step: float = 0.5
    stale: float = 20.0
