"""Sweeps on the engine's own machine: prompts of growing length one at a time, then more and more requests at once."""

import asyncio
import random
import secrets
import statistics
import time
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from fleet.agent.probes.result import ProbeResult
from fleet.agent.probes.target import STREAMS, Target
from fleet.agent.rounds.budget import Budget, OverError
from fleet.agent.rounds.plan import LengthFound, Measure, Plan, StepFound, Sweeps
from fleet.agent.rounds.running import Probe

# Common words are one token each in the vocabularies of today's models; what the engine counts is what is kept.
WORDS: Final = ("time", "year", "people", "way", "day", "man", "thing", "woman", "life", "child", "world", "school")
PREFIX_TOKENS: Final = 12  # of the unique beginning that each prompt gets, and of the chat's frame
Say = Callable[[float], None]


def prompt_of(tokens: int) -> str:
    """Return a text of about so many tokens that nobody has asked before."""
    drawn = random.Random(secrets.randbits(64))  # noqa: S311  # no secret, only unlike the one before
    return " ".join(drawn.choices(WORDS, k=max(tokens - PREFIX_TOKENS, 1)))


def latency_of(result: ProbeResult, measure: Measure) -> float | None:
    """Return the time that the sweep is about, in ms; None when the request has none."""
    if result.outcome != "ok":
        return None
    return {"total": result.total_ms, "ttft": result.ttft_ms, "e2e": result.e2e_ms}[measure]


async def sweep_lengths(plan: Plan, sweeps: Sweeps, budget: Budget, probe: Probe, say: Say) -> list[LengthFound]:
    """Return the latencies of each length, as far as the budget went.

    Lengths take turns, so that whatever else happens meanwhile meets all of them. One that the engine refuses twice (a context
    that is too short for it) is not asked again.
    """
    if plan.target.kind not in STREAMS:
        return []
    found = {length: LengthFound(asked=length, tokens=length) for length in sweeps.lengths}
    counted: dict[int, list[int]] = {length: [] for length in sweeps.lengths}
    try:
        for turn in range(sweeps.repeats):
            for place, length in enumerate(sweeps.lengths):
                one = found[length]
                if one.failed >= 2 and not one.latencies_ms:
                    continue
                budget.take(length + plan.target.max_tokens)
                result = await probe(replace(plan.target, prompt=prompt_of(length)), "cold")
                _note(one, counted[length], result, plan.measure)
                budget.note(result)
                say((turn * len(found) + place + 1) / (sweeps.repeats * len(found)))
    except OverError:
        pass
    for length, one in found.items():
        if counted[length]:
            one.tokens = round(statistics.median(counted[length]))
    return [one for one in found.values() if one.latencies_ms]


def _note(one: LengthFound, counted: list[int], result: ProbeResult, measure: Measure) -> None:
    latency = latency_of(result, measure)
    if latency is None:
        one.failed += 1
        return
    one.latencies_ms.append(round(latency, 3))
    if result.prompt_tokens:
        counted.append(result.prompt_tokens)


async def sweep_concurrency(plan: Plan, sweeps: Sweeps, budget: Budget, probe: Probe, say: Say) -> list[StepFound]:
    """Return the steps from few to many at once, as far as the budget went; a step that it cut off is left out."""
    steps: list[StepFound] = []
    try:
        for place, concurrency in enumerate(sorted(sweeps.concurrencies)):
            steps.append(await _step(plan, sweeps.each, concurrency, budget, probe))
            say((place + 1) / len(sweeps.concurrencies))
    except OverError:
        pass
    return steps


async def _step(plan: Plan, each: int, concurrency: int, budget: Budget, probe: Probe) -> StepFound:
    """Keep so many requests under way until the first of them has done its share, then let the others end.

    Throughput is taken over the time in which all were at work; a request that goes on beyond it counts with the part within,
    so that the end of a step distorts nothing.
    """
    target = plan.target
    if target.kind in STREAMS:
        target = replace(target, prompt=prompt_of(plan.typical_tokens))
    spans: list[tuple[float, float, float | None]] = []
    is_over = asyncio.Event()

    async def work() -> None:
        for _ in range(each):
            if is_over.is_set():
                return
            budget.take(plan.typical_tokens + target.max_tokens)
            began = time.monotonic()
            result = await probe(target, "cold")
            spans.append((began, time.monotonic(), latency_of(result, _whole(target))))
            budget.note(result)
        is_over.set()

    began = time.monotonic()
    tasks = [asyncio.ensure_future(work()) for _ in range(concurrency)]
    over = asyncio.ensure_future(_moment(is_over))
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in (*tasks, over):
            task.cancel()
        await asyncio.gather(*tasks, over, return_exceptions=True)
    ended = over.result() if over.done() and not over.cancelled() else time.monotonic()
    return _added_up(concurrency, spans, began, ended)


async def _moment(event: asyncio.Event) -> float:
    await event.wait()
    return time.monotonic()


def _whole(target: Target) -> Measure:
    """Concurrency is about whole requests, whatever the objective is about: by them the engine is busy."""
    return "e2e" if target.kind in STREAMS else "total"


def _added_up(
    concurrency: int, spans: list[tuple[float, float, float | None]], began: float, ended: float
) -> StepFound:
    good = [(start, end, latency) for start, end, latency in spans if latency is not None]
    done = sum(min(1.0, max(ended - start, 0.0) / (end - start)) if end > start else 1.0 for start, end, _ in good)
    seconds = max(ended - began, 1e-6)
    return StepFound(
        concurrency=concurrency,
        latency_ms=round(statistics.fmean(latency for _, _, latency in good), 3) if good else 0.0,
        throughput_per_second=round(done / seconds, 4),
        n=len(good),
        failed=len(spans) - len(good),
    )
