"""Times of samples under wrong, jumping and honest clocks."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitoring.ingest.clock import Sending, sample_clock

NOW = 1_800_000_000_000.0


def placed(*, skew=0.0, age=0.0, boot="run-1", header_boot="run-1", wall_error=0.0):
    """Return the panel's time of a sample taken `age` s ago, as seconds before now.

    skew: what the agent's clock is off by at sending; wall_error: what it was off by at the sample.
    """
    sent_ms, monotonic_ms = NOW + skew * 1000, 50_000_000
    newest = (NOW - age * 1000 + (wall_error or skew) * 1000, monotonic_ms - age * 1000)
    clock = sample_clock(
        received_ms=NOW, sending=Sending(int(sent_ms), monotonic_ms, header_boot), os_boot_id=boot, newest=newest
    )
    return (NOW - clock.at_ms(*newest)) / 1000, clock


@pytest.mark.parametrize("age", [0, 7, 3600])
@pytest.mark.parametrize("skew", [180, -180, 86_400, -3 * 365 * 86_400])
def test_a_wrong_clock_does_not_move_samples(skew, age):
    placed_age, clock = placed(skew=skew, age=age)
    assert placed_age == pytest.approx(age)
    assert clock.is_monotonic
    assert clock.skew_seconds == skew


def test_a_small_skew_is_left_alone_but_told():
    placed_age, clock = placed(skew=-2, age=10)
    assert placed_age == 12
    assert clock.skew_seconds == -2


def test_a_clock_that_was_set_right_after_the_sample_does_not_move_it():
    placed_age, _ = placed(skew=0, age=60, wall_error=-7200)
    assert placed_age == 60


def test_after_a_reboot_the_skew_alone_is_taken_off():
    placed_age, clock = placed(skew=180, age=60, boot="run-0")
    assert not clock.is_monotonic
    assert placed_age == pytest.approx(60)


def test_without_headers_the_future_becomes_now_and_the_past_stays():
    for ahead, age in ((500.0, 0.0), (-500.0, 500.0)):
        newest = (NOW + ahead * 1000, 1.0)
        clock = sample_clock(received_ms=NOW, sending=Sending(), os_boot_id="", newest=newest)
        assert (NOW - clock.at_ms(*newest)) / 1000 == age
        assert clock.skew_seconds is None


@given(st.floats(-1e9, 1e9), st.floats(0, 90_000), st.booleans(), st.lists(st.floats(0, 600), min_size=1, max_size=5))
def test_nothing_is_in_the_future_and_order_and_spacing_stay(skew, age, same_boot, steps):
    sent_ms, monotonic_ms = int(NOW + skew * 1000), 900_000_000
    offsets = [sum(steps[:i]) * 1000 for i in range(len(steps))]
    samples = [(sent_ms - age * 1000 + offset, monotonic_ms - age * 1000 + offset) for offset in offsets]
    clock = sample_clock(
        received_ms=NOW,
        sending=Sending(sent_ms, monotonic_ms, "a" if same_boot else "b"),
        os_boot_id="a",
        newest=samples[-1],
    )
    times = [clock.at_ms(*sample) for sample in samples]
    assert max(times) <= NOW + 1
    for (first, second), (earlier, later) in zip(pairwise(times), pairwise(offsets), strict=True):
        assert second - first == pytest.approx(later - earlier, abs=1)
