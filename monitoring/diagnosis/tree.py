"""The diagnosis itself: gates, split, branches and output for each vantage point, then one verdict for the endpoint."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from monitoring.diagnosis.actions import next_step
from monitoring.diagnosis.changes import changes_of
from monitoring.diagnosis.columns import Kept, kept_rounds, without_marked
from monitoring.diagnosis.enums import Level, Limit, Scope, Side, Verdict
from monitoring.diagnosis.evidence import Evidence, Round
from monitoring.diagnosis.figures import figures_of
from monitoring.diagnosis.gated import cold_start, shut_by
from monitoring.diagnosis.gates import FEWEST_ROUNDS, gate, vantage_health
from monitoring.diagnosis.host import Case, HostFacts
from monitoring.diagnosis.numbers import numbers_of
from monitoring.diagnosis.report import Diagnosis
from monitoring.diagnosis.split import Decision, decide
from monitoring.diagnosis.sweep import fits_of

RESAMPLES: Final = 200
MOST_RESAMPLES: Final = 2_000
_HIGH, _MEDIUM = 0.9, 0.7
_WEAKEST: Final = frozenset({Limit.SHARE_UNCLEAR, Limit.FEW_EVENTS, Limit.NO_PLATEAU, Limit.LITTLE_DISAGREES})
# Which vantage point speaks for the endpoint: the first of these that holds for any of them, the slowest of those.
_ORDER: Final = (
    Verdict.AVAILABILITY,
    None,
    Verdict.COLD_START,
    Verdict.HEALTHY,
    Verdict.NOT_ENOUGH_DATA,
    Verdict.VANTAGE_BAD,
)


def diagnose(evidence: Evidence, *, seed: int = 0, resamples: int = RESAMPLES) -> Diagnosis:
    """Return why the endpoint misses its objective. The same evidence and seed give the same diagnosis.

    Costs resamples times (rounds + 32 sweep points): about 20 ms for 40 rounds and 200 resamples. Raises ValueError for fewer
    than 1 or more than 2,000 resamples.
    """
    if not 1 <= resamples <= MOST_RESAMPLES:
        raise ValueError(f"resamples are limited to between 1 and {MOST_RESAMPLES}")
    by_vantage: dict[str, list[Round]] = defaultdict(list)
    for entry in sorted(evidence.rounds, key=lambda entry: entry.at):
        by_vantage[entry.vantage].append(entry)
    facts = HostFacts.of(evidence)
    found = {
        name: _Question(name, evidence, facts, np.random.default_rng([seed, place]), resamples).answer(rounds)
        for place, (name, rounds) in enumerate(sorted(by_vantage.items()))
    }
    if not found:
        return shut_by(
            Verdict.NOT_ENOUGH_DATA, kept_rounds("", [], evidence.objective.measure), vantage_health([], 0.0)
        )
    spoken = min(found.values(), key=_urgency)
    return replace(spoken, scope=_scope(spoken, found), vantages={name: each.verdict for name, each in found.items()})


@dataclass(frozen=True, slots=True)
class _Question:
    """What is asked about one vantage point."""

    vantage: str
    evidence: Evidence
    facts: HostFacts
    generator: np.random.Generator
    resamples: int

    def answer(self, rounds: list[Round]) -> Diagnosis:
        """Return its diagnosis, the time around deploys and cold starts kept apart."""
        calm = without_marked(rounds, self.evidence.markers)
        is_marked = len(calm) < len(rounds)
        if is_marked and len(rounds) >= FEWEST_ROUNDS > len(calm):
            return cold_start(self.vantage, self.evidence, len(rounds), len(calm))
        found = self._of_rounds(calm)
        if is_marked and found.verdict is Verdict.HEALTHY:  # what was slow was so around the markers
            whole = self._of_rounds(rounds)
            if whole.verdict not in {Verdict.HEALTHY, Verdict.VANTAGE_BAD}:
                return cold_start(self.vantage, self.evidence, len(rounds), len(calm), whole)
        return found

    def _of_rounds(self, rounds: list[Round]) -> Diagnosis:
        kept = kept_rounds(self.vantage, rounds, self.evidence.objective.measure)
        health = vantage_health(rounds, self.evidence.control_slow_ms)
        shut = gate(kept, health)
        if shut is not None:
            return shut_by(shut, kept, health, generator=self.generator, resamples=self.resamples)
        return self._of_figures(kept)

    def _of_figures(self, kept: Kept) -> Diagnosis:
        cases = self._cases(kept)
        has_warm = len(kept.columns.warm) > 0
        objective = self.evidence.objective
        decisions = [decide(case, objective, pairs=kept.pairs, has_warm=has_warm) for case in cases]
        chosen, case = decisions[0], cases[0]
        shares = _shares(decisions[1:])
        confidence = shares.pop(chosen.verdict, 0.0)
        return Diagnosis(
            verdict=chosen.verdict,
            side=chosen.side,
            confidence=confidence,
            level=level_of(confidence, chosen.limits),
            action=next_step(chosen.verdict, chosen.also, case, self.evidence.replicas),
            vantage=kept.vantage,
            numbers=numbers_of(kept, case),
            also=chosen.also,
            limits=tuple(sorted(chosen.limits)),
            alternatives=shares,
            changes=changes_of(chosen, case, objective),
        )

    def _cases(self, kept: Kept) -> list[Case]:
        """Return what was measured, and after it one case per resample."""
        evidence = self.evidence
        objective = evidence.objective
        figures = figures_of(
            kept, objective.percentile, self.generator, self.resamples, threshold_ms=objective.threshold_ms
        )
        fits = fits_of(evidence.lengths, evidence.typical_tokens, self.generator, self.resamples)
        return [Case(each, self.facts, fits[row] if fits else None) for row, each in enumerate(figures)]


def level_of(confidence: float, limits: frozenset[Limit]) -> Level:
    """Return the confidence in a word: what could not be looked at lowers it."""
    if limits & _WEAKEST or confidence < _MEDIUM:
        return Level.LOW
    return Level.MEDIUM if limits or confidence < _HIGH else Level.HIGH


def _shares(decisions: Sequence[Decision]) -> dict[Verdict, float]:
    counted = Counter(decision.verdict for decision in decisions)
    return {verdict: count / len(decisions) for verdict, count in counted.most_common()}


def _urgency(each: Diagnosis) -> tuple[int, float]:
    place = _ORDER.index(each.verdict) if each.verdict in _ORDER else _ORDER.index(None)
    if each.verdict is Verdict.NOT_ENOUGH_DATA and each.side is Side.HOST:
        place = _ORDER.index(None)  # it is slow: that is known
    return place, -(each.numbers.get("outside_ms") or 0.0)


def _scope(spoken: Diagnosis, found: Mapping[str, Diagnosis]) -> Scope:
    """Return how many of the vantage points that can be trusted are affected."""
    unknown = {Verdict.VANTAGE_BAD, Verdict.NOT_ENOUGH_DATA}
    trusted = [each for each in found.values() if each.verdict not in unknown or each.side is Side.HOST]
    if len(trusted) < 2 or spoken.verdict in {Verdict.HEALTHY, *unknown}:
        return Scope.UNKNOWN
    affected = sum(each.verdict is not Verdict.HEALTHY for each in trusted)
    if affected == len(trusted):
        return Scope.ALL
    return Scope.ONE if affected == 1 else Scope.SOME
