"""Batches on disk until the panel has them: written before they are sent, sent in order, never sent under two names.

One file a batch, named <order>-<boot id>-<seq>-<samples>.batch and moved into place whole. When the spool is full or a
batch is too old the oldest goes, and what it held is counted. When the disk refuses, the newest batches wait in memory.
"""

import json
import logging
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

MEMORY_BYTES: Final = 8 * 1024 * 1024
KEPT_REFUSED: Final = 20
# A file older than this was dated by a clock that was wrong.
NONSENSE_AGE_SECONDS: Final = 30 * 86_400


@dataclass(eq=False, slots=True)
class Entry:
    """One batch that waits. born: monotonic seconds, guessed for files found. body: its bytes, if the disk did not take them."""

    order: int
    boot_id: str
    seq: int
    samples: int
    size: int
    born: float
    path: Path | None = None
    body: bytes | None = None


class Spool:
    """The batches that wait, oldest first; bounded in bytes and in age. Threads may use it at once."""

    def __init__(self, folder: Path, *, max_bytes: int, max_age_seconds: float) -> None:
        self._folder = folder
        self._refused = folder / "refused"
        self._refused.mkdir(parents=True, exist_ok=True)
        self._max_bytes = max_bytes
        self._max_age_seconds = max_age_seconds
        self._lock = threading.Lock()
        self._counts = self._read_counts()
        self._is_disk_failing = False
        self._entries = self._find()
        self._bytes = sum(entry.size for entry in self._entries)
        self._next_order = self._entries[-1].order + 1 if self._entries else 1

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def lost_samples(self) -> int:
        """How many samples this machine has lost since it joined: dropped here, or refused by the panel for good."""
        return self._counts["lost_samples"]

    @property
    def refused_batches(self) -> int:
        """How many batches the panel refused for good."""
        return self._counts["refused_batches"]

    def append(self, boot_id: str, seq: int, samples: int, body: bytes) -> None:
        """Add a batch; older ones make room."""
        with self._lock:
            entry = Entry(self._next_order, boot_id, seq, samples, len(body), time.monotonic())
            self._next_order += 1
            self._make_room(entry.size)
            self._store(entry, body)
            self._entries.append(entry)
            self._bytes += entry.size

    def oldest(self) -> tuple[Entry, bytes] | None:
        """Return the batch that is to be sent next with its bytes; files that cannot be read are counted as lost."""
        with self._lock:
            while self._entries:
                entry = self._entries[0]
                body = entry.body if entry.path is None else _read(entry.path)
                if body:
                    return entry, body
                log.warning("A spooled batch (%s, %d) cannot be read and is lost.", entry.boot_id, entry.seq)
                self._drop(entry)
        return None

    def done(self, entry: Entry) -> None:
        """Forget a batch: the panel has it."""
        with self._lock:
            self._remove(entry)

    def refuse(self, entry: Entry) -> None:
        """Move aside a batch that the panel will never take, and count what it held."""
        with self._lock:
            self._counts["refused_batches"] += 1
            if entry.path is not None and entry in self._entries:
                with suppress(OSError):
                    entry.path.replace(self._refused / entry.path.name)
            self._drop(entry)
            for path in sorted(self._refused.iterdir())[:-KEPT_REFUSED]:
                path.unlink(missing_ok=True)

    # ---- inside

    def _make_room(self, size: int) -> None:
        now = time.monotonic()
        dropped = 0
        while self._entries and (
            self._bytes + size > self._max_bytes or now - self._entries[0].born > self._max_age_seconds
        ):
            self._drop(self._entries[0])
            dropped += 1
        if dropped:
            log.warning("The spool is full: %d of the oldest batches were dropped.", dropped)

    def _store(self, entry: Entry, body: bytes) -> None:
        name = f"{entry.order:012d}-{entry.boot_id}-{entry.seq}-{entry.samples}.batch"
        aside = self._folder / f"{name}.new"
        try:
            aside.write_bytes(body)
            entry.path = aside.replace(self._folder / name)
        except OSError as error:
            with suppress(OSError):
                aside.unlink(missing_ok=True)
            self._keep_in_memory(entry, body, error)
        else:
            self._is_disk_failing = False

    def _keep_in_memory(self, entry: Entry, body: bytes, error: OSError) -> None:
        if not self._is_disk_failing:
            self._is_disk_failing = True
            log.error("Batches cannot be written to %s (%s): they wait in memory.", self._folder, error.strerror)
        entry.body = body
        in_memory = [other for other in self._entries if other.body is not None]
        while in_memory and sum(other.size for other in in_memory) + entry.size > MEMORY_BYTES:
            self._drop(in_memory.pop(0))

    def _drop(self, entry: Entry) -> None:
        """Remove a batch that was not delivered."""
        if self._remove(entry):
            self._counts["lost_samples"] += entry.samples
            self._write_counts()

    def _remove(self, entry: Entry) -> bool:
        if entry not in self._entries:
            return False
        self._entries.remove(entry)
        self._bytes -= entry.size
        if entry.path is not None:
            with suppress(OSError):
                entry.path.unlink(missing_ok=True)
        return True

    def _find(self) -> list[Entry]:
        """Return what an earlier run left, in order."""
        for path in self._folder.glob("*.new"):
            path.unlink(missing_ok=True)
        entries = [entry for path in self._folder.glob("*.batch") if (entry := _entry_of(path)) is not None]
        return sorted(entries, key=lambda entry: entry.order)

    def _read_counts(self) -> dict[str, int]:
        try:
            saved = json.loads((self._folder / "counts.json").read_text())
            return {name: int(saved[name]) for name in ("lost_samples", "refused_batches")}
        except (OSError, ValueError, KeyError, TypeError):
            return {"lost_samples": 0, "refused_batches": 0}

    def _write_counts(self) -> None:
        with suppress(OSError):
            (self._folder / "counts.json").write_text(json.dumps(self._counts))


def _entry_of(path: Path) -> Entry | None:
    """Return the entry that a file name tells of, None for other files."""
    try:
        order, rest = path.stem.split("-", 1)
        boot_id, seq, samples = rest.rsplit("-", 2)
        status = path.stat()
        age = time.time() - status.st_mtime
        age = age if 0 <= age < NONSENSE_AGE_SECONDS else 0.0
        return Entry(int(order), boot_id, int(seq), int(samples), status.st_size, time.monotonic() - age, path)
    except (OSError, ValueError):
        return None


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
