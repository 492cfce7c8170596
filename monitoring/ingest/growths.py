"""What engines' histograms grew by, on its way into `engine_histogram`: placed in time, checked, as a COPY."""

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from fleet.agent.wire_engines import EngineHistogram
from monitoring.engines.tables import HISTOGRAMS, NAMES
from monitoring.ingest.body import QuickReport
from monitoring.ingest.clock import SampleClock

if TYPE_CHECKING:
    from monitoring.ingest.batch import Batch

_COPY: Final = f"COPY {HISTOGRAMS.name} (subject_id, name, at, bounds, counts, sum_seconds) FROM STDIN"


@dataclass(frozen=True, slots=True)
class Growth:
    """One histogram's growth in about a minute. at_ms: its end, by the panel's clock."""

    subject_id: int
    at_ms: float
    told: EngineHistogram


def growths_of(report: QuickReport, known: Collection[int], clock: SampleClock, *, received_ms: float) -> list[Growth]:
    """Return the histograms of replicas that are known, none later than now; one that is not whole is left out."""
    return [
        Growth(engine.replica, min(clock.at_ms(histogram.at_ms, histogram.monotonic_ms), received_ms), histogram)
        for engine in report.engines
        if engine.replica in known
        for histogram in engine.histograms
        if _is_whole(histogram)
    ]


def _is_whole(told: EngineHistogram) -> bool:
    """Say whether the bounds ascend, are finite and have a count each, and one for what lies above."""
    is_ascending = all(low < high for low, high in pairwise(told.bounds))
    return len(told.counts) == len(told.bounds) + 1 and is_ascending and all(map(math.isfinite, told.bounds))


def growths_copy(batches: "Iterable[Batch]", *, oldest_ms: float) -> list[tuple[str, bytes]]:
    """Return the COPY of what these batches' histograms grew by, nothing for none; what is older has no partition."""
    lines = [_line(growth) for batch in batches for growth in batch.growths if growth.at_ms >= oldest_ms]
    return [(_COPY, "".join(lines).encode())] if lines else []


def _line(growth: Growth) -> str:
    """Return one row in Postgres' text format."""
    told = growth.told
    at = datetime.fromtimestamp(growth.at_ms / 1000, tz=UTC).isoformat()
    total = told.sum_seconds
    seconds = repr(float(total)) if total is not None and math.isfinite(total) and total >= 0 else r"\N"
    bounds, counts = ",".join(map(repr, told.bounds)), ",".join(map(str, told.counts))
    return f"{growth.subject_id}\t{NAMES.index(told.name)}\t{at}\t{{{bounds}}}\t{{{counts}}}\t{seconds}\n"
