"""A diagnosis as a value, and the same as JSON: codes and numbers, so that it is read in any language later."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from monitoring.diagnosis.enums import ActionKind, Level, Limit, Scope, Side, Verdict

Parameter = float | int | str


class ChangeKind(StrEnum):
    """Which observation would lead to another verdict."""

    MORE_ROUNDS = "more_rounds"
    VANTAGE_WELL = "vantage_well"
    ERRORS_BELOW = "errors_below"
    SETTLED = "settled"
    OUTSIDE_OVER = "outside_over"
    LOSS_BELOW = "loss_below"
    SHARE_BELOW = "share_below"
    SHARE_ABOVE = "share_above"
    HOST_OVER = "host_over"
    HOST_UNDER = "host_under"
    WARM_UNDER = "warm_under"
    WARM_OVER = "warm_over"
    THROTTLED_BELOW = "throttled_below"
    QUEUE_BELOW = "queue_below"
    QUIET_ABOVE = "quiet_above"
    PROMPT_BELOW = "prompt_below"
    PROMPT_ABOVE = "prompt_above"
    DECODE_BELOW = "decode_below"
    CARD_ABOVE = "card_above"
    SWEEPS = "sweeps"


@dataclass(frozen=True, slots=True)
class Change:
    """One of them. now: what was measured; limit: where the verdict turns; in ms, shares or counts as `kind` says."""

    kind: ChangeKind
    now: float | None = None
    limit: float | None = None


@dataclass(frozen=True, slots=True)
class Action:
    """The one next step, with the numbers that belong to it."""

    kind: ActionKind
    parameters: Mapping[str, Parameter] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A verdict with what it rests on.

    confidence: share of resamples that come to the same verdict, 0 to 1; level: in a word, lowered by `limits`. alternatives: the
    shares of other verdicts. vantage: from where; vantages: the verdict of each. numbers: what was measured; None: not measured,
    or lost among failures. also: found beside it, the larger first.
    """

    verdict: Verdict
    side: Side
    confidence: float
    level: Level
    action: Action
    vantage: str = ""
    scope: Scope = Scope.UNKNOWN
    numbers: Mapping[str, float | None] = field(default_factory=dict)
    also: tuple[Verdict, ...] = ()
    limits: tuple[Limit, ...] = ()
    alternatives: Mapping[Verdict, float] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()
    vantages: Mapping[str, Verdict] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON values; what is not finite becomes null."""
        return {
            "verdict": self.verdict.value,
            "side": self.side.value,
            "confidence": round(self.confidence, 3),
            "level": self.level.value,
            "action": {"kind": self.action.kind.value, "parameters": dict(self.action.parameters)},
            "vantage": self.vantage,
            "scope": self.scope.value,
            "numbers": {name: _finite(value) for name, value in self.numbers.items()},
            "also": [verdict.value for verdict in self.also],
            "limits": [limit.value for limit in self.limits],
            "alternatives": {verdict.value: round(share, 3) for verdict, share in self.alternatives.items()},
            "changes": [
                {"kind": change.kind.value, "now": _finite(change.now), "limit": _finite(change.limit)}
                for change in self.changes
            ],
            "vantages": {name: verdict.value for name, verdict in self.vantages.items()},
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Return what `as_json` wrote. Raises ValueError or KeyError for anything else."""
        return cls(
            verdict=Verdict(stored["verdict"]),
            side=Side(stored["side"]),
            confidence=float(stored["confidence"]),
            level=Level(stored["level"]),
            action=Action(ActionKind(stored["action"]["kind"]), dict(stored["action"]["parameters"])),
            vantage=str(stored["vantage"]),
            scope=Scope(stored["scope"]),
            numbers=dict(stored["numbers"]),
            also=tuple(map(Verdict, stored["also"])),
            limits=tuple(map(Limit, stored["limits"])),
            alternatives={Verdict(name): float(share) for name, share in stored["alternatives"].items()},
            changes=tuple(Change(ChangeKind(told["kind"]), told["now"], told["limit"]) for told in stored["changes"]),
            vantages={name: Verdict(verdict) for name, verdict in stored["vantages"].items()},
        )


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, 4)
