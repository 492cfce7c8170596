"""The simulated week: mails per endpoint-week and how soon a step is seen, against the table that the rules were chosen by.

Few endpoints here, so figures are held with three standard errors of room; the bench `alerts` replays many.
"""

from dataclasses import replace
from statistics import mean, median

import numpy as np
import pytest

from monitoring.alerts.conditions.counting import P95, P99_FAST, P99_SLOW
from monitoring.alerts.incident import LATENCY, Kind
from panel.core.enums import Severity
from tests.alerts.worlds import replay, world

P99 = ((P99_FAST, Severity.CRITICAL), (P99_SLOW, Severity.WARNING))
# Reminders are no part of the table.
POLICY = replace(LATENCY, reminders=())


# share over, mails per endpoint-week in the table, room for four endpoints, time in incident (least, most)
@pytest.mark.parametrize(("share", "mails", "room", "firing"), [
    (0.002, 0.0, 0.01, (0, 0.001)),
    (0.01, 1.0, 2.0, (0, 0.02)),
    (0.02, 11.7, 6.0, (0.35, 0.8)),
    (0.05, 1.8, 1.2, (0.97, 1)),
])  # fmt: skip
def test_a_week_sends_as_many_mails_as_the_table_says(share, mails, room, firing):
    weeks = [replay(world(share, seed=seed), P99, policy=POLICY) for seed in range(4)]
    found = mean(week.mails for week in weeks)
    assert found <= mails + room
    assert found >= mails - room
    assert firing[0] <= mean(week.firing for week in weeks) <= firing[1]


def test_a_healthy_world_of_half_a_percent_sends_next_to_nothing():
    assert sum(replay(world(0.005, seed=seed), P99, policy=POLICY).mails for seed in range(4)) <= 1


# share over after the step, minutes until it is told in the table
@pytest.mark.parametrize(("share", "minutes"), [(0.05, 68), (0.2, 12.5), (1.0, 4)])
def test_a_step_is_told_about_as_soon_as_the_table_says(share, minutes):
    found = []
    for seed in range(30):
        over = np.concatenate([world(0.002, seed=seed, probes=800), world(share, seed=seed + 1000, probes=1200)])
        told = replay(over, P99, policy=POLICY)
        first = told.first(Kind.OPENING, after=400)
        found.append(first if first is not None else 600)
    assert median(found) <= minutes * 1.5


def test_the_rule_for_p95_is_quiet_at_three_percent_and_sees_thirty():
    weeks = [replay(world(0.03, seed=seed), ((P95, Severity.WARNING),), policy=POLICY) for seed in range(2)]
    assert sum(week.mails for week in weeks) == 0
    found = []
    for seed in range(15):
        over = np.concatenate([world(0.01, seed=seed, probes=500), world(0.3, seed=seed + 1000, probes=400)])
        found.append(replay(over, ((P95, Severity.WARNING),), policy=POLICY).first(Kind.OPENING, after=250) or 200)
    assert median(found) <= 22.5 * 1.5
