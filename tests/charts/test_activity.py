"""What a card is doing, from its readings; the cases that activity.test.mjs shares."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from monitoring.activity import Activity, CardFacts, gpu_activity, is_fresh, is_hot, is_throttled, memory_share

CASES = json.loads((Path(__file__).parent / "activity_cases.json").read_text())
NOW = datetime(2026, 3, 10, 6, 0, tzinfo=UTC)


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_activity_follows_the_readings(case: dict[str, Any]) -> None:
    assert gpu_activity(CardFacts(**case["facts"]), case["values"]) == case["activity"]


def test_every_activity_has_a_case() -> None:
    assert {case["activity"] for case in CASES} == set(Activity.values)


def test_readings_are_fresh_for_three_intervals_and_at_least_a_quarter_minute() -> None:
    def fresh(age: float, interval: float) -> bool:
        return is_fresh(NOW - timedelta(seconds=age), now=NOW, interval_seconds=interval)

    assert fresh(15, 1)
    assert not fresh(15.5, 1)
    assert fresh(180, 60)
    assert not fresh(181, 60)
    assert not is_fresh(None, now=NOW, interval_seconds=5)


def test_memory_share_needs_both_figures() -> None:
    assert memory_share(11665408000, 85520809984) == pytest.approx(0.136, abs=0.001)
    assert memory_share(None, 1000) is None
    assert memory_share(10, None) is None
    assert memory_share(10, 0) is None


def test_heat_and_power_brakes_throttle_and_a_full_card_does_not() -> None:
    assert is_throttled(0x20)
    assert is_throttled(0x4 | 0x40)
    assert not is_throttled(0x4)
    assert not is_throttled(0x1 | 0x2)
    assert not is_throttled(None)


def test_a_card_is_hot_by_its_own_threshold() -> None:
    assert is_hot(85, 90)
    assert not is_hot(84, 90)
    assert not is_hot(85, 95)
    assert not is_hot(89, None)
    assert is_hot(90, None)
    assert not is_hot(None, 90)
