"""What the requests of a run prove: pass, fail, not proven, or an invalid test, with the reasons."""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from monitoring.diagnosis.enums import Measure
from monitoring.fits import rate_upper_bound
from monitoring.golive.bounds import allowed_over, size_for
from monitoring.golive.enums import Flaw, Outcome
from monitoring.golive.plan import ERROR_CONFIDENCE, WARM_UP_REQUESTS, WARM_UP_SECONDS, Plan, Promise
from monitoring.percentiles import Percentile, percentiles

LEAST_ARRIVALS: Final = 0.95
LONG_LAG_MS: Final = 20.0


@dataclass(frozen=True, slots=True)
class Sent:
    """One request that was sent. number: of its arrival. at_seconds: when it really was sent, after the beginning.

    total, ttft, e2e, tpot in ms from then, None where it did not happen.
    """

    number: int
    at_seconds: float
    is_ok: bool
    total_ms: float | None = None
    ttft_ms: float | None = None
    e2e_ms: float | None = None
    tpot_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Conditions:
    """How the run itself went. loop_lag_p99_ms: of the process that sent, None: not known. has_changed: revision, replicas or
    machine are no longer those of the beginning. is_vantage_bad: the control target was slow as well. is_stopped: the load ended
    before its plan was done.
    """

    loop_lag_p99_ms: float | None
    is_vantage_bad: bool = False
    has_changed: bool = False
    is_stopped: bool = False


@dataclass(frozen=True, slots=True)
class Proof:
    """One percentile. over: requests over the threshold, failures among them; allowed: how many may be.

    suggested_n: for the next run when this one proves nothing; None: no sensible number would.
    """

    q: float
    threshold_ms: float
    n: int
    over: int
    allowed: int
    outcome: Outcome
    percentile: Percentile
    suggested_n: int | None = None


@dataclass(frozen=True, slots=True)
class Errors:
    """Failures. upper_bound: the highest rate that is compatible with them, with 95 %."""

    n: int
    count: int
    upper_bound: float
    limit: float
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Judgement:
    """The outcome of a run from one vantage point.

    arrivals_share: achieved rate of arrivals against the planned one. goodput_per_second: requests that kept everything.
    ttft, tpot: percentiles of what succeeded, [] without streams.
    """

    outcome: Outcome
    flaws: tuple[Flaw, ...]
    proofs: tuple[Proof, ...]
    errors: Errors
    arrivals_share: float
    goodput_per_second: float
    ttft: list[Percentile] = field(default_factory=list)
    tpot: list[Percentile] = field(default_factory=list)


def judge(plan: Plan, requests: Iterable[Sent], conditions: Conditions) -> Judgement:
    """Return what a run proves. Latency counts from the moment at which a request should have been sent.

    Requests that were never sent count as failed: nobody got an answer. Warm-up is looked at only to see that it took place.
    Raises ValueError for requests that are not of the plan, or there twice.
    """
    sent = _by_number(plan, requests)
    measured = [(arrival.at_seconds, sent.get(arrival.number)) for arrival in plan.measured]
    share = arrivals_share(plan, [entry for _, entry in measured if entry is not None])
    flaws = tuple(_flaws(plan, sent, conditions, share))
    times = [_judged(at, entry, plan.promise.measure) for at, entry in measured]
    errors = _errors(sum(math.isinf(time) for time in times), plan)
    proofs = tuple(_proof(plan, q, times) for q in sorted(plan.promise.thresholds_ms))
    good = sum(entry is not None and _is_good(at, entry, plan.promise) for at, entry in measured)
    answered = [entry for _, entry in measured if entry is not None and entry.is_ok]
    return Judgement(
        outcome=Outcome.INVALID if flaws else joint([errors.outcome, *(proof.outcome for proof in proofs)]),
        flaws=flaws,
        proofs=proofs,
        errors=errors,
        arrivals_share=share,
        goodput_per_second=good / _span(plan),
        ttft=_told(entry.ttft_ms for entry in answered),
        tpot=_told(entry.tpot_ms for entry in answered),
    )


