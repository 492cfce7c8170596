"""The figures of a vantage's rounds: as measured, and as they would come out if other rounds of the same kind had been drawn."""

import math
from dataclasses import dataclass, fields
from typing import Final

import numpy as np
import numpy.typing as npt

from monitoring.diagnosis.columns import Array, Columns, Kept

Rows = npt.NDArray[np.intp]
RETRANSMIT_MS: Final = 900.0  # a first SYN that is lost is sent again after 1 s
TIMEOUT_MS: Final = 190.0  # a packet of an open connection that is lost is sent again after 200 ms at the soonest
LEAST_HOP: Final = 0.10  # of the whole: the lower bound of a gateway's time has to be over it
MOST_ROUNDS: Final = 1_000  # that are looked at: the newest; bounds what resampling costs


@dataclass(frozen=True, slots=True)
class Figures:
    """One set of figures in ms and shares. Medians, where no percentile is named; `outside_p`, `host_p`, `warm_p`,
    `calm_p` are the objective's percentile: outside, on the host, over open connections, outside without lost SYNs.

    rtt: 10th percentile of TCP connects. transfer: see Columns. hop: what lies between, besides the round trip; is_hop: whether
    it is proven. syn_share: connections that waited for a SYN to be sent again. lost_of_slow, waited_of_slow: of the rounds over
    the threshold, the share of those, and of those that are 190 ms and more over the median; 0 when none is over it. warm_p:
    estimated from cold rounds without their handshakes when nothing was measured warm.
    ttft, e2e, host_ttft, host_e2e, generated: NaN where it is no stream.
    """

    outside: float
    host: float
    outside_p: float
    host_p: float
    warm_p: float
    calm_p: float
    rtt: float
    dns: float
    tcp: float
    tls: float
    transfer: float
    hop: float
    is_hop: bool
    syn_share: float
    lost_of_slow: float
    waited_of_slow: float
    ttft: float
    e2e: float
    host_ttft: float
    host_e2e: float
    generated: float

    @property
    def net(self) -> float:
        """Time of the network: names, handshakes, one round trip, the body."""
        return self.dns + self.tcp + self.tls + self.rtt + self.transfer

    @property
    def counted_hop(self) -> float:
        """The gateway's time, 0 when it is not proven."""
        return self.hop if self.is_hop else 0.0

    @property
    def share(self) -> float:
        """Share of network and gateway in all of it."""
        away = self.net + self.counted_hop
        return away / (away + self.host) if away + self.host > 0 else 0.0


def figures_of(
    kept: Kept, q: float, generator: np.random.Generator, resamples: int, *, threshold_ms: float = math.inf
) -> list[Figures]:
    """Return the figures as measured, and after them one set per resample of the rounds (pairs stay together).

    Costs resamples times rounds, of which the newest 1,000 are used. Raises ValueError without pairs.
    """
    columns = _newest(kept.columns)
    n = len(columns.outside)
    if not n:
        raise ValueError("there is no pair of rounds to take figures from")
    rows = np.vstack([np.arange(n)[None, :], generator.integers(0, n, size=(resamples, n))])
    found = _medians(columns, rows)
    lost_outside, lost_host = kept.errors_outside + kept.late, kept.errors_host
    tcp = columns.tcp[rows]
    found["rtt"] = _percentile(tcp, 0.1)
    retransmitted = tcp > found["rtt"][:, None] + RETRANSMIT_MS
    outside = columns.outside[rows]
    found["syn_share"] = retransmitted.mean(axis=1)
    is_slow = outside > threshold_ms
    slow = np.maximum(is_slow.sum(axis=1), 1)
    has_waited = outside > found["outside"][:, None] + TIMEOUT_MS
    found["lost_of_slow"] = (is_slow & retransmitted).sum(axis=1) / slow
    found["waited_of_slow"] = (is_slow & has_waited).sum(axis=1) / slow
    found["outside_p"] = _percentile(outside, q, lost_outside)
    found["host_p"] = _percentile(columns.host[rows], q, lost_host)
    found["calm_p"] = _percentile_where(outside, ~retransmitted, q)
    found["warm_p"] = _warm(columns, rows, q, generator)
    found["transfer"] = np.maximum(found["transfer"], 0.0)
    hop = found.pop("before") - found["rtt"] - found.pop("host_before")
    unsure = hop[0] - (np.quantile(hop[1:], 0.025) if resamples else -math.inf)
    found["is_hop"] = hop - max(unsure, 0.0) > LEAST_HOP * found["outside"]
    found["hop"] = np.maximum(hop, 0.0)
    return [
        Figures(**{item.name: found[item.name][row].item() for item in fields(Figures)}) for row in range(len(rows))
    ]


def _newest(columns: Columns) -> Columns:
    return Columns(**{item.name: getattr(columns, item.name)[-MOST_ROUNDS:] for item in fields(Columns)})


def _medians(columns: Columns, rows: Rows) -> dict[str, Array]:
    names = (item.name for item in fields(Columns) if item.name != "warm")
    return {name: _median(getattr(columns, name), rows) for name in names}


def _median(column: Array, rows: Rows) -> Array:
    """Return medians; NaN (not measured in every round) as long as not all have it: half a column would be another one."""
    return np.full(len(rows), math.nan) if np.isnan(column).any() else np.median(column[rows], axis=1)


def _warm(columns: Columns, rows: Rows, q: float, generator: np.random.Generator) -> Array:
    warm = columns.warm
    if not len(warm):
        return _percentile((columns.outside - columns.dns - columns.tcp - columns.tls)[rows], q)
    drawn = generator.integers(0, len(warm), size=(len(rows), len(warm)))
    drawn[0] = np.arange(len(warm))
    return _percentile(warm[drawn], q)


def _percentile(table: Array, q: float, lost: int = 0) -> Array:
    """Return the measured value at the percentile's rank in each row, `lost` further values being infinite."""
    n = table.shape[1]
    place = max(1, math.ceil(q * (n + lost)))
    if place > n:
        return np.full(len(table), math.inf)
    return np.asarray(np.partition(table, place - 1, axis=1)[:, place - 1], dtype=np.float64)


def _percentile_where(table: Array, mask: npt.NDArray[np.bool_], q: float) -> Array:
    ordered = np.sort(np.where(mask, table, math.inf), axis=1)
    places = np.maximum(np.ceil(q * mask.sum(axis=1)).astype(int), 1) - 1
    return np.asarray(ordered[np.arange(len(table)), places], dtype=np.float64)
