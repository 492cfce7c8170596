"""Whether it is the targets that fail, or the place that looks at them. Pure: time comes in as an argument."""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from msgspec.structs import replace

from fleet.agent.probes.result import Outcome, ProbeResult

WINDOW_SECONDS: Final = 120.0
JUDGE_SECONDS: Final = 1.0
SHARE: Final = 0.8
# What says nothing of target or network.
SILENT: Final = frozenset({"skipped"})
# What the network of this place can be the cause of; an answer that is wrong has come a long way.
BY_NETWORK: Final = frozenset({"timeout", "dns", "connect", "tls", "aborted", "vantage_down"})

State = Literal["good", "slow", "bad", "unknown"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """state: `bad` (no network here: one incident, targets are unknown), `slow` (the control is over its threshold: no alert
    on latency), `good`, or `unknown` without a control's result. failing, targets: of the window, controls not counted.
    """

    state: State
    failing: int = 0
    targets: int = 0
    control: Outcome | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """What matters of one result. slow_ms: threshold of a control."""

    at: float
    target: int
    outcome: Outcome
    is_control: bool
    is_slow: bool

    @property
    def is_failed(self) -> bool:
        """Whether the network of this place could be why."""
        return self.outcome in BY_NETWORK


def judge(seen: Iterable[Seen], now: float) -> Verdict:
    """Return the verdict over the last two minutes: each target by its newest result.

    `bad`: every control failed, and at least 80 % of the targets did.
    """
    newest: dict[int, Seen] = {}
    for one in seen:
        is_fresh = now - WINDOW_SECONDS <= one.at <= now and one.outcome not in SILENT
        if is_fresh and (one.target not in newest or newest[one.target].at <= one.at):
            newest[one.target] = one
    controls = [one for one in newest.values() if one.is_control]
    others = [one for one in newest.values() if not one.is_control]
    failing = sum(one.is_failed for one in others)
    if not controls:
        return Verdict("unknown", failing, len(others))
    control = max(controls, key=lambda one: one.at).outcome
    if all(one.is_failed for one in controls):
        is_all = failing >= SHARE * len(others)
        return Verdict("bad" if is_all else "slow", failing, len(others), control)
    state: State = "slow" if all(one.is_failed or one.is_slow for one in controls) else "good"
    return Verdict(state, failing, len(others), control)


Change = Literal["opened", "recovered"]


class Watch:
    """Follows one vantage: one incident when it goes bad, one recovery when its control answers again.

    Bounded: it remembers the newest result of each target for two minutes, of at most `most` targets. It judges at each result
    of a control, and once a second besides.
    """

    def __init__(self, most: int = 20_000) -> None:
        self._seen: OrderedDict[int, Seen] = OrderedDict()
        self._most = most
        self._judged_at = float("-inf")
        self.verdict = Verdict("unknown")
        self.bad_since: float | None = None

    def take(self, result: ProbeResult, *, is_control: bool, slow_ms: float | None, now: float) -> Change | None:
        """Note a result; return what changed by it, if anything."""
        is_slow = slow_ms is not None and (result.total_ms is None or result.total_ms > slow_ms)
        outcome: Outcome = result.outcome
        if outcome not in SILENT:
            self._seen[result.target] = Seen(now, result.target, outcome, is_control, is_slow)
            self._seen.move_to_end(result.target)
        if is_control or not 0 <= now - self._judged_at < JUDGE_SECONDS:
            self._forget(now)
            self.verdict, self._judged_at = judge(self._seen.values(), now), now
        if self.verdict.state == "bad" and self.bad_since is None:
            self.bad_since = now
            return "opened"
        if self.bad_since is not None and is_control and outcome not in BY_NETWORK | SILENT:
            self.bad_since = None
            return "recovered"
        return None

    def _forget(self, now: float) -> None:
        while self._seen:
            oldest = next(iter(self._seen.values()))
            if len(self._seen) <= self._most and oldest.at >= now - WINDOW_SECONDS:
                return
            self._seen.popitem(last=False)

    def marked(self, result: ProbeResult) -> ProbeResult:
        """Return the result as it goes on record: while the vantage is bad, a failure is the vantage's and says so."""
        if self.bad_since is None or result.outcome not in BY_NETWORK:
            return result
        return replace(result, outcome="vantage_down", reason=result.outcome)
