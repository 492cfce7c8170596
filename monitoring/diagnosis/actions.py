"""The one next step of a verdict, with its numbers."""

import math
from collections.abc import Mapping
from typing import Final

from monitoring.diagnosis.enums import ActionKind, Verdict
from monitoring.diagnosis.evidence import EngineFacts
from monitoring.diagnosis.figures import Figures
from monitoring.diagnosis.host import Case, HostFacts
from monitoring.diagnosis.report import Action, Parameter

FULL_SLOTS: Final = 0.9  # of max_num_seqs: the engine takes no more at once
FREE_CACHE: Final = 0.7  # KV cache in use: under it more requests find room

_SIMPLE: Final[Mapping[Verdict, ActionKind]] = {
    Verdict.HEALTHY: ActionKind.NOTHING,
    Verdict.VANTAGE_BAD: ActionKind.FIX_VANTAGE,
    Verdict.DNS: ActionKind.FIX_RESOLVER,
    Verdict.HANDSHAKE: ActionKind.KEEP_ALIVE,
    Verdict.DISTANCE: ActionKind.MOVE_REGION,
    Verdict.GATEWAY: ActionKind.CHECK_GATEWAY,
    Verdict.BUFFERING: ActionKind.STOP_BUFFERING,
    Verdict.TRANSFER: ActionKind.WIDEN_UPLINK,
    Verdict.PACKET_LOSS: ActionKind.CHECK_ROUTE,
    Verdict.DECODE_BANDWIDTH: ActionKind.QUANTISE,
    Verdict.CPU: ActionKind.ADD_CPU,
    Verdict.NOT_ENOUGH_DATA: ActionKind.RUN_SWEEPS,  # after the gates: the host is slow, and nothing explains it
}


def next_step(verdict: Verdict, also: tuple[Verdict, ...], case: Case, replicas: int) -> Action:
    """Return what to do about a verdict that came out of figures; of mixed ones about the larger part."""
    if verdict is Verdict.MIXED:
        return next_step(also[0], (), case, replicas)
    if verdict is Verdict.QUEUEING:
        return _more_room(case.facts, replicas)
    found = _of_work(verdict, case)
    return found or Action(_SIMPLE[verdict], _numbers(verdict, case.figures))


def _of_work(verdict: Verdict, case: Case) -> Action | None:
    cards, engine = case.facts.cards, case.facts.engine
    match verdict:
        case Verdict.THROTTLED:
            is_heat = (cards.heat_share or 0.0) >= (cards.power_share or 0.0)
            return Action(ActionKind.COOL_CARD if is_heat else ActionKind.RAISE_POWER_LIMIT)
        case Verdict.PREFILL_BOUND:
            return Action(ActionKind.CACHE_PREFIXES if engine.has_prefix_cache is False else ActionKind.ADD_COMPUTE)
        case Verdict.DECODE:  # measured, and not held up by memory: something beside the card is
            return Action(ActionKind.QUANTISE if cards.dram_active is None else ActionKind.PROFILE_HOST)
        case Verdict.FIXED_OVERHEAD:
            told = {} if case.fit is None else {"ms": round(max(case.fit.intercept_ms, 0.0), 1)}
            return Action(ActionKind.PROFILE_HOST, told)
    return None


def _numbers(verdict: Verdict, figures: Figures) -> dict[str, Parameter]:
    told = {
        Verdict.DNS: figures.dns,
        Verdict.HANDSHAKE: figures.tcp + figures.tls,
        Verdict.DISTANCE: figures.rtt,
        Verdict.GATEWAY: figures.hop,
        Verdict.TRANSFER: figures.transfer,
    }
    return {"ms": round(told[verdict], 1)} if verdict in told else {}


def _more_room(facts: HostFacts, replicas: int) -> Action:
    """More requests at once where the engine has memory for them and the card still gains; else more replicas.

    Replicas: so many that each gets no more than its knee of what is waiting and running now.
    """
    engine, knee = facts.engine, facts.knee
    slots = engine.max_num_seqs
    if slots is not None and _has_free_memory(engine, slots) and (knee is None or knee.concurrency > slots):
        return Action(ActionKind.RAISE_MAX_NUM_SEQS, {"now": slots, "to": slots * 2})
    wanted = replicas + 1
    if knee is not None and engine.running is not None and engine.waiting is not None:
        wanted = max(wanted, math.ceil(replicas * (engine.running + engine.waiting) / knee.concurrency))
    return Action(ActionKind.SCALE_TO, {"replicas": wanted, "now": replicas})


def _has_free_memory(engine: EngineFacts, slots: int) -> bool:
    if engine.running is None or engine.kv_cache_usage is None:
        return False
    return engine.running >= FULL_SLOTS * slots and engine.kv_cache_usage < FREE_CACHE
