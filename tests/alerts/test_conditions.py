"""Conditions: when a rule would begin and end, by its counts, at its edges, and without data."""

import pytest

from monitoring.alerts.conditions import counting
from monitoring.alerts.conditions.binomial import least_over
from monitoring.alerts.conditions.counting import COUNT_RULES, at_interval, count_reading
from monitoring.alerts.conditions.quorum import Sight, down_reading
from monitoring.alerts.conditions.thresholds import EMPTY, Operator, Threshold, threshold_reading
from tests.alerts.scenarios import window_of

BREACH, CLEAR, BETWEEN, NONE = "breach", "clear", "between", "no data"


def word(reading):
    if not reading.has_data:
        return NONE
    return BREACH if reading.is_breach else CLEAR if reading.is_clear else BETWEEN


# rule, series (30 s steps), what it says at the last step
COUNTS = [
    ("p99_fast", "ok*60", CLEAR),
    # five of sixty over three slots of five minutes, one of them in the last five minutes
    ("p99_fast", "ok*30 over*2 ok*10 over*2 ok*15 over", BREACH),
    ("p99_fast", "ok*30 over*2 ok*10 over*2 ok*16", BETWEEN),  # four
    ("p99_fast", "ok*50 over*5 ok*5", BETWEEN),  # five, in one burst
    ("p99_fast", "ok*20 over*2 ok*10 over*2 ok*10 over ok*15", BETWEEN),  # none in the last five minutes
    ("p99_fast", "ok*50 over*8 ok*2", BREACH),  # eight of the last ten
    ("p99_fast", "over*8", BREACH),  # also when there is nothing before
    ("p99_fast", "over*7", NONE),
    ("p99_fast", "ok*29 over*4", BETWEEN),
    ("p99_fast", "over*10 ok*40", CLEAR),  # none over in twenty minutes
    ("p99_fast", "over*10 ok*39", BETWEEN),
    ("p99_fast", "over*10 _*40", NONE),  # silence is no recovery
    ("p99_fast", "over*10 _*30 ok*10", NONE),  # ten probes do not make twenty quiet minutes
    ("p99_slow", "ok*719 over", CLEAR),
    ("p99_slow", ("ok*39 over " * 18).strip(), BREACH),
    ("p99_slow", ("ok*41 over " * 17).strip(), BETWEEN),
    ("p99_slow", "ok*640 over*18 ok*62", BETWEEN),  # in two half-hours
    ("p99_slow", ("ok*39 over " * 18).strip() + " ok*240", CLEAR),
    ("p99_slow", ("ok*29 over " * 10).strip(), NONE),
    ("p95", ("ok*9 over " * 24).strip(), BETWEEN),
    ("p95", ("ok*8 over " * 28).strip(), BREACH),
    ("p95", "ok*180 " + ("ok*3 over " * 14).strip(), BREACH),
    ("p95", "ok*230 over*10", BETWEEN),
    ("error_rate", "ok*30 over*2 ok*10 over*2 ok*15 over", BREACH),
    ("error_rate", "ok*50 over*9", BETWEEN),  # a run alone is not the rate
]  # fmt: skip


@pytest.mark.parametrize(("rule", "series", "expected"), COUNTS)
def test_a_count_rule_says_what_its_counts_say(rule, series, expected):
    window, now = window_of(series)
    assert word(count_reading(COUNT_RULES[rule], window, now=now)) == expected


@pytest.mark.parametrize(("n", "alpha", "k"), [
    (30, 0.01, 3), (30, 0.001, 4), (60, 0.01, 4), (60, 0.001, 5), (120, 0.01, 5), (120, 0.001, 7), (240, 0.001, 9),
    (360, 0.001, 12), (720, 0.01, 15), (720, 0.001, 18), (1440, 0.001, 28),
])  # fmt: skip
def test_the_counts_are_those_of_the_binomial_table(n, alpha, k):
    assert least_over(n, share=0.01, alpha=alpha) == k


def test_probes_every_five_minutes_are_judged_over_two_and_a_half_hours():
    fitted = at_interval(counting.P99_FAST, 300.0)
    assert fitted.fires[0].seconds == 2.5 * 3600
    assert fitted.fires[0].least == 4  # of thirty
    window, now = window_of("ok*10 over*2 ok*7 over ok*9 over", interval=300.0)
    assert word(count_reading(counting.P99_FAST, window, now=now)) == BREACH


