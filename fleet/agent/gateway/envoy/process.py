"""Envoy as a process that outlives the agent: found again by pid and start time, started again when it ended."""

import logging
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from fleet.agent.backoff import Backoff
from fleet.agent.clock import os_boot_id
from fleet.agent.gateway.envoy.admin import Admin, AdminError
from fleet.agent.gateway.envoy.bootstrap import with_admin
from fleet.agent.gateway.envoy.layout import ENVOY_LOG, replace
from fleet.agent.gateway.envoy.proc import Record, end, is_same, last_line, set_limits, start_ticks, status_of

RECORD: Final = "process.json"
OUTPUT: Final = "output.log"
# A process that lived this long was no part of a crash loop.
STEADY_SECONDS: Final = 30.0
OUTPUT_KEPT: Final = 64 * 1024
# How long requests may go on in an Envoy that another one has taken over from.
LEAVING_SECONDS: Final = 600.0
# Callers hear on their next answer that their connection ends; meanwhile they may still send on it.
LINGER_SECONDS: Final = 5.0

log = logging.getLogger(__name__)


class Book(msgspec.Struct):
    """What runs: the Envoy that serves, and those that only finish what they began. started: how many there ever were."""

    serving: Record | None = None
    leaving: list[Record] = []
    started: int = 0


class EnvoyProcess:
    """The Envoys of a folder: one, and for a while two when another program takes over. Not for several threads at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._book = Book()
        self._is_read = False
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self._backoff = Backoff(0.5, 30.0, has_jitter=False)
        self._start_at = 0.0
        self._started_at = float("-inf")
        self.admin = Admin(folder, "none")
        self.last_end = ""

    @property
    def pid(self) -> int | None:
        """The process that serves, None when none does."""
        return self._book.serving.pid if self._book.serving is not None and self.is_running() else None

    def is_running(self) -> bool:
        """Say whether the process that served still is the one that was started."""
        self._read()
        return self._book.serving is not None and self._is_there(self._book.serving)

    def keep(self, command: Sequence[str]) -> bool:
        """Have it run: adopt, start when that is due, take over from one that was started in another way.

        Returns whether one was started just now. Raises OSError.
        """
        self._read()
        self._see_off()
        if self.is_running():
            if time.monotonic() - self._started_at > STEADY_SECONDS:
                self._backoff.reset()
            if self._book.serving is None or self._book.serving.command == list(command) or self._book.leaving:
                return False
            log.info("The gateway's Envoy is another one now: it takes over, the old one finishes what it began.")
            self._book.leaving.append(self._book.serving)
        elif self._book.serving is not None:
            self._ended(self._book.serving)
        if time.monotonic() < self._start_at:
            return False
        self._start_at = time.monotonic() + self._backoff.next_delay()
        self._start(list(command))
        return True

    def end_stuck(self) -> None:
        """End the one that serves, by force: it does not listen. The next `keep` starts another."""
        record = self._book.serving
        if record is None:
            return
        log.warning("The gateway's Envoy (process %d) answers nobody any more, and is ended.", record.pid)
        end(record, self._is_there, signals=(signal.SIGKILL,))
        self._ended(record)
        self.last_end = "Envoy ran and answered nobody any more, so it was ended and started again."
        self._save()

    def reopen_log(self) -> None:
        """Have every Envoy here write its access log to a new file. Raises AdminError."""
        self.admin.ask("POST", "/reopen_logs")
        for record in self._book.leaving:
            with suppress(AdminError):
                Admin(self._folder, record.socket).ask("POST", "/reopen_logs")

    def stop(self) -> None:
        """End all of them, by force if they do not listen."""
        self._read()
        for record in filter(None, [self._book.serving, *self._book.leaving]):
            end(record, self._is_there)
        self._book = Book(started=self._book.started)
        self._save()

    # ---- inside

    def _read(self) -> None:
        """Take up what an earlier run of the agent left running."""
        if self._is_read:
            return
        self._is_read = True
        try:
            book = msgspec.json.decode((self._folder / RECORD).read_bytes(), type=Book)
        except (OSError, msgspec.MsgspecError):
            return
        self._book = Book(None, [record for record in book.leaving if is_same(record)], book.started)
        if book.serving is not None and is_same(book.serving):
            self._book.serving = book.serving
            self.admin = Admin(self._folder, book.serving.socket)
            log.info("The gateway's Envoy runs on as process %d.", book.serving.pid)

    def _is_there(self, record: Record) -> bool:
        child = self._children.get(record.pid)
        if child is not None and child.poll() is not None:
            return False
        return is_same(record)

    def _start(self, command: list[str]) -> None:
        output = self._folder / OUTPUT
        if output.exists() and output.stat().st_size > OUTPUT_KEPT:
            output.unlink()
        self._book.started += 1
        socket_name = f"admin-{self._book.started}.sock"
        with output.open("ab") as file:
            child = subprocess.Popen(
                with_admin(command, socket_name),
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
                restore_signals=False,  # Python ignores SIGXFSZ: a file at its limit is an error to Envoy, not its end
            )
        self._children[child.pid] = child
        self._started_at = time.monotonic()
        set_limits(child.pid)
        # One that ended at once has no start time any more, and is found to have ended by the next look.
        ticks = start_ticks(child.pid) or 0
        self._book.serving = Record(child.pid, ticks, os_boot_id(), socket_name, command, time.time())
        self.admin = Admin(self._folder, socket_name)
        self._save()
        log.info("The gateway's Envoy was started as process %d.", child.pid)

    def _see_off(self) -> None:
        """Let the ones that were taken over from go, when the new one serves and they have nothing left to do."""
        for record in list(self._book.leaving):
            admin = Admin(self._folder, record.socket)
            if self._is_there(record) and self.admin.is_ready():
                seconds = time.time() - (self._book.serving or record).started_at
                try:
                    # Close each connection with its next answer, and take no more.
                    admin.ask("POST", "/healthcheck/fail")
                    admin.ask("POST", "/drain_listeners")
                    active = admin.stats(r"^http[.]callers[.]downstream_rq_active$")
                except AdminError:
                    active = {}
                if seconds > LEAVING_SECONDS or (seconds > LINGER_SECONDS and not any(active.values())):
                    end(record, self._is_there)
            if not self._is_there(record):
                self._book.leaving.remove(record)
                (self._folder / record.socket).unlink(missing_ok=True)
                self._save()

    def _ended(self, record: Record) -> None:
        child = self._children.pop(record.pid, None)
        code = None if child is None else status_of(child)
        how = "" if code is None else f" with {signal.Signals(-code).name if code < 0 else f'status {code}'}"
        said = last_line(self._folder / ENVOY_LOG) or last_line(self._folder / OUTPUT)
        self.last_end = f"Envoy ended{how}. {said}".strip()
        log.warning("The gateway's Envoy (process %d) ended%s. %s", record.pid, how, said)
        (self._folder / record.socket).unlink(missing_ok=True)
        self._book.serving = None

    def _save(self) -> None:
        with suppress(OSError):
            if self._folder.is_dir():
                replace(self._folder / RECORD, msgspec.json.encode(self._book))
