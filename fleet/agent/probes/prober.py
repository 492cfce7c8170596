"""Runs one probe from beginning to end: within its time, with whatever the other side does, and keeps warm connections."""

import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from types import TracebackType
from typing import Final

from msgspec.structs import replace

from fleet.agent.probes.addresses import Rules
from fleet.agent.probes.channel import Channel
from fleet.agent.probes.deadline import DeadlineError, within
from fleet.agent.probes.dial import Way
from fleet.agent.probes.job import Job
from fleet.agent.probes.lag import LoopLag
from fleet.agent.probes.plain_http import Body
from fleet.agent.probes.registry import PROBES, WITH_CONNECTION
from fleet.agent.probes.report import Around, result_of
from fleet.agent.probes.resolver import Resolver
from fleet.agent.probes.result import ProbeError, ProbeResult, Trace
from fleet.agent.probes.target import Connection, Target, TargetError, check
from fleet.agent.probes.tls import Contexts
from fleet.agent.probes.web import request_of

MOST_KEPT: Final = 1_000
MOST_REMEMBERED: Final = 10_000
log = logging.getLogger(__name__)


class Prober:
    """One place that probes, in one event loop; use as an async context manager.

    vantage: the name of the place, told in each result and to each target. rules: which addresses are allowed. wall: the clock
    of stamps and schedules, seconds since 1970.
    """

    def __init__(
        self,
        vantage: str,
        *,
        rules: Rules,
        resolver: Resolver | None = None,
        contexts: Contexts | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.vantage, self.wall = vantage, wall
        self._way = Way(rules, resolver or Resolver(), contexts or Contexts())
        self._lag = LoopLag()
        self._kept: OrderedDict[int, tuple[Target, Channel]] = OrderedDict()
        self._without_usage: set[int] = set()

    async def __aenter__(self) -> "Prober":  # noqa: PYI034  # Python 3.10 has no Self
        self._lag.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections that were kept."""
        await self._lag.stop()
        while self._kept:
            self._kept.popitem()[1][1].link.abort()

    async def run(
        self,
        target: Target,
        connection: Connection = "cold",
        *,
        scheduled: float | None = None,
        on_open: Callable[[], None] | None = None,
    ) -> ProbeResult:
        """Probe once. Never raises for what a target does.

        scheduled: when it should have begun (wall clock, seconds). on_open: called when the connection is open, and what
        follows is mostly waiting.

        A cold probe opens a connection of its own; a warm one uses one that is open, and opens it unmeasured before it begins.
        """
        self._lag.start()
        started = self.wall()
        job = Job(
            self._way, target, self.vantage, secrets.token_hex(8), without_usage=self._without_usage, on_open=on_open
        )
        begun = job.trace.started
        failure: ProbeError | None = None
        try:
            failure = await self._outcome(job, connection)
        finally:
            self._keep(job, is_ok=failure is None)
        ended = time.monotonic()
        around = Around(self.vantage, connection, scheduled or started, started, begun, ended, self._lag.since(begun))
        return result_of(target, job.trace, around, failure)

    async def _outcome(self, job: Job, connection: Connection) -> ProbeError | None:
        """Probe within the target's time; return what was not ok."""
        seconds = job.target.effective_timeout_seconds
        try:
            check(job.target)
            await within(seconds, self._probe(job, connection))
        except DeadlineError:
            return ProbeError("timeout", "timeout", f"not over after {seconds:g} s")
        except ProbeError as found:
            return found
        except TargetError as error:
            return ProbeError("skipped", "not_a_target", str(error))
        except Exception as error:  # the edge: one target's surprise ends no other one's probes
            log.exception("probe.failed_itself", extra={"target": job.target.id})
            return ProbeError("skipped", "prober_error", type(error).__name__)
        return None

    async def _probe(self, job: Job, connection: Connection) -> None:
        probe = PROBES[job.target.kind]
        if connection == "cold":
            await probe(job)
            return
        if job.target.kind not in WITH_CONNECTION:
            raise ProbeError("skipped", "never_warm", f"a {job.target.kind} probe has no connection to use again")
        job.channel = self._taken(job.target)
        if job.channel is not None:
            try:
                await _measure(job)
            except ProbeError as failure:
                # The server may close what is idle at the very moment in which we write: that says nothing of it.
                if failure.reason != "closed" or job.trace.headers is not None:
                    raise
                job.begin_again(is_from_start=True)
            else:
                return
        await _warm_up(job)
        await _measure(job)

    def _taken(self, target: Target) -> Channel | None:
        """Return the open connection of a target, which is then nobody else's."""
        known, channel = self._kept.pop(target.id, (None, None))
        if channel is None:
            return None
        if _same(known, target) and channel.is_open and self._way.rules.allow(channel.address, target.default_port):
            return channel
        channel.link.abort()
        return None

    def _keep(self, job: Job, *, is_ok: bool) -> None:
        """Keep the connection for the target's next warm probe, if there will be one; else close it."""
        channel, target = job.channel, job.target
        if channel is None:
            return
        if not (is_ok and "warm" in target.connections and channel.is_open):
            job.drop()
            return
        if target.id in self._kept:
            self._kept.pop(target.id)[1].link.abort()
        self._kept[target.id] = (target, channel)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)[1][1].link.abort()

    def forget(self, ids: set[int]) -> None:
        """Close and forget what belongs to targets that are no more."""
        for gone in ids:
            self._without_usage.discard(gone)
            if gone in self._kept:
                self._kept.pop(gone)[1].link.abort()


def _same(known: Target | None, target: Target) -> bool:
    """Say whether two targets are one, however often they were asked for at once."""
    return known is not None and replace(known, run=target.run) == target


async def _measure(job: Job) -> None:
    """Run the probe over the connection at hand, with a fresh trace."""
    job.trace = Trace()
    await PROBES[job.target.kind](job)


async def _warm_up(job: Job) -> None:
    """Open a connection by a request that is not measured. Raises ProbeError; the trace then tells how far it came."""
    kept = job.trace
    try:
        if job.target.kind == "grpc_health":
            await PROBES["grpc_health"](job)
        else:
            body = Body()
            await job.ask(request_of(job.target, job.vantage, method="GET", path=job.warm_path), body.add)
    except ProbeError as failure:
        job.trace = _only_how_far(job.trace, kept.started)
        raise ProbeError(failure.outcome, failure.reason, f"before the warm request: {failure.detail}") from None
    if job.channel is None or not job.channel.is_open:
        job.trace = _only_how_far(job.trace, kept.started)
        raise ProbeError("skipped", "no_keep_alive", "the server closes the connection after each answer")


def _only_how_far(trace: Trace, started: float) -> Trace:
    """Return a trace with neither phases nor answer: those of opening a connection are not a warm probe's."""
    return Trace(started=started, phase=trace.phase, address=trace.address, family=trace.family, tried=trace.tried)
