"""Self-health: every check with its limit and advice, worst first in words."""

import pytest

from panel.core.health import Check, CheckStatus
from tests.frontend.html import Page

GOOD = Check("queue", "Tasks waiting", CheckStatus.OK, "0", "below 100")
BAD = Check("beat", "Scheduler (beat)", CheckStatus.CRITICAL, "never seen", "at most 30 s", "Start beat.")
UNSURE = Check("valkey", "Valkey", CheckStatus.UNKNOWN, "unknown", "", "Valkey does not answer.")


@pytest.mark.parametrize(
    ("checks", "sentence"),
    [
        ([GOOD], "All checks pass"),
        ([GOOD, BAD], "Something is broken"),
        ([GOOD, UNSURE], "Some checks could not be run"),
    ],
)
def test_the_worst_check_decides_the_sentence(ada, monkeypatch, checks, sentence):
    monkeypatch.setattr("frontend.views.self_health.health_checks", lambda: checks)
    page = ada.get("/self-health/").content.decode()
    assert sentence in page
    assert Page(page).faults() == []


def test_a_check_shows_value_limit_and_advice_and_renews_itself(ada, monkeypatch):
    monkeypatch.setattr("frontend.views.self_health.health_checks", lambda: [BAD])
    part = ada.get("/self-health/", headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in part
    for text in ("never seen", "at most 30 s", "Start beat.", "#mark-critical"):
        assert text in part


def test_the_real_checks_of_a_panel_without_workers_say_what_is_missing(ada):
    page = ada.get("/self-health/").content.decode()
    assert page.count("<tr>") > 8
    assert "#mark-critical" in page
