"""How many bytes a second go to an address and come from it, over HTTP, in bounded portions."""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import httpx

FIRST_BYTES: Final = 128 * 1024
LARGEST_BYTES: Final = 4 * 1024 * 1024
MOST_BYTES: Final = 128 * 1024 * 1024
SECONDS: Final = 5.0
# A portion that was over sooner is followed by one twice as large.
SHORT_SECONDS: Final = 0.5
BLOCK_BYTES: Final = 65_536
PANEL_TIME_HEADER: Final = "Fleetdeck-Panel-Time-Ms"
CLOCK_LOOKS: Final = 5


class SpeedError(Exception):
    """It could not be measured. reason: a short code for the report."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass
class Speed:
    """What was moved, in how long; the first portion, in which a connection gets up to speed, is not in it."""

    size: int = 0
    seconds: float = 0.0

    @property
    def bytes_per_second(self) -> float:
        """Return the mean over all portions but the first."""
        return self.size / self.seconds if self.seconds > 0 else 0.0


def portions(largest: int = LARGEST_BYTES) -> Iterator[int]:
    """Yield sizes of portions until time or bytes are used up; each is as large as the speed so far allows."""
    began, size, total = time.monotonic(), FIRST_BYTES, 0
    while time.monotonic() - began < SECONDS and total < MOST_BYTES:
        asked = time.monotonic()
        yield size
        total += size
        if time.monotonic() - asked < SHORT_SECONDS:
            size = min(size * 2, largest)


def panel_down(http: httpx.Client) -> Speed:
    """Fetch from the panel. Raises SpeedError."""
    return _repeat(lambda size: _fetch(http, f"/api/agent/v1/speed/down/?bytes={size}"))


def panel_up(http: httpx.Client) -> Speed:
    """Send to the panel. Raises SpeedError."""
    return _repeat(lambda size: _send(http, "/api/agent/v1/speed/up/", size))


def address_down(http: httpx.Client, url: str) -> Speed:
    """Fetch from any address once, for as long and as much as is allowed. Raises SpeedError."""
    speed = Speed()
    speed.size, speed.seconds = _fetch(http, url)
    return speed


def address_up(http: httpx.Client, url: str) -> Speed:
    """Send to an address that takes what is posted. Raises SpeedError (not_taken) when it does not."""
    return _repeat(lambda size: _send(http, url, size))


def _repeat(move: Callable[[int], tuple[int, float]]) -> Speed:
    speed, is_first = Speed(), True
    for size in portions():
        moved, seconds = move(size)
        if not is_first:
            speed.size += moved
            speed.seconds += seconds
        is_first = False
    if not speed.size:
        raise SpeedError("too_slow")
    return speed


def _fetch(http: httpx.Client, url: str) -> tuple[int, float]:
    """Return the bytes that came and the time they took; stops reading when time or bytes are used up."""
    moved, began = 0, time.perf_counter()
    try:
        with http.stream("GET", url, headers={"Accept-Encoding": "identity"}) as response:
            if not response.is_success:
                raise SpeedError(f"answer_{response.status_code}")
            for block in response.iter_raw(BLOCK_BYTES):
                moved += len(block)
                if moved >= MOST_BYTES or time.perf_counter() - began >= SECONDS:
                    break
    except (httpx.HTTPError, httpx.InvalidURL):
        raise SpeedError("unreachable") from None
    return moved, time.perf_counter() - began


def _send(http: httpx.Client, url: str, size: int) -> tuple[int, float]:
    began = time.perf_counter()
    try:
        response = http.post(url, content=_noise(size), headers={"Content-Type": "application/octet-stream"})
    except (httpx.HTTPError, httpx.InvalidURL):
        raise SpeedError("unreachable") from None
    if not response.is_success:
        raise SpeedError(
            "not_taken" if response.status_code in {403, 404, 405, 501} else f"answer_{response.status_code}"
        )
    return size, time.perf_counter() - began


def _noise(size: int) -> bytes:
    """Return bytes that do not compress."""
    block = os.urandom(BLOCK_BYTES)
    return (block * (size // BLOCK_BYTES + 1))[:size]


def clock_skew(http: httpx.Client) -> tuple[float, float]:
    """Return by how many ms this clock is ahead of the panel's, and how far off that may be. Raises SpeedError.

    As NTP does it: the panel's time is taken to be that of the middle of the quickest exchange.
    """
    best: tuple[float, float] | None = None
    for _ in range(CLOCK_LOOKS):
        sent = time.time()
        began = time.perf_counter()
        try:
            response = http.get("/api/agent/v1/speed/down/?bytes=0")
        except httpx.HTTPError:
            raise SpeedError("unreachable") from None
        took = time.perf_counter() - began
        told = response.headers.get(PANEL_TIME_HEADER, "")
        if not response.is_success or not told.isdigit():
            raise SpeedError(f"answer_{response.status_code}")
        if best is None or took < best[1]:
            best = (sent + took / 2) * 1000 - int(told), took
    if best is None:
        raise SpeedError("unreachable")
    return best[0], best[1] / 2 * 1000
