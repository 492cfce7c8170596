"""Every kind of event and every action of the audit trail that the code writes has a sentence."""

import re
from pathlib import Path

import pytest

from fleet.enums import DriverState
from frontend.words import AUDIT_SENTENCES, EVENT_SENTENCES, audit_sentence, event_sentence, reason_words

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [
    path
    for folder in ("panel", "fleet", "monitoring", "endpoints")
    for path in (ROOT / folder).rglob("*.py")
    if "simulation" not in path.parts and "migrations" not in path.parts
]


# Its names of the same shape are series.
ALERTS = ROOT / "monitoring" / "alerts"


def written(pattern, beside=None):
    sources = [path for path in SOURCES if beside is None or not path.is_relative_to(beside)]
    return {name for path in sources for name in re.findall(pattern, path.read_text())}


def test_every_action_that_is_audited_has_a_sentence():
    actions = written(r'action="([a-z_]+\.[a-z_]+)"')
    assert len(actions) > 10
    assert actions <= set(AUDIT_SENTENCES)


def test_every_kind_of_event_has_a_sentence():
    kinds = written(r'kind="((?:server|gpu|agent|lease|account|drift|operation)\.[a-z_]+)"') | written(
        r'"((?:gpu|server)\.[a-z]+_[a-z_]+)"', beside=ALERTS
    )
    assert len(kinds) > 3
    assert {kind for kind in kinds if kind not in EVENT_SENTENCES} == set()


@pytest.mark.parametrize("kind", EVENT_SENTENCES)
def test_a_sentence_can_be_made_of_no_facts_at_all(kind):
    assert event_sentence(kind, {})


def test_what_this_page_does_not_know_yet_stands_as_it_is():
    assert event_sentence("planet.exploded", {}) == "planet.exploded"
    assert audit_sentence("planet.explode") == "planet.explode"


def test_reasons_are_words():
    assert reason_words("agent_silent") == "the agent is silent"
    assert reason_words("driver_version_mismatch") == DriverState.VERSION_MISMATCH.label
    assert reason_words("gpu_lost") == "a GPU is lost"
    assert reason_words("") == ""
    assert reason_words("rack moved") == "rack moved"
