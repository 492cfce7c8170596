"""Quiet runs out of words of minutes."""

import itertools
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitoring.waste.runs import quiet_runs, read, written

START = datetime(2026, 11, 29, 12, tzinfo=UTC)


def runs_of(word):
    minutes = lambda at: (at - START) // timedelta(minutes=1)  # noqa: E731
    return [
        (run.use, minutes(run.started_at), minutes(run.ended_at), run.quiet_minutes, run.is_open)
        for run in quiet_runs(word, START)
    ]


@pytest.mark.parametrize(
    ("word", "runs"),
    [
        ("", []),
        ("kkk...", []),
        ("iii", [("idle", 0, 3, 3, True)]),
        ("kiiik", [("idle", 1, 4, 3, False)]),
        ("ii..ii", [("idle", 0, 6, 4, True)]),
        ("ii.....i", [("idle", 0, 8, 3, True)]),
        ("ii......i", [("idle", 0, 2, 2, False), ("idle", 8, 9, 1, True)]),
        ("iipp", [("idle", 0, 2, 2, False), ("parked", 2, 4, 2, True)]),
        ("pp..k", [("parked", 0, 2, 2, False)]),
        ("pp...", [("parked", 0, 2, 2, True)]),
        ("pp......", [("parked", 0, 2, 2, False)]),
    ],
)
def test_runs_bridge_short_silence_and_end_with_work(word, runs):
    assert runs_of(word) == runs


@given(st.text(alphabet="kmwrhpi.?x!", max_size=120))
def test_every_quiet_minute_is_in_exactly_one_run_and_no_working_one_in_any(word):
    minutes = read(word)
    assert written(minutes) == word
    runs = runs_of(word)
    assert sum(run[3] for run in runs) == sum(word.count(sign) for sign in "ip")
    for _, first, last, _, _ in runs:
        assert not set(word[first:last]) & set("kmwrh")
    assert all(one[2] <= other[1] for one, other in itertools.pairwise(runs))
    assert not any(run[4] for run in runs[:-1])
