"""The host branch: held back, waiting, computing the prompt, producing tokens, or busy beside the card."""

from dataclasses import dataclass
from typing import Final

from monitoring.diagnosis.cards import CardFacts, card_facts
from monitoring.diagnosis.enums import Limit, Measure, Verdict
from monitoring.diagnosis.evidence import CpuFacts, EngineFacts, Evidence
from monitoring.diagnosis.figures import Figures
from monitoring.diagnosis.network import Cause
from monitoring.diagnosis.sweep import LEAST_SHARE, LengthFit
from monitoring.knee import Knee, Step, disagreeing, knee_of

MOST: Final = 0.5  # of the time: what takes more is the cause
BUSY_DRAM: Final = 0.6
IDLE_TENSOR: Final = 0.4
IDLE_SM: Final = 0.3
BUSY_CPU: Final = 0.85
BUSY_CORE: Final = 0.95  # one core at its limit: Python's own code runs on one
LEAST_RUNNING: Final = 0.5  # requests on average: an idle card is idle for no other reason


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What does not change with the rounds that are drawn. quiet_ms: a usual request that is alone on the host."""

    measure: Measure
    engine: EngineFacts
    cards: CardFacts
    cpu: CpuFacts
    steps: tuple[Step, ...]
    knee: Knee | None
    quiet_ms: float | None

    @classmethod
    def of(cls, evidence: Evidence) -> "HostFacts":
        """Take them out of the evidence."""
        return cls(
            measure=evidence.objective.measure,
            engine=evidence.engine,
            cards=card_facts(evidence.gpus),
            cpu=evidence.cpu,
            steps=evidence.steps,
            knee=knee_of(evidence.steps),
            quiet_ms=_quiet(evidence),
        )


@dataclass(frozen=True, slots=True)
class Case:
    """One set of figures with what belongs to it. fit: of the length sweep drawn with them, None without one."""

    figures: Figures
    facts: HostFacts
    fit: LengthFit | None = None

    @property
    def shares(self) -> "Shares":
        """Parts of a request by the engine's own times."""
        return engine_shares(self.facts.engine, self.facts.measure, self.figures.host)


@dataclass(frozen=True, slots=True)
class Shares:
    """Parts of a request by the engine's own times; None for what it does not expose."""

    queue: float | None
    prefill: float | None
    decode: float | None


def host_cause(case: Case) -> Cause | None:
    """Return the cause; None when the host is slow and nothing that was measured explains it."""
    if case.facts.cards.is_throttled:
        return Cause(Verdict.THROTTLED)
    return cause_of_work(case)


def cause_of_work(case: Case) -> Cause | None:
    """Return the cause, clocks aside."""
    shares = case.shares
    return (
        _queueing(case, shares)
        or _prefill(shares, case.fit)
        or _decode(case, shares)
        or _beside_the_card(case)
        or _fixed(shares, case.fit)
    )


def engine_shares(engine: EngineFacts, measure: Measure, host_ms: float) -> Shares:
    """Return the parts of the time that the objective is about: to the first token there is no decoding.

    Of what the engine adds up to, where it tells all parts; else of what was measured on the host.
    """
    decode = 0.0 if measure is Measure.TTFT else engine.decode_ms
    parts = (engine.queue_ms, engine.prefill_ms, decode)
    told = [part for part in parts if part is not None]
    whole = sum(told) if len(told) == len(parts) else host_ms
    if whole <= 0:
        return Shares(None, None, None)
    return Shares(*(None if part is None else min(part / whole, 1.0) for part in parts))


def _queueing(case: Case, shares: Shares) -> Cause | None:
    facts = case.facts
    if shares.queue is not None:
        return Cause(Verdict.QUEUEING, _sweep_limits(facts) & {Limit.NO_SWEEP}) if shares.queue > MOST else None
    if facts.quiet_ms is None or facts.quiet_ms >= MOST * case.figures.host:
        return None
    return Cause(Verdict.QUEUEING, _sweep_limits(facts))


def _sweep_limits(facts: HostFacts) -> frozenset[Limit]:
    if not facts.steps:
        return frozenset({Limit.NO_SWEEP})
    found = set() if facts.knee else {Limit.NO_PLATEAU}
    if disagreeing(facts.steps):
        found.add(Limit.LITTLE_DISAGREES)
    return frozenset(found)


def _prefill(shares: Shares, fit: LengthFit | None) -> Cause | None:
    if shares.prefill is not None:
        return Cause(Verdict.PREFILL_BOUND) if shares.prefill > MOST else None
    return Cause(Verdict.PREFILL_BOUND) if fit is not None and fit.is_prefill else None


def _decode(case: Case, shares: Shares) -> Cause | None:
    figures, facts = case.figures, case.facts
    if facts.measure is Measure.TTFT:
        return None
    share = shares.decode if shares.decode is not None else figures.generated / figures.host_e2e
    if not share > MOST:  # also where it is not a number: nothing was streamed
        return None
    dram, tensor = facts.cards.dram_active, facts.cards.tensor_active
    if dram is None or tensor is None:
        return Cause(Verdict.DECODE, frozenset({Limit.NO_GPU_ACTIVITY}))
    if dram > BUSY_DRAM and tensor < IDLE_TENSOR:
        return Cause(Verdict.DECODE_BANDWIDTH)
    return _beside_the_card(case) or Cause(Verdict.DECODE)


def _beside_the_card(case: Case) -> Cause | None:
    facts = case.facts
    sm, running = facts.cards.sm_active, facts.engine.running
    if sm is None:  # no card that tells, or none at all
        return Cause(Verdict.CPU, frozenset({Limit.NO_GPU_ACTIVITY})) if _is_busy(facts.cpu, whole=True) else None
    if sm >= IDLE_SM or running is None or running < LEAST_RUNNING:
        return None
    if facts.cpu.all_cores is None and facts.cpu.busiest_core is None:
        return Cause(Verdict.CPU, frozenset({Limit.NO_CPU}))
    if _is_busy(facts.cpu):
        return Cause(Verdict.CPU)
    return Cause(Verdict.FIXED_OVERHEAD, frozenset({Limit.NO_LENGTHS}) if case.fit is None else frozenset())


def _is_busy(cpu: CpuFacts, *, whole: bool = False) -> bool:
    is_all = cpu.all_cores is not None and cpu.all_cores >= BUSY_CPU
    return is_all or (not whole and cpu.busiest_core is not None and cpu.busiest_core >= BUSY_CORE)


def _fixed(shares: Shares, fit: LengthFit | None) -> Cause | None:
    if fit is not None:
        is_clear = fit.share <= LEAST_SHARE
        return Cause(Verdict.FIXED_OVERHEAD, frozenset() if is_clear else frozenset({Limit.SHARE_UNCLEAR}))
    if None not in {shares.queue, shares.prefill, shares.decode}:  # all told, and none of them is most of it
        return Cause(Verdict.FIXED_OVERHEAD, frozenset({Limit.NO_LENGTHS}))
    return None


def _quiet(evidence: Evidence) -> float | None:
    if evidence.quiet_ms is not None:
        return evidence.quiet_ms
    usual = sorted(evidence.lengths.get(evidence.typical_tokens, ()))
    if usual:
        return usual[len(usual) // 2]
    alone = [step.latency_ms for step in evidence.steps if step.concurrency == 1]
    return alone[0] if alone and evidence.objective.measure is not Measure.TTFT else None
