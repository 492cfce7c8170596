"""Sends the arrivals of a plan at their moments, open loop: nothing waits for an answer; then steps of concurrency, closed.

Latencies are told from when a request was really sent; how much later that was than planned stands beside it, and the panel
adds it up: a process that cannot keep up makes the test invalid, and never the endpoint look fast.
"""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from fleet.agent import __version__
from fleet.agent.load.order import MOST_SHOTS, LoadAnswer, LoadOrder, LoadPiece, Phase, Shot, Stop
from fleet.agent.load.prompts import prompt_of
from fleet.agent.load.slots import Slots
from fleet.agent.probes.lag import LoopLag
from fleet.agent.probes.prober import Prober
from fleet.agent.probes.result import ProbeResult
from fleet.agent.probes.target import STREAMS, Target

TELL_SECONDS: Final = 2.0
LAG_SECONDS: Final = 60.0  # its 99th percentile is taken of each minute, and the worst one counts

# Tells the panel of a piece and returns what it says. Raises StopError when there is no panel any more.
Tell = Callable[[LoadPiece], Awaitable[LoadAnswer]]


class StopError(Exception):
    """The load ends now. why: as `LoadPiece.stopped`."""

    def __init__(self, why: Stop) -> None:
        super().__init__(why)
        self.why: Stop = why


