"""Paired rounds: in each of its slots a place probes cold, then warm, then its control target."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from fleet.agent.probes.prober import Prober
from fleet.agent.probes.result import Outcome, ProbeResult
from fleet.agent.probes.target import Connection, Target
from fleet.agent.rounds.plan import LONGEST_WAIT_SECONDS, Plan, RoundFound

# Given a target and a kind of connection, probe once.
Probe = Callable[[Target, Connection], Awaitable[ProbeResult]]
OnRound = Callable[[RoundFound], None]
LEAST_LATE: Final = 0.5  # of a slot: a round that begins later than this has missed it


async def run_rounds(
    plan: Plan, vantage: str, probe: Probe, on_round: OnRound, *, wall: Callable[[], float] = time.time
) -> None:
    """Measure in each slot of the plan and hand each round on as it is over.

    A slot that the round before ran into is noted as `overlap`: a user would have waited, too. One that had passed before this
    place began is left out: nobody asked in it. Sleeps no longer than LONGEST_WAIT_SECONDS for one slot, whatever the clocks say.
    """
    has_begun = False
    for slot in plan.slots:
        due = plan.begin_at + slot * plan.slot_seconds + plan.offset_seconds
        wait = due - wall()
        if wait < -LEAST_LATE * plan.slot_seconds:
            if has_begun:
                on_round(RoundFound(slot=slot, cold=_skipped(plan.target, vantage, due, wall())))
            continue
        await asyncio.sleep(min(max(wait, 0.0), LONGEST_WAIT_SECONDS))
        has_begun = True
        on_round(await _one(plan, slot, probe))


async def _one(plan: Plan, slot: int, probe: Probe) -> RoundFound:
    found = RoundFound(slot=slot, cold=await probe(plan.target, "cold"))
    if "warm" in plan.target.connections:
        found.warm = await probe(plan.target, "warm")
    if plan.control is not None:
        found.control = await probe(plan.control, "cold")
    return found


def _skipped(target: Target, vantage: str, due: float, now: float) -> ProbeResult:
    outcome: Outcome = "skipped"
    return ProbeResult(
        target=target.id,
        kind=target.kind,
        vantage=vantage,
        connection="cold",
        scheduled_ms=round(due * 1000),
        started_ms=round(now * 1000),
        outcome=outcome,
        reason="overlap",
        detail="the round before was still under way",
        timeout_ms=target.effective_timeout_seconds * 1000,
    )


def probing(prober: Prober) -> Probe:
    """Return how to probe with a prober that is this task's alone."""

    async def probe(target: Target, connection: Connection) -> ProbeResult:
        return await prober.run(target, connection)

    return probe
