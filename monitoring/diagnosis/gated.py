"""Diagnoses that end at a gate: there is a verdict, and no cause was looked for."""

import numpy as np

from monitoring.diagnosis.columns import Kept
from monitoring.diagnosis.enums import ActionKind, Level, Side, Verdict
from monitoring.diagnosis.evidence import Evidence
from monitoring.diagnosis.gates import FEWEST_ROUNDS, MOST_ERRORS, VantageHealth
from monitoring.diagnosis.report import Action, Change, ChangeKind, Diagnosis

_SURE = 0.9


def shut_by(
    verdict: Verdict,
    kept: Kept,
    health: VantageHealth,
    *,
    generator: np.random.Generator | None = None,
    resamples: int = 1,
) -> Diagnosis:
    """Return the diagnosis of a gate: not enough data, vantage bad, or availability."""
    numbers: dict[str, float | None] = {
        "rounds": kept.n,
        "pairs": kept.pairs,
        "put_aside": kept.put_aside,
        "errors_outside": kept.errors_outside,
        "errors_host": kept.errors_host,
        "lagging_rounds": health.lagging,
        "slow_controls": health.slow_controls,
    }
    if verdict is Verdict.AVAILABILITY:
        return _availability(kept, numbers, generator or np.random.default_rng(0), resamples)
    if verdict is Verdict.VANTAGE_BAD:
        action = Action(ActionKind.FIX_VANTAGE)
        changes = (Change(ChangeKind.VANTAGE_WELL),)
    else:
        missing = FEWEST_ROUNDS - kept.pairs
        action = Action(ActionKind.MEASURE_MORE, {"rounds": missing})
        changes = (Change(ChangeKind.MORE_ROUNDS, kept.pairs, FEWEST_ROUNDS),)
    return Diagnosis(
        verdict, Side.NONE, 1.0, Level.HIGH, action, vantage=kept.vantage, numbers=numbers, changes=changes
    )


def _availability(
    kept: Kept, numbers: dict[str, float | None], generator: np.random.Generator, resamples: int
) -> Diagnosis:
    errors = max(kept.errors_outside, kept.errors_host)
    drawn = generator.binomial(kept.n, errors / kept.n, size=resamples)
    confidence = float((drawn > MOST_ERRORS * kept.n).mean())
    phase = kept.reached.most_common(1)[0][0]
    return Diagnosis(
        Verdict.AVAILABILITY,
        Side.HOST if kept.errors_host > MOST_ERRORS * kept.n else Side.NETWORK,
        confidence,
        Level.HIGH if confidence >= _SURE else Level.MEDIUM,
        Action(ActionKind.FIX_ERRORS, {"phase": phase, "errors": errors, "rounds": kept.n}),
        vantage=kept.vantage,
        numbers={**numbers, **{f"errors_at_{name}": count for name, count in sorted(kept.reached.items())}},
        changes=(Change(ChangeKind.ERRORS_BELOW, errors / kept.n, MOST_ERRORS),),
    )


def cold_start(name: str, evidence: Evidence, rounds: int, calm: int, whole: Diagnosis | None = None) -> Diagnosis:
    """Return "cold start": either too few rounds lie outside its time, or outside of it all is well.

    whole: the diagnosis of all rounds, which was not "healthy"; its figures are told.
    """
    is_start = any(marker.cause == "cold_start" for marker in evidence.markers)
    numbers: dict[str, float | None] = dict(whole.numbers) if whole else {}
    numbers |= {"rounds": rounds, "rounds_outside_markers": calm}
    return Diagnosis(
        Verdict.COLD_START,
        Side.HOST,
        whole.confidence if whole else 1.0,
        Level.HIGH if whole and whole.confidence >= _SURE else Level.MEDIUM,
        Action(ActionKind.KEEP_WARM if is_start else ActionKind.WAIT),
        vantage=name,
        numbers=numbers,
        changes=(Change(ChangeKind.SETTLED, calm, FEWEST_ROUNDS),),
    )
