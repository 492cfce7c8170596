"""The phases of one result as bars over a common scale: what did not happen has no bar, and is not zero. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

WIDTH: Final = 1000.0
THINNEST: Final = 4.0  # so that a phase of a fraction of a millisecond is seen
_IN_A_ROW: Final = ("dns", "tcp", "tls")
_MARKS: Final = ("ttfb", "ttfe", "ttft", "ttfot")


@dataclass(frozen=True, slots=True)
class Bar:
    """One phase. begin, length: of 1000. at_ms: when it begins; ms: how long it lasts, or when the moment is (is_moment)."""

    name: str
    at_ms: float
    ms: float
    begin: float
    length: float
    is_moment: bool = False


def scale_of(result: Mapping[str, Any]) -> float:
    """Return how long a result's bars are in ms: its total, or how long was waited for one that failed."""
    known = [result.get("total_ms"), result.get("elapsed_ms"), result.get("e2e_ms"), result.get("ttft_ms")]
    return max((float(ms) for ms in known if ms), default=0.0)


def bars_of(result: Mapping[str, Any], *, scale_ms: float) -> list[Bar]:
    """Return the phases that happened, in the order of time.

    Phases of connecting come one after the other from the start. Sending begins where the headers' moment less waiting and
    sending lies, so that what a prober cannot see (redirects, turns of its loop) stands as a gap and not as somebody's phase.
    """
    scale = scale_ms or 1.0
    found: list[Bar] = []
    at = 0.0
    for name in _IN_A_ROW:
        ms = _ms(result, name)
        if ms is not None:
            found.append(_bar(name, at, ms, scale))
            at += ms
    send, wait, first_byte = _ms(result, "send"), _ms(result, "wait"), _ms(result, "ttfb")
    if first_byte is not None:
        at = max(first_byte - (wait or 0.0) - (send or 0.0), at)
    for name, ms in (("send", send), ("wait", wait)):
        if ms is not None:
            found.append(_bar(name, at, ms, scale))
            at += ms
    for name in _MARKS:
        ms = _ms(result, name)
        if ms is not None and not (name == "ttfot" and ms == _ms(result, "ttft")):
            found.append(_moment(name, ms, scale))
    transfer = _ms(result, "transfer")
    if transfer is not None:
        found.append(_bar("transfer", first_byte if first_byte is not None else at, transfer, scale))
    total = _ms(result, "total")
    if total is not None:
        found.append(_bar("total", 0.0, total, scale))
    return found


def _ms(result: Mapping[str, Any], name: str) -> float | None:
    value = result.get(f"{name}_ms")
    return None if value is None else float(value)


def _bar(name: str, at: float, ms: float, scale: float) -> Bar:
    length = min(max(ms / scale * WIDTH, THINNEST), WIDTH)
    return Bar(name, at, ms, round(min(at / scale * WIDTH, WIDTH - length), 1), round(length, 1))


def _moment(name: str, ms: float, scale: float) -> Bar:
    return Bar(name, ms, ms, round(min(ms / scale * WIDTH, WIDTH - THINNEST), 1), THINNEST, is_moment=True)
