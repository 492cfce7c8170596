"""What pages of endpoints say of codes and frames: every code has its words, and frames compare as scripts compare them."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from endpoints.costs import HourlyCost
from endpoints.enums import Phase, ReplicaHealth, ReplicaState
from endpoints.lifecycle import ROLLOUT_TRANSITIONS
from endpoints.models import Endpoint
from endpoints.rollout.progress import Step
from frontend.serving.costs import change_words, cost_text, minus
from frontend.serving.detail import known_of
from frontend.serving.words import REASONS, STEP_OWNERS, STEP_TITLES, phase_said, reason_said
from frontend.status import STATE_TONES
from panel.core.money import Money
from tests.charts.test_scripts import HERE

CASES = json.loads((Path(HERE) / "endpoint_cases.json").read_text())


@pytest.mark.parametrize("case", CASES)
def test_a_page_knows_its_state_by_the_same_text_as_the_script(case):
    assert known_of(case) == case["known"]


@pytest.mark.parametrize("phase", Phase)
def test_every_phase_has_a_sentence(phase):
    said = phase_said(Endpoint(phase=phase, phase_reason="no_free_gpu", desired_replicas=2), ready=1)
    assert said.sentence
    assert "%(" not in said.sentence


@pytest.mark.parametrize("state", [*Phase, *ReplicaState, *(h for h in ReplicaHealth if h), *ROLLOUT_TRANSITIONS])
def test_every_state_has_a_mark(state):
    assert str(state) in STATE_TONES


def test_every_step_has_its_words():
    assert set(STEP_TITLES) == set(STEP_OWNERS) == set(Step)


def test_a_reason_that_is_not_listed_stays_as_it_is():
    assert reason_said("brand_new").sentence == "brand_new"
    assert all(str(sentence) for sentence, _step in REASONS.values())


def cost(gpus=2, unknown=0, **known):
    return HourlyCost(gpus, {code: Money(Decimal(amount), code) for code, amount in known.items()}, unknown)


def test_currencies_stay_apart_and_what_is_not_known_is_said():
    assert cost_text(cost(gpus=0)) == "no GPU"
    assert cost_text(cost(CNY="9.8", USD="1.25")) == "¥9.80 + $1.25"
    assert cost_text(cost(gpus=3, unknown=1, CNY="9.8")) == "¥9.80 and 1 GPU whose price is not known"
    assert cost_text(cost(unknown=2)) == "2 GPUs whose price is not known"


def test_a_change_says_before_and_after():
    before, after = cost(CNY="20"), minus(cost(CNY="20"), cost(gpus=1, CNY="10"))
    assert change_words(before, after) == "Cost per hour of its GPUs: ¥20.00 now, ¥10.00 afterwards."
    assert change_words(before, before) == "Cost per hour of its GPUs: ¥20.00, as before."
