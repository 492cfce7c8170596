"""A plan and a judgement as plain JSON values: to be kept, sent to the machine that generates the load, and read again."""

import math
from collections.abc import Mapping
from typing import Any

from monitoring.diagnosis.enums import Measure
from monitoring.golive.enums import Flaw, Outcome
from monitoring.golive.judge import Errors, Judgement, Proof
from monitoring.golive.plan import Arrival, Plan, Promise
from monitoring.percentiles import Percentile


def plan_as_json(plan: Plan) -> dict[str, Any]:
    """Return a plan with every arrival: a seed alone would not outlive a change of the random generator."""
    promise = plan.promise
    return {
        "promise": {
            "thresholds_ms": {f"{q:g}": ms for q, ms in promise.thresholds_ms.items()},
            "measure": promise.measure.value,
            "error_rate": promise.error_rate,
            "ttft_ms": promise.ttft_ms,
            "tpot_ms": promise.tpot_ms,
            "e2e_ms": promise.e2e_ms,
        },
        "rate_per_second": plan.rate_per_second,
        "seed": plan.seed,
        "n": plan.n,
        "allowed": {f"{q:g}": over for q, over in plan.allowed.items()},
        "at_seconds": [arrival.at_seconds for arrival in plan.arrivals],
        "tokens": [arrival.tokens for arrival in plan.arrivals],
        "time_scale": plan.time_scale,
    }


def plan_from_json(stored: Mapping[str, Any]) -> Plan:
    """Return what `plan_as_json` wrote. Raises ValueError, KeyError or TypeError for anything else."""
    told, n = dict(stored["promise"]), int(stored["n"])
    thresholds = {float(q): float(ms) for q, ms in told.pop("thresholds_ms").items()}
    promise = Promise(thresholds, Measure(told.pop("measure")), **told)
    moments, tokens = stored["at_seconds"], stored["tokens"]
    if len(moments) != len(tokens) or not 0 < n < len(moments) or list(moments) != sorted(moments):
        raise ValueError("a plan has a warm-up and n requests after it, in order of time, with a length each")
    warm_up = len(moments) - n
    arrivals = tuple(
        Arrival(number, float(at), int(length), is_warm_up=number < warm_up)
        for number, (at, length) in enumerate(zip(moments, tokens, strict=True))
    )
    allowed = {float(q): int(over) for q, over in stored["allowed"].items()}
    return Plan(
        promise,
        float(stored["rate_per_second"]),
        int(stored["seed"]),
        n,
        arrivals,
        allowed,
        float(stored.get("time_scale", 1.0)),
    )


def judgement_as_json(found: Judgement) -> dict[str, Any]:
    """Return a judgement; a percentile among failures has `value_ms` null and `is_lost` true."""
    return {
        "outcome": found.outcome.value,
        "flaws": [flaw.value for flaw in found.flaws],
        "proofs": [_proof(proof) for proof in found.proofs],
        "errors": _errors(found.errors),
        "arrivals_share": round(found.arrivals_share, 4),
        "goodput_per_second": round(found.goodput_per_second, 4),
        "ttft": [_percentile(each) for each in found.ttft],
        "tpot": [_percentile(each) for each in found.tpot],
    }


def _proof(proof: Proof) -> dict[str, Any]:
    return {
        "percentile": _percentile(proof.percentile),
        "threshold_ms": proof.threshold_ms,
        "n": proof.n,
        "over": proof.over,
        "allowed": proof.allowed,
        "outcome": proof.outcome.value,
        "suggested_n": proof.suggested_n,
    }


def _errors(errors: Errors) -> dict[str, Any]:
    return {
        "n": errors.n,
        "count": errors.count,
        "upper_bound": round(errors.upper_bound, 6),
        "limit": errors.limit,
        "outcome": errors.outcome.value,
    }


def _percentile(each: Percentile) -> dict[str, Any]:
    return {
        "q": each.q,
        "n": each.n,
        "value_ms": _finite(each.value_ms),
        "is_lost": each.value_ms is not None and math.isinf(each.value_ms),
        "is_enough": each.is_enough,
        "low_ms": _finite(each.low_ms),
        "high_ms": _finite(each.high_ms),
    }


def _finite(value: float | None) -> float | None:
    return None if value is None or math.isinf(value) else round(value, 3)


def judgement_from_json(stored: Mapping[str, Any]) -> Judgement:
    """Return what `judgement_as_json` wrote. Raises ValueError, KeyError or TypeError for anything else."""
    return Judgement(
        outcome=Outcome(stored["outcome"]),
        flaws=tuple(Flaw(flaw) for flaw in stored["flaws"]),
        proofs=tuple(_proof_from(proof) for proof in stored["proofs"]),
        errors=_errors_from(stored["errors"]),
        arrivals_share=float(stored["arrivals_share"]),
        goodput_per_second=float(stored["goodput_per_second"]),
        ttft=[_percentile_from(each) for each in stored["ttft"]],
        tpot=[_percentile_from(each) for each in stored["tpot"]],
    )


def _proof_from(stored: Mapping[str, Any]) -> Proof:
    found = _percentile_from(stored["percentile"])
    wanted = stored["suggested_n"]
    return Proof(
        q=found.q,
        threshold_ms=float(stored["threshold_ms"]),
        n=int(stored["n"]),
        over=int(stored["over"]),
        allowed=int(stored["allowed"]),
        outcome=Outcome(stored["outcome"]),
        percentile=found,
        suggested_n=None if wanted is None else int(wanted),
    )


def _errors_from(stored: Mapping[str, Any]) -> Errors:
    return Errors(
        n=int(stored["n"]),
        count=int(stored["count"]),
        upper_bound=float(stored["upper_bound"]),
        limit=float(stored["limit"]),
        outcome=Outcome(stored["outcome"]),
    )


def _percentile_from(stored: Mapping[str, Any]) -> Percentile:
    value = math.inf if stored["is_lost"] else stored["value_ms"]
    return Percentile(
        q=float(stored["q"]),
        n=int(stored["n"]),
        value_ms=value,
        is_enough=bool(stored["is_enough"]),
        low_ms=stored["low_ms"],
        high_ms=stored["high_ms"],
    )
