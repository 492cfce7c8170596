"""Plans and judgements as JSON."""

import json

import pytest

from monitoring.golive.judge import judge
from monitoring.golive.report import judgement_as_json, plan_as_json, plan_from_json
from tests.monitoring.golive.test_judge import FINE, PLAN, run, slow


def test_a_plan_survives_being_stored():
    stored = json.loads(json.dumps(plan_as_json(PLAN), allow_nan=False))
    assert plan_from_json(stored) == PLAN
    assert judge(plan_from_json(stored), run(), FINE) == judge(PLAN, run(), FINE)


@pytest.mark.parametrize(
    "changed", [{"n": 0}, {"n": 100_000}, {"tokens": [1]}, {"at_seconds": [2.0, 1.0], "tokens": [1, 1], "n": 1}]
)
def test_a_plan_that_contradicts_itself_is_refused(changed):
    with pytest.raises(ValueError, match="plan"):
        plan_from_json(plan_as_json(PLAN) | changed)


def test_a_judgement_is_plain_json_with_failures_told_as_such():
    lost = judge(PLAN, run(changed={i: {"is_ok": False} for i in range(60)}), FINE)
    told = json.loads(json.dumps(judgement_as_json(lost), allow_nan=False))
    assert told["outcome"] == "fail"
    p99 = told["proofs"][1]["percentile"]
    assert (p99["value_ms"], p99["is_lost"], p99["n"]) == (None, True, 459)
    fine = judgement_as_json(judge(PLAN, run(changed=slow([3])), FINE))
    assert fine["proofs"][1]["suggested_n"] == 838
    assert fine["ttft"][0]["value_ms"] == 50.0
