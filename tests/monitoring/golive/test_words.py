"""What a go-live test says, for each of its outcomes and in both languages."""

import math
import re
from dataclasses import replace

import pytest
from django.utils import translation

from monitoring.golive.enums import Flaw, Outcome, Stop
from monitoring.golive.judge import Conditions, judge
from monitoring.golive.words import FLAWS, OUTCOMES, STOPS, outcome_name, proof_sentence, reasons
from tests.monitoring.golive.test_judge import FINE, PLAN, run, slow

RUNS = {
    "passed": run(),
    "not proven": run(changed=slow([5])),
    "failed": run(changed=slow(range(30))),
    "failing": run(changed={i: {"is_ok": False} for i in range(40)}),
    "one error": run(changed={1: {"is_ok": False}}),
}


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("conditions", [FINE, Conditions(None, is_vantage_bad=True, has_changed=True)])
def test_reasons_are_whole_sentences(name, conditions):
    found = judge(PLAN, RUNS[name], conditions)
    with translation.override("en"):
        told = [outcome_name(found.outcome), *reasons(found)]
    assert not [text for text in told if "%(" in text or "None" in text or "inf" in text]
    assert len(told) >= 3
    with translation.override("zh-hans"):
        assert all(re.search(r"[\u4e00-\u9fff]", text) for text in reasons(found))


def test_the_number_for_the_next_run_is_told():
    with translation.override("en"):
        assert "838 requests" in reasons(judge(PLAN, RUNS["not proven"], FINE))[1]
        assert "2000 ms" in reasons(judge(PLAN, RUNS["failed"], FINE))[1]
        assert "has no end" in reasons(judge(PLAN, RUNS["failing"], FINE))[1]


def test_a_percentile_on_the_edge_is_told_without_a_number_that_would_not_help():
    proof = replace(judge(PLAN, RUNS["not proven"], FINE).proofs[1], suggested_n=None)
    with translation.override("en"):
        assert "too close" in proof_sentence(proof)
    assert not math.isinf(proof.percentile.value_ms)


def test_every_code_has_its_words():
    assert (set(OUTCOMES), set(FLAWS), set(STOPS)) == (set(Outcome), set(Flaw), set(Stop))
