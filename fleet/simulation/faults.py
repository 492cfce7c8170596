"""A card that falls off the bus and comes back: XID 79, lost, gone from the list, reset, there again."""

from typing import Final

import numpy as np

from fleet.simulation.nvml import Card

XID_FALLEN_OFF: Final = 79
GONE_AFTER_SECONDS: Final = 20.0
BACK_AFTER_SECONDS: Final = 100.0
RECOVERY_RESET: Final = 1
FIRST_SHARE: Final = 0.35  # the first fall comes sooner: who looks at a demo looks for minutes


class FallingCard:
    """Decides when a card is well. every_seconds: the mean time between two falls."""

    def __init__(self, card: Card, rng: np.random.Generator, *, every_seconds: float, now: float) -> None:
        self.card = card
        self.rng = rng
        self.every_seconds = every_seconds
        self.falls_at = now + FIRST_SHARE * self._next()

    @property
    def has_fallen(self) -> bool:
        """Return whether the card is away."""
        return self.card.is_lost

    def step(self, now: float) -> bool:
        """Go on to this moment; return True when the card has just come back."""
        away = now - self.falls_at
        if away < 0:
            return False
        if away >= BACK_AFTER_SECONDS:
            self.card.recover()
            self.card.update({"recovery_action": 0})
            self.falls_at = now + self._next()
            return True
        if not self.card.is_lost:
            self.card.update({"recovery_action": RECOVERY_RESET})
            self.card.xid(XID_FALLEN_OFF)
            self.card.lose()
        elif away >= GONE_AFTER_SECONDS and not self.card.is_removed:
            self.card.remove()
        return False

    def _next(self) -> float:
        return self.every_seconds * float(self.rng.uniform(0.8, 1.2))
