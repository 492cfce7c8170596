"""When silences hold: windows over midnight and on both changes of the clock; what matchers match."""

from datetime import UTC, datetime, time

import pytest

from monitoring.alerts.silencing import Window, is_within, matches, window_read

NIGHT = Window(frozenset(range(7)), time(22), time(8))
EARLY = Window(frozenset({6}), time(2), time(3))  # Sundays, when clocks change


def at(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(("moment", "expected"), [
    ("2026-03-10T21:30", True),  # 22:30 in Paris
    ("2026-03-11T06:59", True),
    ("2026-03-11T07:00", False),  # 08:00: the end belongs to it no more
    ("2026-03-11T12:00", False),
])  # fmt: skip
def test_a_window_over_midnight_follows_its_own_clock(moment, expected):
    assert is_within(NIGHT, "Europe/Paris", at(moment)) is expected


def test_a_window_that_begins_on_a_day_lasts_into_the_next_one():
    friday = Window(frozenset({4}), time(22), time(8))
    assert is_within(friday, "Asia/Shanghai", at("2026-03-13T14:00"))  # Friday 22:00
    assert is_within(friday, "Asia/Shanghai", at("2026-03-13T23:59"))  # Saturday 07:59
    assert not is_within(friday, "Asia/Shanghai", at("2026-03-14T14:00"))  # Saturday 22:00


@pytest.mark.parametrize(("moment", "expected"), [
    ("2026-03-29T00:59", False),
    ("2026-03-29T01:00", True),  # 02:00 does not exist on that day: 03:00 by the new clock
    ("2026-03-29T01:59", True),
    ("2026-03-29T02:00", False),
])  # fmt: skip
def test_when_clocks_go_forward_a_window_in_the_hour_that_is_skipped_still_takes_place(moment, expected):
    assert is_within(EARLY, "Europe/Paris", at(moment)) is expected


@pytest.mark.parametrize(("moment", "expected"), [
    ("2026-10-24T23:59", False),
    ("2026-10-25T00:00", True),  # 02:00 for the first time
    ("2026-10-25T01:30", True),  # 02:30 for the second time
    ("2026-10-25T02:00", False),
])  # fmt: skip
def test_when_clocks_go_back_a_window_covers_both_hours_of_the_same_name(moment, expected):
    assert is_within(EARLY, "Europe/Paris", at(moment)) is expected


def test_the_night_of_a_change_is_silent_from_ten_to_eight_whatever_its_length():
    for moment in ("2026-03-28T21:00", "2026-03-29T05:59", "2026-10-24T20:00", "2026-10-25T06:59"):
        assert is_within(NIGHT, "Europe/Paris", at(moment)), moment
    for moment in ("2026-03-28T20:59", "2026-03-29T06:00", "2026-10-24T19:59", "2026-10-25T07:00"):
        assert not is_within(NIGHT, "Europe/Paris", at(moment)), moment


def test_without_a_window_a_silence_always_holds():
    assert window_read({}) is None
    assert is_within(None, "UTC", at("2026-03-10T00:00"))


@pytest.mark.parametrize(
    "given", [{"from": "22:00"}, {"from": "25:00", "to": "08:00"}, {"days": [7], "from": "1:00", "to": "2:00"}]
)
def test_what_is_no_window_is_refused(given):
    with pytest.raises((ValueError, KeyError)):
        window_read(given)


def test_all_matchers_must_hold_and_none_matches_nothing():
    facts = {"family": "latency", "rule": ["p99_fast", "p99_slow"], "team": "a"}
    assert matches({"family": "latency", "rule": "p99_slow"}, facts)
    assert not matches({"family": "latency", "team": "b"}, facts)
    assert not matches({"unknown": "x"}, facts)
    assert not matches({}, facts)
