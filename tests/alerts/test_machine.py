"""One rule on one subject: for, clear time, and what no data does to both."""

from hypothesis import given
from hypothesis import strategies as st

from monitoring.alerts.conditions.reading import NO_DATA, QUIET, Reading
from monitoring.alerts.machine import RESTING, Holding, Phase, rule_step
from panel.core.enums import Severity

BREACH = Reading(is_breach=True)
BETWEEN = Reading()
STEP = 30.0


AT_ONCE = Holding()


def phases(readings, holding=AT_ONCE):
    state, found = RESTING, []
    for index, reading in enumerate(readings):
        state = rule_step(state, reading, now=index * STEP, holding=holding)
        found.append(str(state.phase))
    return found


def test_a_breach_is_pending_until_it_lasted():
    assert phases([BREACH] * 4, Holding(for_seconds=90)) == ["pending", "pending", "pending", "firing"]


def test_one_good_look_ends_what_is_pending():
    assert phases([BREACH, QUIET, BREACH, BREACH], Holding(for_seconds=60)) == [
        "pending",
        "inactive",
        "pending",
        "pending",
    ]


def test_between_the_limits_nothing_ends_and_nothing_begins():
    assert phases([BETWEEN, BREACH, BETWEEN, BETWEEN, QUIET]) == ["inactive", "firing", "firing", "firing", "inactive"]


def test_the_end_must_last_too():
    holding = Holding(clear_seconds=60)
    assert phases([BREACH, QUIET, QUIET, BETWEEN, QUIET, QUIET, QUIET], holding) == ["firing"] * 6 + ["inactive"]


def test_the_time_without_data_counts_neither_towards_firing_nor_towards_the_end():
    assert phases([BREACH, NO_DATA, NO_DATA, NO_DATA, BREACH, BREACH, BREACH], Holding(for_seconds=90))[-2:] == [
        "pending", "firing",
    ]  # fmt: skip
    holding = Holding(clear_seconds=60)
    assert phases([BREACH, QUIET, NO_DATA, NO_DATA, QUIET], holding)[-1] == "firing"


def test_a_rule_may_take_no_data_for_a_breach_but_never_for_the_end():
    holding = Holding(for_seconds=30, is_absence_breach=True)
    assert phases([NO_DATA, NO_DATA, NO_DATA, QUIET], holding) == ["pending", "firing", "firing", "inactive"]


def test_the_severity_is_the_newest_that_the_condition_decided():
    state = rule_step(RESTING, Reading(is_breach=True, severity=Severity.WARNING), now=0)
    state = rule_step(state, Reading(is_breach=True, severity=Severity.CRITICAL), now=30)
    assert state.severity == Severity.CRITICAL
    assert rule_step(state, BETWEEN, now=60).severity == Severity.CRITICAL


@given(
    st.lists(st.sampled_from([BREACH, QUIET, BETWEEN, NO_DATA]), max_size=60),
    st.sampled_from([0.0, 60.0, 90.0]),
    st.sampled_from([0.0, 60.0]),
)
def test_no_data_never_ends_anything(readings, for_seconds, clear_seconds):
    state = RESTING
    holding = Holding(for_seconds=for_seconds, clear_seconds=clear_seconds)
    for index, reading in enumerate(readings):
        before = state.phase
        state = rule_step(state, reading, now=index * STEP, holding=holding)
        if not reading.has_data:
            assert state.phase == before
        if before == Phase.FIRING and state.phase != Phase.FIRING:
            assert reading.is_clear
