"""What containers say, copied to the same files that processes write into, each line once."""

import os
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from fleet.agent.engines import keeper

MOST_BYTES: Final = 4 << 20


class Place(msgspec.Struct):
    """How far a container's output is known. seen: how many lines have this very stamp: some engines stamp by the second."""

    container: str = ""
    stamp: str = ""
    seen: int = 0


def fetch(client: Any, container: str, log: Path) -> None:
    """Append the lines that are not known yet, within a bound. Raises what the client raises, and OSError."""
    if not log.parent.is_dir():
        return
    place = _place(log)
    if place.container != container:
        place = Place(container)
    since = {"since": max(int(_seconds(place.stamp)) - 1, 1)} if place.stamp else {}
    pieces, size = [], 0
    for piece in client.logs(container, stdout=True, stderr=True, timestamps=True, stream=True, follow=False, **since):
        pieces.append(piece)
        size += len(piece)
        if size > MOST_BYTES:
            break
    lines, place = lines_after(place, b"".join(pieces), is_cut=size > MOST_BYTES)
    if not lines:
        return
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(b"".join(lines))
    keeper.write(f"{log}.place", msgspec.to_builtins(place))
    keeper.rotate(str(log), keeper.LOG_BYTES)


def lines_after(place: Place, data: bytes, *, is_cut: bool = False) -> tuple[list[bytes], Place]:
    """Return (the lines after a place without their stamps, the new place). is_cut: the last line may not be whole."""
    lines: list[bytes] = []
    new = Place(place.container, place.stamp, place.seen)
    at_place = 0
    known = _key(place.stamp)
    for line in data.splitlines(keepends=True)[: -1 if is_cut else None]:
        word, _, text = line.partition(b" ")
        stamp = word.decode(errors="replace")
        key = _key(stamp)
        if key == known:
            at_place += 1
        if key < known or (key == known and at_place <= place.seen):
            continue
        lines.append(text if text.endswith(b"\n") else text + b"\n")
        new.seen = new.seen + 1 if key == _key(new.stamp) else 1
        new.stamp = stamp
    return lines, new


def _key(stamp: str) -> tuple[str, str]:
    """Return what orders stamps of one engine: the seconds, then the fraction with its zeros."""
    head, _, rest = stamp.partition(".")
    digits = rest.partition("Z")[0].partition("+")[0]
    return head[:19], "".join(sign for sign in digits if sign.isdigit()).ljust(9, "0")


def _seconds(stamp: str) -> float:
    zone = stamp[19:].lstrip(".0123456789")
    try:
        return datetime.fromisoformat(f"{stamp[:19]}{'+00:00' if zone in {'Z', ''} else zone}").timestamp()
    except ValueError:
        return 0.0


def _place(log: Path) -> Place:
    try:
        return msgspec.json.decode(Path(f"{log}.place").read_bytes(), type=Place)
    except (OSError, msgspec.MsgspecError):
        return Place()