def joint(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the outcome of several: what fails anywhere fails, then what is invalid, then what is not proven."""
    found = set(outcomes)
    order = (Outcome.FAIL, Outcome.INVALID, Outcome.NOT_PROVEN, Outcome.PASS)
    return next((outcome for outcome in order if outcome in found), Outcome.NOT_PROVEN)


def arrivals_share(plan: Plan, sent: Sequence[Sent]) -> float:
    """Return the achieved rate of arrivals against the planned one, 1 at most: fewer requests, and those over a longer time."""
    if not sent:
        return 0.0
    first, last = plan.measured[0].at_seconds, plan.measured[-1].at_seconds
    late = max(max(entry.at_seconds for entry in sent) - last, 0.0)
    return len(sent) / plan.n * (last - first) / (last - first + late)


def environment_hash(facts: Mapping[str, Any]) -> str:
    """Return a fingerprint of what was tested (revision, engine, arguments, cards, driver …), whatever the order of keys."""
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _by_number(plan: Plan, requests: Iterable[Sent]) -> dict[int, Sent]:
    found: dict[int, Sent] = {}
    for entry in requests:
        if not 0 <= entry.number < len(plan.arrivals) or entry.number in found:
            raise ValueError(f"request {entry.number} is not of the plan, or is there twice")
        found[entry.number] = entry
    return found


def _flaws(plan: Plan, sent: Mapping[int, Sent], conditions: Conditions, share: float) -> Iterable[Flaw]:
    warm = [sent[arrival.number] for arrival in plan.arrivals[: -plan.n] if arrival.number in sent]
    if (
        len([entry for entry in warm if entry.is_ok]) < WARM_UP_REQUESTS
        or plan.measured[0].at_seconds < WARM_UP_SECONDS * plan.time_scale
    ):
        yield Flaw.WARM_UP_TOO_SHORT
    if share < LEAST_ARRIVALS:
        yield Flaw.ARRIVALS_TOO_SLOW
    if conditions.loop_lag_p99_ms is None:
        yield Flaw.LOOP_LAG_UNKNOWN
    elif conditions.loop_lag_p99_ms >= LONG_LAG_MS:
        yield Flaw.LOOP_LAG
    if conditions.is_vantage_bad:
        yield Flaw.VANTAGE_BAD
    if conditions.has_changed:
        yield Flaw.CHANGED
    if conditions.is_stopped:
        yield Flaw.STOPPED


def _judged(at_seconds: float, entry: Sent | None, measure: Measure) -> float:
    """Return ms from the moment at which it should have been sent; inf for what has no answer."""
    if entry is None or not entry.is_ok:
        return math.inf
    told = {Measure.TOTAL: entry.total_ms, Measure.TTFT: entry.ttft_ms, Measure.E2E: entry.e2e_ms}[measure]
    return math.inf if told is None else told + _late_ms(at_seconds, entry)


def _late_ms(at_seconds: float, entry: Sent) -> float:
    return max(entry.at_seconds - at_seconds, 0.0) * 1000


def _proof(plan: Plan, q: float, times: Sequence[float]) -> Proof:
    threshold = plan.promise.thresholds_ms[q]
    n, over = len(times), sum(time > threshold for time in times)
    allowed = allowed_over(n, q)
    (found,) = percentiles(times, [q])
    if allowed is not None and over <= allowed:
        outcome = Outcome.PASS
    elif found.value_ms is None or found.value_ms > threshold:
        outcome = Outcome.FAIL  # no further requests of this kind would make it pass
    else:
        outcome = Outcome.NOT_PROVEN
    suggested = size_for(over / n, q) if outcome is Outcome.NOT_PROVEN else None
    return Proof(q, threshold, n, over, allowed or 0, outcome, found, suggested)


def _errors(count: int, plan: Plan) -> Errors:
    limit, n = plan.promise.error_rate, plan.n
    bound = rate_upper_bound(count, n, ERROR_CONFIDENCE)
    missed = Outcome.FAIL if count > limit * n else Outcome.NOT_PROVEN
    outcome = Outcome.PASS if bound <= limit else missed
    return Errors(n, count, bound, limit, outcome)


def _is_good(at_seconds: float, entry: Sent, promise: Promise) -> bool:
    late = _late_ms(at_seconds, entry)
    limits = (
        (promise.ttft_ms, entry.ttft_ms, late),
        (promise.e2e_ms, entry.total_ms if entry.e2e_ms is None else entry.e2e_ms, late),
        (promise.tpot_ms, entry.tpot_ms, 0.0),
    )
    return entry.is_ok and all(
        limit is None or (told is not None and told + added <= limit) for limit, told, added in limits
    )


def _span(plan: Plan) -> float:
    return max(plan.measured[-1].at_seconds - plan.arrivals[-plan.n - 1].at_seconds, 1e-9)


def _told(values: Iterable[float | None]) -> list[Percentile]:
    known = [value for value in values if value is not None]
    return percentiles(known, (0.5, 0.95, 0.99)) if known else []
