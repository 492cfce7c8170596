"""The Celery worker around an agent: app, in-memory broker, threads and beat in one process."""

import logging
import os
import signal
import sys
from types import FrameType
from typing import Final

from celery import Celery
from celery.worker import WorkController
from celery.worker import state as worker_state

from fleet.agent import memory
from fleet.agent.runtime import Agent
from fleet.agent.timetable import TASK_OF, BeatStep, Timetable
from fleet.agent.watchdog import Watchdog

# One for each kind of work, and one to spare.
THREADS: Final = 4
EXIT_OK: Final = 0

log = logging.getLogger(__name__)


def make_app(agent: Agent) -> Celery:
    """Return the Celery app whose three tasks are one agent's work."""
    # No fix-ups: a DJANGO_SETTINGS_MODULE in the environment of a panel's own agent is none of its business.
    app = Celery("fleetdeck-agent", broker="memory://localhost//", set_as_current=False, fixups=[])
    app.conf.update(
        broker_transport="fleet.agent.broker:Transport",
        broker_connection_retry_on_startup=True,
        task_ignore_result=True,
        task_default_queue="agent",
        worker_enable_remote_control=False,
        worker_send_task_events=False,
        worker_prefetch_multiplier=1,
        timezone="UTC",
    )
    app.steps["worker"].add(BeatStep)

    @app.task(name=TASK_OF["sample"])
    def sample() -> None:
        agent.sample()

    @app.task(name=TASK_OF["report"])
    def report() -> None:
        agent.report()

    @app.task(name=TASK_OF["sync"])
    def sync() -> None:
        agent.sync()

    return app


def run_agent(agent: Agent) -> int:
    """Run until SIGTERM or SIGINT; returns the exit status. Call from the main thread."""
    timetable = Timetable()
    worker = WorkController(
        app=make_app(agent),
        timetable=timetable,
        pool_cls="threads",
        concurrency=THREADS,
        loglevel="WARNING",
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )
    successor = _Successor()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    agent.start(on_stale_library=successor.want)
    agent.intervals.attach(timetable)
    watchdog = Watchdog(lambda: min(agent.last_sample, agent.last_report))
    watchdog.start()
    memory.trim()
    worker.start()
    watchdog.stop()
    agent.close()
    successor.start()
    log.info("Stopped.")
    return worker.exitcode or EXIT_OK


class _Successor:
    """A new process in place of this one, under the same pid, when the driver's library was replaced under it."""

    def __init__(self) -> None:
        self._is_wanted = False

    def want(self) -> None:
        """End this process's work; the successor starts when that is done."""
        if not self._is_wanted:
            log.warning("The driver was upgraded; this agent starts itself again to read it by the new library.")
        self._is_wanted = True
        worker_state.should_stop = EXIT_OK  # type: ignore[assignment]

    def start(self) -> None:
        """Become the successor if one is wanted."""
        if self._is_wanted:
            os.execv(sys.executable, [sys.executable, "-m", "fleet.agent", *sys.argv[1:]])  # noqa: S606 (no shell is wanted)


def _stop(_number: int, _frame: FrameType | None) -> None:
    """Have the worker's loop end; it looks once a second."""
    worker_state.should_stop = EXIT_OK  # type: ignore[assignment]
