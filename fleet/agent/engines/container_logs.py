"""What containers say, copied to the same files that processes write into, each line once."""

import os
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from fleet.agent.engines import keeper

MOST_BYTES: Final = 4 << 20


def fetch(client: Any, name: str, log: Path, is_ours: Callable[[], bool]) -> None:
    """Append the lines after the last that is known, within a bound. Raises what the client raises."""
    if not log.parent.is_dir() or not is_ours():
        return
    last = _last(log)
    since = {"since": _seconds(last)} if last else {}
    pieces, size = [], 0
    for piece in client.logs(name, stdout=True, stderr=True, timestamps=True, stream=True, follow=False, **since):
        pieces.append(piece)
        size += len(piece)
        if size > MOST_BYTES:
            break
    lines, newest = _after(b"".join(pieces), last)
    if not lines:
        return
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(b"".join(lines))
    keeper.write(f"{log}.since", newest)
    keeper.rotate(str(log), keeper.LOG_BYTES)


def _after(data: bytes, last: str) -> tuple[list[bytes], str]:
    """Return (lines after a stamp without their stamps, the newest stamp)."""
    lines, newest = [], last
    for line in data.splitlines(keepends=True):
        stamp, _, text = line.partition(b" ")
        at = stamp.decode(errors="replace")
        if _key(at) > _key(last):
            lines.append(text if text.endswith(b"\n") else text + b"\n")
            newest = at
    return lines, newest


def _key(stamp: str) -> tuple[str, str]:
    """Return what orders stamps of one engine: the seconds, then the fraction with its zeros."""
    head, _, rest = stamp.partition(".")
    digits = "".join(sign for sign in rest.partition("Z")[0].partition("+")[0] if sign.isdigit())
    return head.rstrip("Z")[:19], digits.ljust(9, "0")


def _seconds(stamp: str) -> float:
    head, fraction = _key(stamp)
    zone = stamp[19:].lstrip(".0123456789")
    at = datetime.fromisoformat(f"{head}{'+00:00' if zone in {'Z', ''} else zone}")
    return at.timestamp() + float(f"0.{fraction[:6]}")


def _last(log: Path) -> str:
    with suppress(OSError, ValueError):
        return Path(f"{log}.since").read_text().strip().strip('"')
    return ""
