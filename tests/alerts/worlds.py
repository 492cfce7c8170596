"""Synthetic endpoint-weeks, replayed through the real conditions and incidents with a clock of their own.

A world is one value per probe of 30 s: over the limit or not, independently or in bursts. What the design's table counts as
a mail is an opening, a resolved or a flapping one; raises and reminders are counted apart.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from monitoring.alerts.conditions.counting import CountRule, count_reading
from monitoring.alerts.conditions.windows import Window
from monitoring.alerts.incident import DEFAULT, Incident, Kind, Policy, Seen, incident_open, incident_step
from monitoring.alerts.machine import RESTING, Phase, RuleState, rule_step
from panel.core.enums import Severity

INTERVAL: Final = 30.0
WEEK: Final = 20_160
EPOCH: Final = 1_700_000_400.0  # at the beginning of a slot
MAILS: Final = (Kind.OPENING, Kind.RESOLVED, Kind.FLAPPING)


def world(share: float, *, seed: int, burst: int = 1, probes: int = WEEK) -> NDArray[np.bool_]:
    """Return whether each probe was over, `share` of them (0 to 1) in runs of `burst`."""
    random = np.random.default_rng(seed)
    if burst == 1:
        return random.random(probes) < share
    over = np.zeros(probes, dtype=bool)
    for start in np.flatnonzero(random.random(probes) < share / burst).tolist():
        over[start : start + burst] = True
    return over


@dataclass
class Told:
    """What was told, by kind and when (minutes since the beginning), and the part of the time in which an incident was open."""

    kinds: Counter[Kind] = field(default_factory=Counter)
    moments: list[tuple[float, Kind]] = field(default_factory=list)
    firing: float = 0.0

    @property
    def mails(self) -> int:
        """Return how many mails went out as the table counts them."""
        return sum(self.kinds[each] for each in MAILS)

    def first(self, kind: Kind, *, after: float = 0.0) -> float | None:
        """Return the minutes from `after` until the first of a kind."""
        return next((at - after for at, each in self.moments if each == kind and at >= after), None)


def replay(over: NDArray[np.bool_], rules: tuple[tuple[CountRule, Severity], ...], *, policy: Policy = DEFAULT) -> Told:
    """Run every probe of a world through the rules, which make one incident together."""
    at = EPOCH + INTERVAL * np.arange(1, len(over) + 1)
    hits = at[over]
    states: list[RuleState] = [RESTING] * len(rules)
    incident: Incident | None = None
    told, firing, first = Told(), 0, 0
    for index in range(len(over)):
        now = float(at[index])
        # As much history as the longest rule looks at; no more is ever read.
        first = max(index - 800, 0)
        low, high = hits.searchsorted((at[first], now), side="left")
        high += bool(over[index])
        window = Window(at[first : index + 1], hits[low:high], INTERVAL)
        if high == low and incident is None and all(state.phase == Phase.INACTIVE for state in states):
            continue
        states = [
            rule_step(state, count_reading(rule, window, now=now), now=now)
            for (rule, _severity), state in zip(rules, states, strict=True)
        ]
        fires = [severity for (_, severity), state in zip(rules, states, strict=True) if state.phase == Phase.FIRING]
        worst = max(fires, key=(Severity.INFO, Severity.WARNING, Severity.CRITICAL).index) if fires else None
        firing += worst is not None
        if incident is None and worst is None:
            continue
        incident = incident or incident_open(worst or Severity.WARNING, now=now)
        incident, kinds = incident_step(incident, Seen(worst), now=now, policy=policy)
        told.kinds.update(kinds)
        told.moments += [((now - EPOCH) / 60, kind) for kind in kinds]
        incident = None if incident.is_over else incident
    told.firing = firing / len(over)
    return told
