"""Processes of an earlier run whose supervisor was killed: the kernel told them to end; here we make sure."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

from panel.up.datadir import read_json, replace_private

PATIENCE_SECONDS: Final = 15.0
CLOCK_GRACE_SECONDS: Final = 2.0


def record(path: Path, pids: Iterable[int]) -> None:
    """Write down the sessions that we lead, with the time each began, since numbers are used again."""
    sessions = {}
    for pid in pids:
        with suppress(psutil.Error):
            sessions[str(pid)] = psutil.Process(pid).create_time()
    replace_private(path, json.dumps(sessions))


def _members(sessions: dict[int, float]) -> list[psutil.Process]:
    """Return the processes that belong to one of the sessions and are no older than it."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, ProcessLookupError):
            began = sessions.get(os.getsid(process.pid))
            if began is not None and process.create_time() >= began - CLOCK_GRACE_SECONDS:
                found.append(process)
    return found


def end(path: Path, *, say: Callable[[str], None], patience_seconds: float = PATIENCE_SECONDS) -> None:
    """Wait for what an earlier run left behind, end it when it does not end by itself, and forget the record."""
    written = read_json(path)
    if not isinstance(written, dict):
        return
    sessions = {int(pid): float(began) for pid, began in written.items()}
    left = _members(sessions)
    if left:
        say(f"An earlier run left {len(left)} processes behind; ending them first")
        for process in left:
            with suppress(psutil.Error):
                process.send_signal(signal.SIGINT if process.name() == "postgres" else signal.SIGTERM)
        deadline = time.monotonic() + patience_seconds
        _, left = psutil.wait_procs(left, timeout=max(0.0, deadline - time.monotonic()))
        for process in left:
            with suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(left, timeout=5.0)
    path.unlink(missing_ok=True)
