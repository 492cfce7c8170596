"""Results of probes as paired rounds: each cold one from outside with the nearest warm, on-host and control result."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from monitoring.diagnosis.evidence import Probed, Round

SLOT_MS: Final = 30_000  # a round lies within it: half on either side
CONTROL_MS: Final = 120_000  # controls may be probed less often; one serves several rounds


class Stamped(Probed, Protocol):
    """A result that says where from and when: ms since 1970. connection: `cold` or `warm`."""

    @property
    def vantage(self) -> str: ...
    @property
    def connection(self) -> str: ...
    @property
    def started_ms(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Paired:
    """Rounds by time, and how many cold results had no partner on the host in their slot."""

    rounds: tuple[Round, ...]
    alone: int


class _Line:
    """Results in order of time, of which the nearest is asked for."""

    def __init__(self, results: Iterable[Stamped]) -> None:
        self._results = sorted(results, key=lambda result: result.started_ms)
        self._moments = [result.started_ms for result in self._results]

    def nearest(self, moment_ms: int, within_ms: int) -> Stamped | None:
        """Return the nearest one that is still there, None when it is farther away than half of `within_ms`."""
        place = self._place(moment_ms, within_ms)
        return None if place is None else self._results[place]

    def take(self, moment_ms: int, within_ms: int) -> Stamped | None:
        """Return the nearest one, which then is no longer there."""
        place = self._place(moment_ms, within_ms)
        if place is None:
            return None
        del self._moments[place]
        return self._results.pop(place)

    def _place(self, moment_ms: int, within_ms: int) -> int | None:
        after = bisect_left(self._moments, moment_ms)
        near = [place for place in (after - 1, after) if 0 <= place < len(self._moments)]
        best = min(near, key=lambda place: abs(self._moments[place] - moment_ms), default=None)
        return None if best is None or abs(self._moments[best] - moment_ms) * 2 > within_ms else best


def paired(outside: Iterable[Stamped], host: Iterable[Stamped], controls: Iterable[Stamped] = ()) -> Paired:
    """Return the rounds of all places. host: from the machine itself over loopback; one result serves each place once.

    controls: of each place's own control target. A cold result without a partner on the host makes no round.
    """
    given, inside = list(outside), list(host)
    warm, control = _by_vantage(given, "warm"), _by_vantage(controls)
    rounds: list[Round] = []
    alone = 0
    for vantage, cold in _by_vantage(given, "cold").items():
        lines = [_Line(results) for results in (inside, warm.get(vantage, []), control.get(vantage, []))]
        found = [_round(result, *lines) for result in sorted(cold, key=lambda result: result.started_ms)]
        rounds += [entry for entry in found if entry is not None]
        alone += found.count(None)
    return Paired(tuple(sorted(rounds, key=lambda entry: entry.at)), alone)


def _round(cold: Stamped, inside: _Line, warm: _Line, control: _Line) -> Round | None:
    moment = cold.started_ms
    host = inside.take(moment, SLOT_MS)
    if host is None:
        return None
    return Round(
        at=moment / 1000,
        vantage=cold.vantage,
        cold=cold,
        host=host,
        warm=warm.take(moment, SLOT_MS),
        control=control.nearest(moment, CONTROL_MS),
    )


def _by_vantage(results: Iterable[Stamped], connection: str = "") -> dict[str, list[Stamped]]:
    found: dict[str, list[Stamped]] = defaultdict(list)
    for result in results:
        if connection in {"", result.connection}:
            found[result.vantage].append(result)
    return found