def test_probes_every_half_hour_are_too_rare_for_a_count_rule():
    assert not counting.is_fit(1800.0)
    assert counting.is_fit(300.0)


NOW = 1_700_000_000.0


def sight(failures=0, successes=0, age=10.0):
    return Sight(failures, successes, NOW - age)


@pytest.mark.parametrize(("sights", "expected"), [
    ([sight(failures=3), sight(failures=3)], BREACH),
    ([sight(failures=3), sight(successes=9)], BETWEEN),  # one place alone never decides where there are two
    ([sight(failures=50), sight(failures=2)], BETWEEN),
    ([sight(failures=4)], BETWEEN),
    ([sight(failures=5)], BREACH),  # the only place there is must insist
    ([sight(failures=3), sight(failures=9, age=900)], BETWEEN),  # a silent place is no witness
    ([sight(failures=9, age=900)], NONE),
    ([], NONE),
    ([sight(successes=2), sight(successes=2)], CLEAR),
    ([sight(successes=2), sight(successes=1)], BETWEEN),
    ([sight(successes=2)], CLEAR),
])  # fmt: skip
def test_places_must_agree_that_it_is_down(sights, expected):
    assert word(down_reading(sights, now=NOW, silent_after=300)) == expected


def looked(rule, values, *, every=30.0):
    """Return what a threshold rule says after each look; None: the series has no value."""
    memory, found = EMPTY, []
    for index, value in enumerate(values):
        now = NOW + every * index
        reading, memory = threshold_reading(rule, value, at=now if value is not None else None, now=now, memory=memory)
        found.append(word(reading))
    return found


def test_a_threshold_above_has_a_level_of_its_own_for_the_end():
    rule = Threshold(Operator.ABOVE, limit=90, clear=85)
    assert looked(rule, [80, 91, 88, 85, None]) == [CLEAR, BREACH, BETWEEN, CLEAR, NONE]


def test_a_threshold_below_mirrors_it():
    rule = Threshold(Operator.BELOW, limit=5, clear=8)
    assert looked(rule, [10, 4, 6, 8]) == [CLEAR, BREACH, BETWEEN, CLEAR]


def test_a_threshold_waits_for_its_samples():
    rule = Threshold(Operator.ABOVE, limit=90, samples=3)
    assert looked(rule, [95, 95, 95, 80, 95]) == [BETWEEN, BETWEEN, BREACH, CLEAR, BETWEEN]


def test_absence_is_what_an_absent_rule_watches():
    assert looked(Threshold(Operator.ABSENT), [1, None, 1]) == [CLEAR, BREACH, CLEAR]


def test_an_old_value_is_no_value():
    rule = Threshold(Operator.ABOVE, limit=90, stale_seconds=60)
    reading, _ = threshold_reading(rule, 99.0, at=NOW - 61, now=NOW)
    assert word(reading) == NONE


def test_a_change_is_over_when_the_value_stood_still_for_the_window():
    rule = Threshold(Operator.CHANGED, window_seconds=60)
    assert looked(rule, [7, 7, 8, 8, 8, 8]) == [CLEAR, CLEAR, BREACH, BREACH, CLEAR, CLEAR]
    # Without data in between the change is still seen.
    assert looked(rule, [7, None, 8]) == [CLEAR, NONE, BREACH]


def test_a_share_counts_time_and_a_gap_is_neither_over_nor_quiet():
    rule = Threshold(Operator.SHARE, limit=0, share=0.8, clear_share=0.2, window_seconds=600)
    waiting = looked(rule, [0] * 5 + [3] * 17)
    assert waiting[-2:] == [BETWEEN, BREACH]  # sixteen of the twenty looks that make ten minutes
    assert looked(rule, [3] * 21 + [None] * 40 + [0])[-1] == CLEAR  # nothing over is left in the window
    assert looked(rule, [3] * 21 + [None] * 10 + [0])[-1] == BETWEEN
    assert looked(rule, [3] * 21 + [0] * 16)[-1] == CLEAR


def test_looks_that_alternate_make_half_of_the_time():
    rule = Threshold(Operator.SHARE, limit=0, share=0.5, window_seconds=600)
    assert looked(rule, [0, 3] * 20)[-1] == BREACH
    assert looked(Threshold(Operator.SHARE, limit=0, share=0.6, window_seconds=600), [0, 3] * 20)[-1] == CLEAR
