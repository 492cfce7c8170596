"""The log of one generation, read forward in whole lines and no faster than the panel wants it."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from fleet.agent.engines.keeper import base_of
from fleet.agent.orders import LIMITS, LogChunk

START_BYTES: Final = 512 * 1024
BYTES_PER_SECOND: Final = 8 * 1024
MOST_SAVED_BYTES: Final = 64 * 1024
CHUNK_BYTES: Final = 48 * 1024
LEAST_BYTES: Final = 4 * 1024
# Of a line that is longer than a chunk its end is not shown: a secret may be cut in two there, and not be known for one.
BLIND_BYTES: Final = 1024
LAST_LINE_BYTES: Final = 8_192
_MAX_TEXT: Final = LIMITS["log_chunk_bytes"]


class LogReader:
    """Reads from where it came; `offset` counts all bytes of this generation, those in files that were moved aside too.

    A start earns START_BYTES at once, time earns BYTES_PER_SECOND. What is beyond is skipped, the oldest first, and counted:
    the end of a log says why an engine died.
    """

    def __init__(
        self, path: Path, replica: int, generation: int, redact: Callable[[str], str], offset: int = 0
    ) -> None:
        self._path = path
        self._replica = replica
        self.generation = generation
        self._redact = redact
        self.offset = offset
        self._allowance = float(START_BYTES)
        self._earned_at = time.monotonic()
        self._skipped = self._size = 0
        self._is_within_line = False

    def earn_start(self) -> None:
        """Let another start be read in full."""
        self._allowance = float(START_BYTES)

    def next(self, now: float, *, is_last: bool = False) -> LogChunk | None:
        """Return the next chunk, None when nothing is there or may be read yet. Call `taken` when the panel has it.

        is_last: the engine has ended, so a line without an end is whole too.
        """
        self._earn(now)
        self._skip()
        if self._allowance < min(LEAST_BYTES, self._end() - self.offset):
            return None
        data = self._read(min(CHUNK_BYTES, int(self._allowance)), is_last=is_last)
        if not data:
            return None
        text = self._redact(data.decode(errors="replace"))
        return LogChunk(self._replica, self.generation, self.offset, _within(text), self._skipped)

    def taken(self, chunk: LogChunk, size: int) -> None:
        """Go on behind a chunk of so many bytes."""
        self.offset = chunk.offset + size
        self._allowance -= size
        self._skipped -= chunk.skipped_bytes

    @property
    def size(self) -> int:
        """How many bytes the last `next` read."""
        return self._size

    # ---- inside

    def _earn(self, now: float) -> None:
        seconds, self._earned_at = max(now - self._earned_at, 0.0), now
        if self._allowance < MOST_SAVED_BYTES:
            self._allowance = min(self._allowance + seconds * BYTES_PER_SECOND, float(MOST_SAVED_BYTES))

    def _skip(self) -> None:
        """Leave out what can never be caught up with, and the rest of a line that was cut off, up to the end of a line."""
        surplus = max(self._end() - self.offset - max(int(self._allowance), MOST_SAVED_BYTES), 0)
        if not surplus and not self._is_within_line:
            return
        self._leave_out(surplus)
        while behind := self._bytes_at(self.offset, CHUNK_BYTES):
            end = behind.find(b"\n") + 1
            self._leave_out(end or len(behind))
            self._is_within_line = end == 0
            if end:
                return

    def _leave_out(self, count: int) -> None:
        self.offset += count
        self._skipped += count

    def _read(self, most: int, *, is_last: bool) -> bytes:
        """Return whole lines, or the beginning of one that is longer than a chunk."""
        data = self._bytes_at(self.offset, most)
        end = data.rfind(b"\n") + 1
        if end == 0 and len(data) >= CHUNK_BYTES:
            end, self._is_within_line = CHUNK_BYTES - BLIND_BYTES, True
        elif end == 0 and is_last:
            end = len(data)
        self._size = end
        return data[:end]

    def _end(self) -> int:
        try:
            return base_of(str(self._path)) + self._path.stat().st_size
        except OSError:
            return 0

    def _bytes_at(self, offset: int, most: int) -> bytes:
        """Return bytes of the log by their place in all of it, from the file that was moved aside when they lie there."""
        base = base_of(str(self._path))
        try:
            if offset >= base:
                return _slice(self._path, offset - base, most)
            aside = self._path.with_name(f"{self._path.name}.1")
            first = base - aside.stat().st_size
            if offset < first:
                self._skipped += first - offset
                self.offset = offset = first
            return _slice(aside, offset - first, min(most, base - offset))
        except OSError:
            return b""


def last_line(path: Path) -> str:
    """Return the last line of a log that says something, empty when there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(path.stat().st_size - LAST_LINE_BYTES, 0))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _slice(path: Path, start: int, most: int) -> bytes:
    with path.open("rb") as file:
        file.seek(start)
        return file.read(most)


def _within(text: str) -> str:
    """Return the text within the bound of a message, in bytes."""
    encoded = text.encode()
    return text if len(encoded) <= _MAX_TEXT else encoded[:_MAX_TEXT].decode(errors="ignore")
