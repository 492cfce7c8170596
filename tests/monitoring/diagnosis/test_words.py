"""Every code has its sentence, in both languages, and every sentence finds its numbers."""

import re

import pytest
from django.utils import translation

from monitoring.diagnosis.enums import ActionKind, Level, Limit, Scope, Side, Verdict
from monitoring.diagnosis.report import Action, Change, ChangeKind, Diagnosis
from monitoring.diagnosis.templates import ACTIONS, CHANGES, LIMITS, VERDICTS, WHY
from monitoring.diagnosis.tree import diagnose
from monitoring.diagnosis.words import (
    level_name,
    next_step,
    verdict_name,
    what_was_missing,
    what_would_change_it,
    who_is_affected,
    why,
)
from tests.monitoring.diagnosis.worlds import WORLDS, evidence

CHINESE = re.compile(r"[\u4e00-\u9fff]")
PARAMETERS = {"rounds": 3, "phase": "tls", "ms": 12.0, "replicas": 3, "now": 1, "to": 2}


def everything(found):
    yield why(found)
    yield verdict_name(found.verdict)
    yield next_step(found.action)
    yield from map(what_would_change_it, found.changes)
    yield from map(what_was_missing, found.limits)


@pytest.mark.parametrize("name", WORLDS)
def test_a_diagnosis_is_told_in_whole_sentences_and_without_gaps(name):
    found = diagnose(evidence(WORLDS[name][1], 2), resamples=20)
    again = Diagnosis.from_json(found.as_json())
    with translation.override("en"):
        english = list(everything(found))
        assert list(everything(again)) == english
    assert not [text for text in english if "%(" in text or "?" in text or "None" in text], english
    with translation.override("zh-hans"):
        assert all(CHINESE.search(text) for text in everything(found))


def test_every_code_has_its_words():
    assert set(VERDICTS) == set(Verdict)
    assert set(LIMITS) == set(Limit)
    assert set(CHANGES) == set(ChangeKind)
    assert {kind.value for kind in ActionKind} <= set(ACTIONS)
    assert {verdict.value for verdict in Verdict} <= set(WHY)
    assert all(level_name(level) for level in Level)
    for kind in ActionKind:
        assert "%" not in next_step(Action(kind, PARAMETERS))
    for kind in ChangeKind:
        assert what_would_change_it(Change(kind, 0.25, 0.5))


def test_shares_are_told_as_percent_and_the_unknown_as_such():
    with translation.override("en"):
        assert "below 40 % (now 72.5 %)" in what_would_change_it(Change(ChangeKind.SHARE_BELOW, 0.7251, 0.4))
        assert "now ? ms" in what_would_change_it(Change(ChangeKind.HOST_OVER, None, 500))


def test_places_are_compared_in_words():
    found = Diagnosis(
        Verdict.DISTANCE, Side.NETWORK, 1.0, Level.HIGH, Action(ActionKind.MOVE_REGION, {"ms": 1.0}), "beijing"
    )
    with translation.override("en"):
        assert who_is_affected(found) == ""
        told = {
            scope: who_is_affected(Diagnosis.from_json(found.as_json() | {"scope": scope.value})) for scope in Scope
        }
        assert "route" in told[Scope.ONE]
        assert "beijing" in told[Scope.SOME]
        assert "line" in told[Scope.ALL]
        on_host = Diagnosis.from_json(found.as_json() | {"scope": "all", "side": "host"})
        assert who_is_affected(on_host) == "Every place is affected."
