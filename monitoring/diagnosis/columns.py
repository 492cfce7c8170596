"""Rounds of one vantage point as columns of numbers, after those are put aside that say nothing about the endpoint."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from monitoring.diagnosis.enums import Measure
from monitoring.diagnosis.evidence import Marker, Probed, Round

Array = npt.NDArray[np.float64]
# Reasons of the prober. The one before was still running: a user would have waited as well, so it counts as over everything.
_OVERLAP: Final = "overlap"
_CLOSING: Final = "no_keep_alive"


@dataclass(frozen=True, slots=True)
class Columns:
    """Complete pairs as arrays of one length, in ms; NaN where a phase did not happen.

    outside, host: what the objective is about, to its end. before: outside from the open connection to the first byte of the
    body (streams: to their end); host_before: the same on the host. transfer: what the body takes longer outside. ttft, e2e:
    of streams, outside and on the host. generated: time of the tokens after the first, on the host. warm: over an open
    connection; empty when there was none.
    """

    outside: Array
    host: Array
    dns: Array
    tcp: Array
    tls: Array
    before: Array
    host_before: Array
    transfer: Array
    ttft: Array
    e2e: Array
    host_ttft: Array
    host_e2e: Array
    generated: Array
    warm: Array


@dataclass(frozen=True, slots=True)
class Kept:
    """What is left of a vantage's rounds. n: asked and counted; late: of them, skipped because the one before still ran.

    errors_outside, errors_host: failed; reached: the phases in which they ended. put_aside: suspect or never asked. closing: warm
    probes that found the server to close each connection.
    """

    vantage: str
    columns: Columns
    n: int
    errors_outside: int
    errors_host: int
    late: int
    put_aside: int
    closing: int = 0
    reached: Counter[str] = field(default_factory=Counter)

    @property
    def pairs(self) -> int:
        """How many rounds have an answer on both sides."""
        return len(self.columns.outside)


def kept_rounds(vantage: str, rounds: Iterable[Round], measure: Measure) -> Kept:
    """Return the columns of one vantage's rounds."""
    given = list(rounds)
    asked = [entry for entry in given if _is_counted(entry.cold) and _is_counted(entry.host)]
    outside = [entry.cold for entry in asked if _failed(entry.cold)]
    host = [entry.host for entry in asked if _failed(entry.host)]
    late = sum(_is_late(entry.cold) or _is_late(entry.host) for entry in asked)
    pairs = [entry for entry in asked if _answered(entry.cold, measure) and _answered(entry.host, measure)]
    return Kept(
        vantage=vantage,
        columns=_columns(pairs, measure),
        n=len(asked),
        errors_outside=len(outside),
        errors_host=len(host),
        late=late,
        put_aside=len(given) - len(asked),
        closing=sum(entry.warm is not None and entry.warm.reason == _CLOSING for entry in asked),
        reached=Counter(f"{probe.phase_reached}" for probe in (*outside, *host)),
    )


def without_marked(rounds: Sequence[Round], markers: Sequence[Marker]) -> list[Round]:
    """Return the rounds outside every marker's time."""
    return [entry for entry in rounds if not any(marker.begin <= entry.at <= marker.end for marker in markers)]


def judged(probe: Probed, measure: Measure) -> float | None:
    """Return the time that the objective is about, in ms; None when the probe has none."""
    return {Measure.TOTAL: probe.total_ms, Measure.TTFT: probe.ttft_ms, Measure.E2E: probe.e2e_ms}[measure]


def _is_counted(probe: Probed) -> bool:
    """Whether it was asked: neither our own doing (suspect, offline) nor refused by the prober before the first packet."""
    is_asked = probe.outcome not in {"vantage_down", "skipped"} or _is_late(probe)
    return is_asked and not probe.is_suspect


def _is_late(probe: Probed) -> bool:
    return probe.outcome == "skipped" and probe.reason == _OVERLAP


def _failed(probe: Probed) -> bool:
    return probe.outcome not in {"ok", "skipped"}


def _answered(probe: Probed, measure: Measure) -> bool:
    return probe.outcome == "ok" and judged(probe, measure) is not None


def _columns(pairs: list[Round], measure: Measure) -> Columns:
    cold, host = [entry.cold for entry in pairs], [entry.host for entry in pairs]
    outside, inside = _times(judged(probe, measure) for probe in cold), _times(judged(probe, measure) for probe in host)
    dns, tcp, tls = (_times((getattr(probe, f"{name}_ms") for probe in cold), 0.0) for name in ("dns", "tcp", "tls"))
    if measure is Measure.TOTAL:
        body, host_body = _times((p.transfer_ms for p in cold), 0.0), _times((p.transfer_ms for p in host), 0.0)
    else:  # the tokens of a stream arrive as they are made: that is no transfer
        body = host_body = np.zeros(len(pairs))
    warm = [entry.warm for entry in pairs if entry.warm is not None and _answered(entry.warm, measure)]
    return Columns(
        outside=outside,
        host=inside,
        dns=dns,
        tcp=tcp,
        tls=tls,
        before=np.maximum(outside - dns - tcp - tls - body, 0.0),
        host_before=np.maximum(inside - host_body, 0.0),
        transfer=body - host_body,
        ttft=_times(probe.ttft_ms for probe in cold),
        e2e=_times(probe.e2e_ms for probe in cold),
        host_ttft=_times(probe.ttft_ms for probe in host),
        host_e2e=_times(probe.e2e_ms for probe in host),
        generated=_times(_generated(probe) for probe in host),
        warm=_times(judged(probe, measure) for probe in warm),
    )


def _generated(probe: Probed) -> float | None:
    if probe.tpot_ms is None or probe.completion_tokens is None:
        return None
    return probe.tpot_ms * max(probe.completion_tokens - 1, 0)


def _times(values: Iterable[float | None], missing: float = math.nan) -> Array:
    return np.asarray([missing if value is None else value for value in values], dtype=np.float64)
