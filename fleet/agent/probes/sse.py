"""Server-sent events from bytes that come in any pieces (the HTML standard's text/event-stream)."""

import re
from typing import Final, NamedTuple

LONGEST_EVENT_BYTES: Final = 1024 * 1024
_END: Final = re.compile(rb"\r\n|\r|\n")
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class EventTooLongError(ValueError):
    """One event has more bytes than any engine sends."""


class Event(NamedTuple):
    """One event. name: `message` where the stream gives none."""

    name: str
    data: str


class Parser:
    """Feed it bytes; it returns the events that are complete. comments: lines that begin with a colon, seen so far."""

    def __init__(self, longest: int = LONGEST_EVENT_BYTES) -> None:
        self._longest = longest
        self._rest = bytearray()
        self._looked_at = 0
        self._data: list[bytes] = []
        self._size = 0
        self._name = b""
        self._is_first_line = True
        self._skips_line_feed = False
        self.comments = 0

    def feed(self, piece: bytes) -> list[Event]:
        """Return the events that this piece completes. Raises EventTooLongError."""
        if self._skips_line_feed and piece:
            piece = piece.removeprefix(b"\n")
            self._skips_line_feed = False
        self._rest += piece
        found: list[Event] = []
        start = 0
        for end in _END.finditer(self._rest, self._looked_at):
            self._line(bytes(self._rest[start : end.start()]), found)
            start = end.end()
            # A carriage return at the very end may be the first half of a line's end: its line feed is no empty line.
            self._skips_line_feed = start == len(self._rest) and end.group() == b"\r"
        del self._rest[:start]
        self._looked_at = len(self._rest)
        if self._size + len(self._rest) > self._longest:
            raise EventTooLongError(f"an event is longer than {self._longest} bytes")
        return found

    def finish(self) -> list[Event]:
        """Return what stood at the end without an empty line behind it: servers that forget it are understood as well."""
        found = self.feed(b"\n") if self._rest else []
        self._dispatch(found)
        return found

    def _line(self, line: bytes, found: list[Event]) -> None:
        if self._is_first_line:
            self._is_first_line = False
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if not line:
            self._dispatch(found)
        elif line.startswith(b":"):
            self.comments += 1
        else:
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if name == b"data":
                self._data.append(value)
                self._size += len(value) + 1
                if self._size > self._longest:
                    raise EventTooLongError(f"an event is longer than {self._longest} bytes")
            elif name == b"event":
                self._name = value

    def _dispatch(self, found: list[Event]) -> None:
        if self._data:
            text = b"\n".join(self._data).decode("utf-8", "replace")
            found.append(Event(self._name.decode("utf-8", "replace") or "message", text))
        self._data, self._size, self._name = [], 0, b""
