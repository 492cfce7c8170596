"""The jobs `diagnose` (on the engine's machine) and `probe_round` (from outside): one plan, measured once, within its time."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

import msgspec

from fleet.agent import __version__
from fleet.agent.jobs.task import Task
from fleet.agent.probes.addresses import Rules
from fleet.agent.probes.prober import Prober
from fleet.agent.probes.target import TargetError, check
from fleet.agent.rounds.budget import Budget
from fleet.agent.rounds.engine_times import Look, between, read_look
from fleet.agent.rounds.page import Pages
from fleet.agent.rounds.plan import Found, Plan, RoundFound
from fleet.agent.rounds.running import probing, run_rounds
from fleet.agent.rounds.sweeping import sweep_concurrency, sweep_lengths

Say = Callable[[int, str], None]
LOOKS: Final = 12  # at the engine's page over the rounds: gauges need several
_ROUNDS, _LENGTHS = 70, 85  # percent at which these are over


class PlanError(ValueError):
    """The panel's plan cannot be measured; the sentence says why."""


def measure(task: Task, say: Say) -> Found:
    """Measure what the task's plan says. Raises PlanError."""
    try:
        plan = msgspec.convert(task.arguments.get("plan"), Plan)
        for target in (plan.target, plan.control):
            if target is not None:
                check(target)
    except (msgspec.ValidationError, TargetError) as error:
        raise PlanError(str(error)) from None
    own = frozenset((address, port) for address in ("127.0.0.1", "::1") for port in task.own_ports)
    rules = Rules.of(task.probe_networks, places=own)
    return asyncio.run(_Measuring(plan, task.vantage, rules, say).run())


class _Measuring:
    def __init__(self, plan: Plan, vantage: str, rules: Rules, say: Say) -> None:
        self._plan, self._vantage, self._rules, self._say = plan, vantage, rules, say
        self._found = Found(agent_version=__version__)
        self._looks: list[Look] = []

    async def run(self) -> Found:
        plan = self._plan
        async with Prober(self._vantage, rules=self._rules) as prober:
            watching = asyncio.ensure_future(self._watch()) if plan.metrics_path else None
            try:
                await run_rounds(plan, self._vantage, probing(prober), self._on_round)
            finally:
                if watching is not None:
                    watching.cancel()
                    await asyncio.gather(watching, return_exceptions=True)
            await self._look()
            self._found.engine = between(self._looks)
            if plan.sweeps is not None:
                await self._sweep(prober)
        return self._found

    def _on_round(self, one: RoundFound) -> None:
        self._found.rounds.append(one)
        whole = _ROUNDS if self._plan.sweeps else 100
        self._say(min(whole * len(self._found.rounds) // max(len(self._plan.slots), 1), 100), "rounds")

    async def _sweep(self, prober: Prober) -> None:
        plan, found, probe, say = self._plan, self._found, probing(prober), self._say
        assert plan.sweeps is not None  # noqa: S101  # asked before
        budget = Budget(plan.sweeps)

        def in_lengths(part: float) -> None:
            say(_ROUNDS + round((_LENGTHS - _ROUNDS) * part), "lengths")

        def in_steps(part: float) -> None:
            say(_LENGTHS + round((100 - _LENGTHS) * part), "concurrency")

        found.lengths = await sweep_lengths(plan, plan.sweeps, budget, probe, in_lengths)
        if not budget.stopped:
            found.steps = await sweep_concurrency(plan, plan.sweeps, budget, probe, in_steps)
        found.stopped = budget.stopped
        found.seconds, found.requests, found.tokens = round(budget.seconds, 1), budget.requests, budget.tokens

    async def _watch(self) -> None:
        """Look at the engine's page from the beginning of the rounds on."""
        plan = self._plan
        every = plan.slot_seconds * max(len(plan.slots) // LOOKS, 1)
        await asyncio.sleep(max(plan.begin_at - time.time(), 0.0))
        while True:
            await self._look()
            await asyncio.sleep(every)

    async def _look(self) -> None:
        plan = self._plan
        if not plan.metrics_path:
            return
        page = await Pages(plan.target, plan.metrics_path, plan.metrics_port, self._vantage, self._rules).fetch()
        look = read_look(page)
        if look:
            self._looks.append(look)
