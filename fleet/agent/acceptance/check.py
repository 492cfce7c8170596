"""The acceptance check: one step after the other, each with an end, and one that fails costs only its own lines."""

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from fleet.agent import __version__, clock
from fleet.agent.acceptance.cards import COPY_SECONDS, copy_cards, read_cards
from fleet.agent.acceptance.disk import read_disk
from fleet.agent.acceptance.found import Found
from fleet.agent.acceptance.network import measure_panel, measure_target
from fleet.agent.host.facts import read_host_facts
from fleet.agent.host.processes import ProcessDirectory, has_host_pids
from fleet.agent.jobs.task import Task
from fleet.agent.lanes import Done, Errand, Failed, Lanes
from fleet.agent.nvml.card import ReadOptions
from fleet.agent.nvml.session import Session, open_session
from fleet.agent.nvml.states import DriverError

# No step begins after so long; with the last one's own end everything is over in about 90 s.
BEGIN_SECONDS: Final = 70.0
OPEN_SECONDS: Final = 25.0
DISK_SECONDS: Final = 30.0
NETWORK_SECONDS: Final = 30.0

log = logging.getLogger(__name__)
Say = Callable[[int, str], None]


def check(task: Task, say: Say) -> Found:
    """Measure this machine. say: percent and the name of the step that begins."""
    return _Check(task, say).run()


class _Check:
    def __init__(self, task: Task, say: Say) -> None:
        self._task = task
        self._say = say
        self._began = time.monotonic()
        self._lanes = Lanes()
        self._session: Session | None = None
        self._found = Found(at_ms=clock.now().at_ms, seconds=0.0, agent_version=__version__)

    def run(self) -> Found:
        target = str(self._task.arguments.get("target") or "")
        steps: list[tuple[str, int, float, Callable[[], object]]] = [
            ("host", 0, 5.0, self._host),
            ("cards", 5, OPEN_SECONDS + 20.0, self._cards),
            ("copy", 20, COPY_SECONDS + 30.0, self._copy),
            ("disk", 45, DISK_SECONDS, self._disk),
            ("panel", 65, NETWORK_SECONDS, lambda: measure_panel(self._task, self._found)),
        ]
        if target:
            steps.append(("target", 85, NETWORK_SECONDS, lambda: self._target(target)))
        for name, percent, seconds, work in steps:
            self._step(name, percent, seconds, work)
        self._found.seconds = round(time.monotonic() - self._began, 1)
        return self._found

    def _step(self, name: str, percent: int, seconds: float, work: Callable[[], object]) -> None:
        if time.monotonic() - self._began > BEGIN_SECONDS:
            self._found.missing[name] = "out_of_time"
            return
        self._say(percent, name)
        match Errand(work).outcome(seconds):
            case Done(_):
                return
            case Failed(error):
                log.error("The step %s failed.", name, exc_info=error)
                self._found.missing[name] = "failed"
            case _:
                self._found.missing[name] = "not_answering"

    def _host(self) -> None:
        facts = read_host_facts()
        found = self._found
        found.cpu_model, found.cpu_count = facts.cpu_model, facts.cpu_count
        found.cpu_limit, found.container = facts.container_cpu_limit, facts.container
        found.memory_total_bytes, found.memory_limit_bytes = (
            facts.memory_total_bytes,
            facts.container_memory_limit_bytes,
        )

    def _cards(self) -> None:
        are_pids_known = has_host_pids()
        names = ProcessDirectory(is_visible=bool(are_pids_known), is_private=not self._task.tell_process_names)
        options = ReadOptions(describe=names.describe, has_host_pids=are_pids_known)
        try:
            session = open_session(self._lanes, options)
        except DriverError as error:
            self._found.driver_state = error.state
            self._found.missing["cards"] = error.state
            return
        self._session = session
        self._found.driver_state = "ok"
        self._found.driver_version = session.driver_version[:64]
        self._found.cuda_version = session.cuda_version[:32]
        self._found.cards = read_cards(session, self._lanes)[:64]

    def _copy(self) -> None:
        if self._session is None or not self._found.cards:
            return
        count = len(self._found.cards)
        copy_cards(
            self._session,
            self._found.cards,
            self._lanes,
            seconds=COPY_SECONDS,
            told=lambda done: self._say(20 + 25 * done // count, "copy"),
        )

    def _disk(self) -> None:
        self._found.disk = read_disk(Path(self._task.directory))

    def _target(self, target: str) -> None:
        self._found.target = measure_target(self._task, target)
