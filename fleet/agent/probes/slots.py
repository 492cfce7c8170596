"""When a target is due: a fixed place of its own within the interval, by the wall clock, so that restarts change nothing."""

import hashlib
import math
from typing import Final

JITTER: Final = 0.05


def offset(target: int, vantage: str, interval_seconds: float) -> float:
    """Return where within the interval a target is probed from a vantage, in seconds: spread evenly over all of them."""
    return _fraction(f"{vantage}\0{target}") * interval_seconds


def slot_after(moment: float, *, target: int, vantage: str, interval_seconds: float) -> float:
    """Return the first moment after another one at which the target is due (wall clock, seconds).

    Each slot lies up to 5 % of the interval before or after its regular place, always by the same amount for the same slot:
    targets that share a period with something else do not keep meeting it, and nothing drifts.
    """
    begin = offset(target, vantage, interval_seconds)
    number = math.floor((moment - begin) / interval_seconds) - 1
    while True:
        due = begin + number * interval_seconds
        due += (_fraction(f"{vantage}\0{target}\0{number}") * 2 - 1) * JITTER * interval_seconds
        if due > moment:
            return due
        number += 1


def slots_between(begin: float, end: float, interval_seconds: float) -> int:
    """Return how many whole intervals lie between two moments."""
    return max(math.floor((end - begin) / interval_seconds), 0)


def _fraction(text: str) -> float:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64