@dataclass(slots=True)
class Generator:
    """One place's part. `run` returns how many were sent and why it ended early, "" when it did not."""

    order: LoadOrder
    prober: Prober
    tell: Tell
    _shots: list[Shot] = field(default_factory=list)
    _slots: Slots = field(default_factory=Slots)
    _lag: LoopLag = field(default_factory=LoopLag)
    _tasks: "set[asyncio.Task[bool]]" = field(default_factory=set)
    _turn: "itertools.count[int]" = field(default_factory=itertools.count)
    _sequence: int = 0
    _begin: float = 0.0
    _measured_from: float | None = None
    _lag_looked_at: float = 0.0
    _worst_lag: float | None = None
    _in_flight: int = 0
    _sent: int = 0
    _tokens: int = 0
    _phase: Phase = "warm_up"

    async def run(self) -> tuple[int, Stop]:
        """Send everything, step up, tell the last piece."""
        self._begin = time.monotonic()
        self._lag.start()
        stopped: Stop = ""
        try:
            await self._arrivals()
            await self._steps()
        except StopError as stop:
            stopped = stop.why
        finally:
            await self._end()
        if stopped != "lost":
            await self._last(stopped)
        return self._sent, stopped

    # ---- planned arrivals

    async def _arrivals(self) -> None:
        order = self.order
        told = asyncio.ensure_future(self._tell_on())
        try:
            for number, at in enumerate(order.at_seconds):
                if number == order.warm_up:
                    self._phase, self._measured_from = "measured", time.monotonic()
                    self._lag_looked_at = self._measured_from
                await self._until(at, told)
                self._fire(number, order.tokens[number])
            await self._settled(told)
            self._look_at_lag(is_last=True)
        finally:
            told.cancel()
            await asyncio.gather(told, return_exceptions=True)
        await self._tell_rest()

    async def _until(self, at: float, told: "asyncio.Task[None]") -> None:
        """Sleep until a moment after the beginning; what telling found out ends it. Raises StopError."""
        while True:
            if told.done():
                told.result()
            left = self._begin + at - time.monotonic()
            if left <= 0:
                return
            await asyncio.sleep(min(left, 0.5))

    def _fire(self, number: int, tokens: int) -> None:
        self._check_limits(tokens)
        if self._in_flight >= self.order.in_flight_most:
            at = time.monotonic() - self._begin
            self._shots.append(
                Shot(number, 0, round(at, 6), is_ok=False, in_flight=self._in_flight, outcome="in_flight_limit")
            )
            return
        task = asyncio.get_running_loop().create_task(self._shoot(number, 0, tokens))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _check_limits(self, tokens: int) -> None:
        """Raises StopError where the order ends whatever happens."""
        order = self.order
        if time.monotonic() - self._begin > order.most_seconds:
            raise StopError("seconds")
        if order.targets[0].kind in STREAMS:
            self._tokens += tokens + order.targets[0].max_tokens
        if self._tokens > order.most_tokens:
            raise StopError("tokens")

    async def _settled(self, told: "asyncio.Task[None]") -> None:
        """Wait for what is under way; each has its own timeout."""
        while self._tasks:
            if told.done():
                told.result()
            await asyncio.wait(tuple(self._tasks), timeout=0.5)

    async def _shoot(self, number: int, step: int, tokens: int) -> bool:
        """Send one request and keep what came of it; says whether it was ok."""
        slot, connection = self._slots.take()
        self._in_flight += 1
        in_flight, at = self._in_flight, time.monotonic() - self._begin
        self._sent += 1
        result: ProbeResult | None = None
        try:
            result = await self.prober.run(self._target(slot, tokens), connection)
        finally:
            self._in_flight -= 1
            self._slots.give(slot, is_open=result is not None and result.outcome == "ok")
        place = Shot(number, step, round(at, 6), is_ok=result.outcome == "ok", in_flight=in_flight, tokens=tokens)
        self._shots.append(_found(place, result))
        return result.outcome == "ok"

    def _target(self, slot: int, tokens: int) -> Target:
        """Return whom to ask: the targets in turn, a connection of the slot's own, the prompt's length."""
        targets = self.order.targets
        place = next(self._turn) % len(targets)
        target = targets[place]
        changes = {"prompt": prompt_of(tokens)} if target.kind in STREAMS else {}
        # A connection belongs to an id: of each target as many as there are slots.
        return replace(target, id=slot * len(targets) + place, connections=("warm",), **changes)

    # ---- steps of concurrency

    async def _steps(self) -> None:
        if self.order.step_seconds <= 0:
            return
        self._phase = "steps"
        answer = await self._told(self._piece(is_step_over=True))
        while answer.concurrency:
            await self._step(answer.concurrency)
            answer = await self._told(self._piece(step=answer.concurrency, is_step_over=True))

    async def _step(self, concurrency: int) -> None:
        """Keep so many under way for the time of a step; each begins when one before it is over."""
        end = time.monotonic() + self.order.step_seconds
        numbers = itertools.count()
        usual = sorted(self.order.tokens)[len(self.order.tokens) // 2]

        async def ask_on() -> None:
            while time.monotonic() < end:
                self._check_limits(usual)
                if not await self._shoot(next(numbers), concurrency, usual):
                    await asyncio.sleep(0.05)  # what refuses at once is not hammered

        workers = [asyncio.ensure_future(ask_on()) for _ in range(concurrency)]
        try:
            while workers_left := [worker for worker in workers if not worker.done()]:
                await asyncio.wait(workers_left, timeout=TELL_SECONDS)
                await self._told(self._piece(step=concurrency))
            for worker in workers:
                worker.result()
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
        await self._tell_rest(step=concurrency)

    # ---- telling

    async def _tell_on(self) -> None:
        """Tell of what happened every two seconds. Raises StopError."""
        while True:
            await asyncio.sleep(TELL_SECONDS)
            self._look_at_lag()
            await self._told(self._piece())

    async def _tell_rest(self, *, step: int = 0) -> None:
        while self._shots:
            await self._told(self._piece(step=step))

    async def _told(self, piece: LoadPiece) -> LoadAnswer:
        answer = await self.tell(piece)
        if not answer.go_on:
            raise StopError("told")
        return answer

    def _piece(self, *, step: int = 0, is_step_over: bool = False, stopped: Stop = "") -> LoadPiece:
        shots, self._shots = self._shots[:MOST_SHOTS], self._shots[MOST_SHOTS:]
        sequence, self._sequence = self._sequence, self._sequence + 1
        lag = None if self._worst_lag is None else round(self._worst_lag * 1000, 3)
        return LoadPiece(
            part=self.order.part, sequence=sequence, phase=self._phase, seconds=round(time.monotonic() - self._begin, 3),
            shots=shots, step=step, is_step_over=is_step_over, loop_lag_p99_ms=lag, stopped=stopped, agent_version=__version__,
        )  # fmt: skip

    async def _last(self, stopped: Stop) -> None:
        try:
            while len(self._shots) > MOST_SHOTS:
                await self.tell(self._piece())
            self._phase = "over"
            await self.tell(self._piece(stopped=stopped))
        except StopError:
            return

    def _look_at_lag(self, *, is_last: bool = False) -> None:
        """Keep the worst minute of the measured time; a shorter rest counts too."""
        if self._measured_from is None or self._phase != "measured":
            return
        lag = self._lag.since(self._lag_looked_at)
        if lag is not None:
            self._worst_lag = max(lag, self._worst_lag or 0.0)
        if time.monotonic() - self._lag_looked_at >= LAG_SECONDS or is_last:
            self._lag_looked_at = time.monotonic()

    async def _end(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._lag.stop()


def _found(place: Shot, result: ProbeResult) -> Shot:
    """Return the shot with what came of it; one that failed has no times."""
    counted = (result.prompt_tokens or place.tokens) + (result.completion_tokens or 0)
    if not place.is_ok:
        return replace(place, tokens=counted, outcome=result.outcome, detail=f"{result.reason}: {result.detail}"[:120])
    times = {name: getattr(result, name) for name in ("total_ms", "ttft_ms", "e2e_ms", "tpot_ms")}
    return replace(place, tokens=counted, outcome=result.outcome, **times)
