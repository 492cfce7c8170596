"""What a test will do, fixed before its first request: arrivals, prompt lengths, number, and what may be over."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from monitoring.diagnosis.enums import Measure
from monitoring.golive.bounds import CONFIDENCE, allowed_over
from monitoring.percentiles import needed_to_pass

MEASURED_SECONDS: Final = 600.0  # at least, as MLPerf's rules have it
WARM_UP_SECONDS: Final = 30.0
WARM_UP_REQUESTS: Final = 5
MOST_REQUESTS: Final = 100_000
MOST_SECONDS: Final = 6 * 3600.0
ERROR_CONFIDENCE: Final = (
    0.95  # of the bound of the error rate, for which fewer requests without a failure prove nothing
)
# Who asks a usual prompt, a long one, the longest. Everything is rounded up to the next of the three: the half under the median
# counts as the median, what lies between it and the 95th percentile as that, and the rest as the maximum.
LENGTH_SHARES: Final = (0.50, 0.45, 0.05)


@dataclass(frozen=True, slots=True)
class Promise:
    """What is to be proven. thresholds_ms: percentile → ms, of `measure`. error_rate: the highest that is accepted.

    ttft_ms, tpot_ms, e2e_ms: what a request has to keep, all of those that are set, to count as good (goodput).
    """

    thresholds_ms: Mapping[float, float]
    measure: Measure = Measure.TOTAL
    error_rate: float = 0.01
    ttft_ms: float | None = None
    tpot_ms: float | None = None
    e2e_ms: float | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be proven."""
        if not self.thresholds_ms:
            raise ValueError("thresholds_ms: a test needs one percentile with a threshold at least")
        if any(not 0.5 < q <= 0.999 or not 0 < ms < float("inf") for q, ms in self.thresholds_ms.items()):
            raise ValueError("thresholds_ms: percentiles between 50 and 99.9 with a duration in ms each")
        if not 0 < self.error_rate < 1:
            raise ValueError("error_rate: a share between 0 and 1")


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request to be sent. number: from 0, warm-up included; at_seconds: after the beginning; tokens: of its prompt."""

    number: int
    at_seconds: float
    tokens: int
    is_warm_up: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """A run. rate_per_second: the expected peak. n: measured requests; allowed: by percentile, how many may be over.

    time_scale: 1 for a test that counts; under 1 its durations were shortened for a trial.
    """

    promise: Promise
    rate_per_second: float
    seed: int
    n: int
    arrivals: tuple[Arrival, ...] = field(repr=False)
    allowed: Mapping[float, int] = field(default_factory=dict)
    time_scale: float = 1.0

    @property
    def seconds(self) -> float:
        """How long requests arrive, warm-up included."""
        return self.arrivals[-1].at_seconds

    @property
    def measured(self) -> tuple[Arrival, ...]:
        """The arrivals after the warm-up."""
        return self.arrivals[-self.n :]


def plan_run(
    promise: Promise,
    *,
    peak_per_second: float,
    lengths: tuple[int, int, int],
    seed: int,
    spare: int = 0,
    seconds: float = MEASURED_SECONDS,
    time_scale: float = 1.0,
) -> Plan:
    """Return a run at the expected peak, with so many arrivals that `spare` of them may be over the highest percentile.

    Open loop: gaps are exponential, and nothing waits for an answer. lengths: prompt tokens at the median, the 95th percentile
    and the maximum of what is expected. It lasts `seconds` at least, and until there are enough. The same seed gives the same
    run. time_scale: shortens warm-up and duration, for trials; the number of requests stays. Raises ValueError with what to
    change for runs that would be too long or too large.
    """
    if not 0 < peak_per_second < float("inf") or not 0 < seconds <= MOST_SECONDS:
        raise ValueError("a run has a rate over 0 and lasts up to six hours")
    if not 0 < lengths[0] <= lengths[1] <= lengths[2] or not 0 <= spare <= 50:
        raise ValueError("lengths go up from 1 token; spare is between 0 and 50")
    if not 0 < time_scale <= 1:
        raise ValueError("a time scale is over 0, and 1 at most")
    fewest = max(needed_to_pass(spare, q=q, confidence=CONFIDENCE) for q in promise.thresholds_ms)
    fewest = max(fewest, needed_to_pass(0, q=1 - promise.error_rate, confidence=ERROR_CONFIDENCE))
    _check_size(fewest, peak_per_second, seconds)
    generator = np.random.default_rng(seed)
    warm_up = _arrivals(generator, peak_per_second, WARM_UP_REQUESTS, WARM_UP_SECONDS * time_scale, 0.0)
    begin = max(warm_up[-1], WARM_UP_SECONDS * time_scale)
    measured = _arrivals(generator, peak_per_second, fewest, seconds * time_scale, begin)
    moments = warm_up + measured
    drawn = generator.choice(lengths, size=len(moments), p=LENGTH_SHARES)
    arrivals = tuple(
        Arrival(number, round(at, 6), int(tokens), is_warm_up=number < len(warm_up))
        for number, (at, tokens) in enumerate(zip(moments, drawn, strict=True))
    )
    n = len(measured)
    allowed = {q: allowed_over(n, q) or 0 for q in promise.thresholds_ms}
    return Plan(promise, peak_per_second, seed, n, arrivals, allowed, time_scale)


def _check_size(fewest: int, rate: float, seconds: float) -> None:
    if rate * seconds > MOST_REQUESTS:
        raise ValueError(
            f"{rate:g} requests a second for {seconds:g} s are more than {MOST_REQUESTS}: take a shorter run"
        )
    if fewest / rate > MOST_SECONDS:
        raise ValueError(
            f"{fewest} requests at {rate:g} a second take more than six hours: prove a lower percentile, or test at a higher rate"
        )


def _arrivals(generator: np.random.Generator, rate: float, fewest: int, seconds: float, begin: float) -> list[float]:
    """Return moments of a Poisson stream from `begin`, until there are enough and the time is over."""
    found: list[float] = []
    at = begin + generator.exponential(1 / rate)
    while len(found) < fewest or at < begin + seconds:
        found.append(float(at))
        at += generator.exponential(1 / rate)
    return found
