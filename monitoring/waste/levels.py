"""What a card draws while it waits, learned from its own quiet minutes. Pure.

Three levels lie apart: bare (no process), loaded (a CUDA context: 26 to 66 W more, however much memory is filled) and working.
They differ from card to card of one model, so each card's own are learned: the lower tenth of its quiet minutes, which is
right as soon as some of them were truly quiet. Work is named by power only well above them: base + 15 % of what is left up to
the limit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

MARGIN_SHARE: Final = 0.15
# Before a level is learned: no card that was seen draws a third of its limit while it waits (H100 loaded: 0.19).
UNLEARNED_SHARE: Final = 0.35
LEAST_MINUTES: Final = 30
LOW_SHARE: Final = 0.1
# More than half of the limit is work, whatever utilisation says: such minutes teach nothing about waiting.
TEACHES_BELOW_SHARE: Final = 0.5


@dataclass(frozen=True, slots=True)
class Levels:
    """Watts: the card's enforced limit, and what it draws bare and loaded; None is not known (yet)."""

    limit_watts: float | None = None
    bare_watts: float | None = None
    loaded_watts: float | None = None

    def threshold_watts(self, *, is_held: bool) -> float | None:
        """Return from which power on the card works; None when neither a level nor the limit is known."""
        base = (self.loaded_watts or self.bare_watts) if is_held else self.bare_watts
        if base is None:
            return None if self.limit_watts is None else UNLEARNED_SHARE * self.limit_watts
        if self.limit_watts is None or self.limit_watts <= base:
            return base * (1 + MARGIN_SHARE)
        return base + MARGIN_SHARE * (self.limit_watts - base)

    def is_above(self, power_watts: float | None, *, is_held: bool) -> bool | None:
        """Say whether a power is that of work; None when that cannot be told."""
        threshold = self.threshold_watts(is_held=is_held)
        if power_watts is None or threshold is None:
            return None
        return power_watts >= threshold


def learn(watts: Sequence[float], *, limit_watts: float | None) -> float | None:
    """Return the level of a card's quiet minutes of one kind (bare or loaded); None from fewer than 30 of them.

    watts: averages of minutes without kernels, video and requests, in any order.
    """
    below = sorted(value for value in watts if limit_watts is None or value < TEACHES_BELOW_SHARE * limit_watts)
    if len(below) < LEAST_MINUTES:
        return None
    return below[int(LOW_SHARE * len(below))]
