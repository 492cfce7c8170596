"""PASS, FAIL, NOT PROVEN and INVALID, each for its reason."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitoring.diagnosis.enums import Measure
from monitoring.golive.enums import Flaw, Outcome
from monitoring.golive.judge import Conditions, Sent, environment_hash, joint, judge
from monitoring.golive.plan import Promise, plan_run

PROMISE = Promise({0.95: 500.0, 0.99: 1000.0}, ttft_ms=400.0)
PLAN = plan_run(PROMISE, peak_per_second=0.7, lengths=(200, 2000, 6000), seed=1)
FINE = Conditions(loop_lag_p99_ms=2.0)


def run(plan=PLAN, changed=None, *, total=200.0):
    """Every request answered in `total` ms; changed: position among the measured → fields that differ."""
    changed = changed or {}
    warm_up = len(plan.arrivals) - plan.n
    found = []
    for arrival in plan.arrivals:
        sent = Sent(arrival.number, arrival.at_seconds, is_ok=True, total_ms=total, ttft_ms=50.0, tpot_ms=5.0)
        found.append(replace(sent, **changed.get(arrival.number - warm_up, {})))
    return found


def slow(positions, total=2000.0):
    return {position: {"total_ms": total} for position in positions}


def test_a_good_service_passes():
    found = judge(PLAN, run(), FINE)
    assert (found.outcome, found.flaws) == (Outcome.PASS, ())
    assert [(proof.q, proof.n, proof.over, proof.allowed) for proof in found.proofs] == [
        (0.95, 459, 0, 12),
        (0.99, 459, 0, 0),
    ]
    assert found.errors.upper_bound == pytest.approx(0.0065, abs=1e-4)
    assert found.arrivals_share == 1.0
    assert found.goodput_per_second == pytest.approx(0.7, rel=0.15)
    assert found.ttft[0].value_ms == 50.0


def test_one_over_is_not_proven_and_the_next_number_is_told():
    found = judge(PLAN, run(changed=slow([5])), FINE)
    assert found.outcome is Outcome.NOT_PROVEN
    p95, p99 = found.proofs
    assert (p95.outcome, p99.outcome, p99.over, p99.suggested_n) == (Outcome.PASS, Outcome.NOT_PROVEN, 1, 838)
    assert p99.percentile.value_ms == 200.0


def test_a_percentile_over_its_threshold_fails():
    found = judge(PLAN, run(changed=slow(range(0, 50, 10))), FINE)
    assert found.outcome is Outcome.FAIL
    assert found.proofs[1].percentile.value_ms == 2000.0
    assert found.proofs[1].suggested_n is None


def test_the_lower_percentile_can_fail_alone():
    found = judge(PLAN, run(changed=slow(range(30), total=700.0)), FINE)
    assert [proof.outcome for proof in found.proofs] == [Outcome.FAIL, Outcome.PASS]
    assert found.outcome is Outcome.FAIL


def test_failures_are_over_every_threshold_and_errors():
    found = judge(PLAN, run(changed={3: {"is_ok": False, "total_ms": 10.0}}), FINE)
    assert found.proofs[1].over == 1
    assert (found.errors.count, found.errors.outcome, found.outcome) == (1, Outcome.NOT_PROVEN, Outcome.NOT_PROVEN)
    many = judge(PLAN, run(changed={i: {"is_ok": False} for i in range(6)}), FINE)
    assert many.errors.outcome is Outcome.FAIL


def test_what_was_never_sent_counts_as_failed():
    found = judge(PLAN, run()[:-2], FINE)
    assert (found.errors.count, found.outcome) == (2, Outcome.NOT_PROVEN)


def test_latency_counts_from_when_it_should_have_been_sent():
    """A sender that falls behind would else hide the wait."""
    late = {7: {"at_seconds": PLAN.measured[7].at_seconds + 0.9}}
    found = judge(PLAN, run(changed=late), FINE)
    assert found.proofs[1].over == 1  # 200 ms after 900 ms
    early = {7: {"at_seconds": PLAN.measured[7].at_seconds - 0.9}}
    assert judge(PLAN, run(changed=early), FINE).outcome is Outcome.PASS


@pytest.mark.parametrize(
    ("conditions", "flaw"),
    [
        (Conditions(20.0), Flaw.LOOP_LAG),
        (Conditions(None), Flaw.LOOP_LAG_UNKNOWN),
        (Conditions(2.0, is_vantage_bad=True), Flaw.VANTAGE_BAD),
        (Conditions(2.0, has_changed=True), Flaw.CHANGED),
    ],
)
@pytest.mark.parametrize("total", [200.0, 5000.0])
def test_a_test_that_went_wrong_is_neither_passed_nor_failed(conditions, flaw, total):
    found = judge(PLAN, run(total=total), conditions)
    assert (found.outcome, found.flaws) == (Outcome.INVALID, (flaw,))


def test_arrivals_that_fall_behind_make_it_invalid():
    stretched = [replace(sent, at_seconds=sent.at_seconds * 1.06) for sent in run()]
    assert judge(PLAN, stretched, FINE).flaws == (Flaw.ARRIVALS_TOO_SLOW,)
    assert judge(PLAN, [replace(sent, at_seconds=sent.at_seconds * 1.04) for sent in run()], FINE).flaws == ()
    tenth = [sent for sent in run() if sent.number % 10]
    found = judge(PLAN, tenth, FINE)
    assert Flaw.ARRIVALS_TOO_SLOW in found.flaws
    assert found.arrivals_share == pytest.approx(0.9, abs=0.01)
    assert judge(PLAN, [], FINE).outcome is Outcome.INVALID


def test_a_warm_up_that_did_not_take_place_makes_it_invalid():
    warm_up = len(PLAN.arrivals) - PLAN.n
    found = judge(PLAN, [sent for sent in run() if sent.number >= warm_up], FINE)
    assert found.flaws == (Flaw.WARM_UP_TOO_SHORT,)


def test_a_slow_warm_up_is_what_it_is_for():
    warm_up = len(PLAN.arrivals) - PLAN.n
    cold = [replace(sent, total_ms=60_000.0) if sent.number < warm_up else sent for sent in run()]
    assert judge(PLAN, cold, FINE).outcome is Outcome.PASS


def test_requests_that_are_not_of_the_plan_are_refused():
    with pytest.raises(ValueError, match="twice"):
        judge(PLAN, [*run(), run()[0]], FINE)
    with pytest.raises(ValueError, match="not of the plan"):
        judge(PLAN, [replace(run()[0], number=10_000)], FINE)


def test_goodput_counts_requests_that_keep_everything():
    whole = judge(PLAN, run(), FINE).goodput_per_second
    half = {i: {"ttft_ms": 450.0} for i in range(0, PLAN.n, 2)}
    assert judge(PLAN, run(changed=half), FINE).goodput_per_second == pytest.approx(whole / 2, rel=0.01)
    unknown = {i: {"ttft_ms": None} for i in range(PLAN.n)}
    assert judge(PLAN, run(changed=unknown), FINE).goodput_per_second == 0


def test_a_stream_is_judged_by_its_first_token():
    plan = replace(PLAN, promise=Promise({0.95: 100.0}, Measure.TTFT))
    assert judge(plan, run(plan, total=9000.0), FINE).outcome is Outcome.PASS
    silent = run(plan, {4: {"ttft_ms": None}})
    assert judge(plan, silent, FINE).proofs[0].over == 1


def test_what_fails_anywhere_fails():
    assert joint([Outcome.PASS, Outcome.INVALID, Outcome.FAIL]) is Outcome.FAIL
    assert joint([Outcome.PASS, Outcome.INVALID, Outcome.NOT_PROVEN]) is Outcome.INVALID
    assert joint([Outcome.PASS, Outcome.NOT_PROVEN]) is Outcome.NOT_PROVEN
    assert joint([Outcome.PASS, Outcome.PASS]) is Outcome.PASS
    assert joint([]) is Outcome.NOT_PROVEN


@settings(max_examples=40, deadline=None)
@given(st.sets(st.integers(0, 458), max_size=30), st.sets(st.integers(0, 458), max_size=10))
def test_one_request_that_gets_worse_never_improves_the_outcome(over, failed):
    order = [Outcome.PASS, Outcome.NOT_PROVEN, Outcome.FAIL]
    changed = slow(over) | {position: {"is_ok": False} for position in failed}
    before = judge(PLAN, run(changed=changed), FINE)
    worse = judge(PLAN, run(changed=changed | {458: {"is_ok": False}}), FINE)
    assert order.index(worse.outcome) >= order.index(before.outcome)
    assert before.outcome is not Outcome.PASS or not over | failed


def test_a_service_that_just_misses_its_promise_passes_at_most_one_time_in_a_hundred():
    draw = np.random.default_rng(11)
    passed = sum(
        judge(PLAN, run(changed=slow(np.flatnonzero(draw.random(PLAN.n) < 0.01).tolist())), FINE).outcome
        is Outcome.PASS
        for _ in range(150)
    )
    assert passed <= 6  # 1.5 are expected; 7 or more have a chance of 0.1 %


def test_the_fingerprint_of_what_was_tested_does_not_depend_on_the_order_of_its_facts():
    assert environment_hash({"engine": "vllm", "cards": ["4090"]}) == environment_hash(
        {"cards": ["4090"], "engine": "vllm"}
    )
    assert environment_hash({"engine": "vllm"}) != environment_hash({"engine": "sglang"})
