"""Whether the targets fail, or the place that looks at them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.agent.probes.result import ProbeResult
from fleet.agent.probes.vantage import WINDOW_SECONDS, Seen, Watch, judge

CONTROL = 999


def seen(outcomes, *, control=None, at=100.0, is_slow=False):
    found = [Seen(at, number, outcome, is_control=False, is_slow=False) for number, outcome in enumerate(outcomes)]
    if control:
        found.append(Seen(at, CONTROL, control, is_control=True, is_slow=is_slow))
    return found


@pytest.mark.parametrize(
    ("outcomes", "control", "state"),
    [
        (["timeout"] * 10, "timeout", "bad"),
        (["timeout"] * 8 + ["ok"] * 2, "connect", "bad"),
        (["timeout"] * 7 + ["ok"] * 3, "connect", "slow"),
        (["timeout"] * 10, "ok", "good"),
        (["ok"] * 10, "ok", "good"),
        (["http"] * 10, "dns", "slow"),
        (["timeout"] * 10, None, "unknown"),
        ([], "timeout", "bad"),
        (["dns", "connect", "tls", "aborted", "timeout"], "dns", "bad"),
    ],
)
def test_a_vantage_is_bad_when_its_control_and_nearly_all_targets_fail(outcomes, control, state):
    assert judge(seen(outcomes, control=control), 100.0).state == state


def test_a_slow_control_says_that_latencies_from_here_say_nothing():
    assert judge(seen(["ok"] * 3, control="ok", is_slow=True), 100.0).state == "slow"


def test_of_each_target_the_newest_result_counts():
    older = seen(["timeout"] * 5, control="timeout", at=50.0)
    newer = seen(["ok"] * 5, control="ok", at=60.0)
    assert judge(older + newer, 100.0).state == "good"
    assert judge(newer + older, 100.0).state == "good"


def test_what_is_older_than_two_minutes_does_not_count():
    assert judge(seen(["timeout"] * 5, control="timeout", at=100.0), 101.0 + WINDOW_SECONDS).state == "unknown"


def test_one_control_of_two_that_answers_means_the_network_is_there():
    both = [*seen(["timeout"] * 5, control="timeout"), Seen(100.0, 1000, "ok", is_control=True, is_slow=False)]
    assert judge(both, 100.0).state == "good"


def test_what_was_skipped_says_nothing():
    assert judge(seen(["skipped"] * 5 + ["ok"], control="ok"), 100.0).targets == 1


@given(st.lists(st.sampled_from(["ok", "timeout", "http", "skipped", "dns"]), max_size=30))
def test_no_number_of_failing_targets_makes_a_vantage_bad_whose_control_answers(outcomes):
    assert judge(seen(outcomes, control="ok"), 100.0).state == "good"


def result(number, outcome, total_ms=None):
    return ProbeResult(
        target=number, kind="http", vantage="here", connection="cold", scheduled_ms=0, started_ms=0, outcome=outcome,
        phase_reached="tcp", detail="as it was", total_ms=total_ms,
    )  # fmt: skip


def test_an_outage_of_a_night_is_one_incident_and_one_recovery():
    watch, changes, recorded = Watch(), [], []
    for minute in range(60):
        is_down = 10 <= minute < 50
        for number in [*range(20), CONTROL]:
            one = result(number, "timeout" if is_down else "ok")
            change = watch.take(one, is_control=number == CONTROL, slow_ms=None, now=minute * 60.0 + number / 1000)
            recorded.append((minute, watch.marked(one)))
            changes += [(change, minute)] if change else []
    assert [change for change, _ in changes] == ["opened", "recovered"]
    assert 10 <= changes[0][1] <= 12
    assert changes[1][1] == 50
    down = [one for minute, one in recorded if 13 <= minute < 50]
    assert {one.outcome for one in down} == {"vantage_down"}
    assert {(one.reason, one.phase_reached, one.detail) for one in down} == {("timeout", "tcp", "as it was")}


def test_a_wrong_answer_stays_the_targets_own_while_the_vantage_is_bad():
    watch = Watch()
    for number in [*range(5), CONTROL]:
        watch.take(result(number, "connect"), is_control=number == CONTROL, slow_ms=None, now=1.0)
    assert watch.verdict.state == "bad"
    assert watch.marked(result(1, "http")).outcome == "http"
    assert watch.marked(result(1, "ok")).outcome == "ok"


def test_a_control_over_its_threshold_is_slow():
    watch = Watch()
    watch.take(result(CONTROL, "ok", total_ms=900.0), is_control=True, slow_ms=500.0, now=1.0)
    assert watch.verdict.state == "slow"


def test_what_a_watch_remembers_is_bounded():
    watch = Watch(most=50)
    for number in range(500):
        watch.take(result(number, "ok"), is_control=False, slow_ms=None, now=number * 0.01)
    assert len(watch._seen) <= 50 + 100
    watch.take(result(0, "ok"), is_control=False, slow_ms=None, now=1_000.0)
    assert len(watch._seen) == 1


def test_five_thousand_targets_are_not_judged_at_each_of_their_results(monkeypatch):
    judged = []
    monkeypatch.setattr("fleet.agent.probes.vantage.judge", lambda seen, now: judged.append(now) or judge(seen, now))
    watch = Watch()
    for number in range(5000):
        watch.take(result(number, "timeout"), is_control=False, slow_ms=None, now=number / 166)
    assert len(judged) <= 31
