"""The data plane's access log: read on from where the last report ended, moved aside when it is large."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

LARGE_BYTES: Final = 64 * 1024 * 1024
OLD: Final = ".1"


class Cursor(msgspec.Struct, frozen=True):
    """A place in the log: everything before it is in a report. inode: of the file."""

    inode: int
    offset: int


class AccessLog:
    """Whole lines from a cursor on, over at most two files: the one that grows, and the one that was moved aside."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._old_path = path.with_name(path.name + OLD)
        self._cursor: Cursor | None = None

    def start_at(self, cursor: Cursor | None) -> None:
        """Read on from a cursor; from the beginning of what is there when its file is gone."""
        self._cursor = cursor

    def lines(self) -> Iterator[tuple[bytes, Cursor]]:
        """Yield each whole line that is there, with the cursor behind it.

        The newer file is read only if it was there before the older one was read to its end: else lines might still be
        added to that one in between, and would be passed over.
        """
        is_new_there = self._path.exists()
        for path in (self._old_path, self._path):
            if path == self._path and not is_new_there:
                return
            with suppress(FileNotFoundError), path.open("rb") as file:
                inode = os.fstat(file.fileno()).st_ino
                if self._is_read_already(path, inode):
                    continue
                yield from self._lines_of(file, inode)

    def advance(self, cursor: Cursor) -> None:
        """Note that everything before a cursor is in a report."""
        self._cursor = cursor

    @property
    def is_large(self) -> bool:
        """Whether it is time to move it aside. Never two at once: the old one has to be read first."""
        with suppress(FileNotFoundError):
            return self._path.stat().st_size >= LARGE_BYTES and not self._old_path.exists()
        return False

    def move_aside(self) -> None:
        """Let the data plane begin a new file, once it is told to open it again."""
        self._path.replace(self._old_path)

    def drop_old(self) -> None:
        """Remove the file that was moved aside when it is read to its end and the new one is there."""
        with suppress(FileNotFoundError):
            status = self._old_path.stat()
            new = self._path.stat()
            is_read = self._cursor is not None and (
                self._cursor.inode == new.st_ino or self._cursor == Cursor(status.st_ino, status.st_size)
            )
            if is_read:
                self._old_path.unlink()

    def _is_read_already(self, path: Path, inode: int) -> bool:
        """Say whether the cursor is in the newer file, so that nothing of the older one is left to read."""
        if path != self._old_path or self._cursor is None or self._cursor.inode == inode:
            return False
        with suppress(FileNotFoundError):
            return self._path.stat().st_ino == self._cursor.inode
        return False

    def _lines_of(self, file: BinaryIO, inode: int) -> Iterator[tuple[bytes, Cursor]]:
        offset = self._cursor.offset if self._cursor is not None and self._cursor.inode == inode else 0
        file.seek(offset if offset <= os.fstat(file.fileno()).st_size else 0)
        offset = file.tell()
        for line in file:
            if not line.endswith(b"\n"):
                return  # still being written
            offset += len(line)
            yield line, Cursor(inode, offset)
