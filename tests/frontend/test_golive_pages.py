"""The pages of go-live tests: what one would take, how it goes, what it proved, and the gate of a rollout."""

import json

import pytest

from monitoring.golive_runs.models import GoLiveRun
from monitoring.golive_runs.starting import golive_cancel
from panel.core.clock import now
from tests.endpoints.world import reconcile
from tests.fleet.factories import OPERATOR
from tests.frontend.golive import World
from tests.frontend.html import Page
from tests.frontend.test_probing_pages import text_of

pytestmark = pytest.mark.django_db

GIVEN = {
    "places": ["hosts"], "peak_per_second": "20", "measure": "total", "p95_ms": "100", "p99_ms": "", "error_percent": "1",
    "seconds": "10", "length_median": "16", "length_long": "32", "length_longest": "64", "max_tokens": "8",
    "most_concurrency": "8", "most_seconds": "3600", "most_requests": "20000", "most_tokens": "10000000", "currency": "CNY",
}  # fmt: skip


@pytest.fixture
def world(people):
    return World()


def test_no_test_yet_says_what_one_is_for(ada):
    said = text_of(ada.get("/golive/"))
    assert "No go-live test yet" in said
    assert "wait for nobody" in said


def test_the_list_has_every_verdict_in_words(ada, world):
    world.passed, world.failed, world.invalid, world.running  # noqa: B018  # made by asking
    answer = ada.get("/golive/")
    assert Page(answer.content.decode()).faults() == []
    said = text_of(answer)
    for word in ("passed", "failed", "invalid test", "gate", "P95 ≤ 100 ms at 20/s"):
        assert word in said


def test_a_passed_test_says_what_is_proven_with_its_numbers(ada, world):
    answer = ada.get(f"/golive/{world.passed.pk}/")
    assert Page(answer.content.decode()).faults() == []
    said = text_of(answer)
    assert "It keeps its promise, and that is proven." in said
    assert "P95 is within 100 ms" in said
    assert "the error rate is" in said
    assert "100.0 % of the planned rate" in said
    assert "2.0 ms (under 20 ms is needed)" in said
    assert "From 2 at once on" in said
    assert world.passed.environment_hash in said
    shown = answer.content.decode()
    assert 'class="curve curve-p50"' in shown
    assert "Print" in said


def test_a_failed_test_names_what_was_not_kept_and_what_failed_as_text(ada, world):
    shown = ada.get(f"/golive/{world.failed.pk}/").content.decode()
    assert "It does not keep its promise." in shown
    assert "503 &lt;b&gt;busy&lt;/b&gt;" in shown
    assert "<b>busy</b>" not in shown
    invalid = text_of(ada.get(f"/golive/{world.invalid.pk}/"))
    assert "says nothing about the endpoint" in invalid
    assert "busy itself" in invalid


def test_a_test_under_way_shows_its_places_and_can_be_called_off(browser, world):
    run = world.running
    answer = browser("operator").get(f"/golive/{run.pk}/")
    assert Page(answer.content.decode()).faults() == []
    assert "Waiting to begin" in text_of(answer)
    part = browser("viewer").get(f"/golive/{run.pk}/?part=status")
    assert "rack-1" in text_of(part)
    assert "Call it off" not in text_of(browser("viewer").get(f"/golive/{run.pk}/"))
    assert browser("viewer").post(f"/golive/{run.pk}/cancel/").status_code == 403
    browser("operator").post(f"/golive/{run.pk}/cancel/")
    run.refresh_from_db()
    assert run.state == "cancelled"
    assert browser("viewer").get(f"/golive/{run.pk}/?part=status")["HX-Refresh"] == "true"


def test_a_report_as_json_has_every_request_and_no_secret(ada, world):
    answer = ada.get(f"/golive/{world.passed.pk}/json/")
    told = json.loads(answer.content)
    assert told["outcome"] == "pass"
    [requests] = told["requests"].values()
    assert len(requests["requests"]) >= len(requests["plan"]["at_seconds"])
    assert world.endpoint.upstream_key not in answer.content.decode()


def test_what_a_test_would_take_is_said_before_anything_is_sent(ada, world):
    given = {**GIVEN, "endpoint": str(world.endpoint.pk)}
    part = ada.post("/golive/new/", {**given, "act": "estimate"}, headers={"HX-Request": "true"})
    assert "requests, up to" in text_of(part)
    assert "<html" not in part.content.decode()
    over = ada.post(
        "/golive/new/", {**given, "act": "estimate", "most_requests": "100"}, headers={"HX-Request": "true"}
    )
    assert "100 are allowed" in text_of(over)
    assert not GoLiveRun.objects.exists()


def test_a_test_begins_with_consent_only(browser, world):
    operator, given = browser("operator"), {**GIVEN, "endpoint": str(world.endpoint.pk)}
    assert Page(operator.get(f"/golive/new/?endpoint={world.endpoint.pk}").content.decode()).faults() == []
    refused = operator.post("/golive/new/", {**given, "act": "begin"})
    assert refused.status_code == 400
    assert "Agree to the load first." in text_of(refused)
    begun = operator.post("/golive/new/", {**given, "act": "begin", "consent": "on"})
    run = GoLiveRun.objects.latest("pk")
    assert begun["Location"] == f"/golive/{run.pk}/"
    assert (run.asked["peak_per_second"], run.asked["p99_ms"], run.asked["lengths"]) == (20, None, [16, 32, 64])
    assert browser("viewer").get("/golive/new/").status_code == 403


def test_a_rollout_says_how_its_gate_stands(browser, world):
    address = f"/endpoints/{world.endpoint.pk}/runs/{world.rollout.pk}/"
    answer = browser("operator").get(address)
    assert Page(answer.content.decode()).faults() == []
    assert 'data-gate="running"' in answer.content.decode()
    assert f"/golive/{world.running.pk}/" in answer.content.decode()
    golive_cancel(run_id=world.running.pk, actor=OPERATOR)
    held = browser("operator").get(address).content.decode()
    assert 'data-gate="held"' in held
    assert "gate-again" in held
    assert "gate-again" not in browser("viewer").get(address).content.decode()
    browser("operator").post(f"{address}gate-again/")
    reconcile()
    world.rollout.refresh_from_db()
    assert world.rollout.golive_run_id != world.running.pk


def test_a_deploy_can_ask_for_the_gate(browser, world):
    operator, number = browser("operator"), world.endpoint.pk
    shown = operator.get(f"/endpoints/{number}/deploy/?step=review").content.decode()
    assert "Only after a go-live test has passed" in shown
    assert Page(shown).faults() == []
    query = "step=review"
    given = {
        "has_gate": "on", "gate_peak": "5", "gate_measure": "total", "gate_p95_ms": "200", "gate_p99_ms": "",
        "gate_seconds": "60", "note": "careful",
    }  # fmt: skip
    answer = operator.post(f"/endpoints/{number}/deploy/?{query}", given)
    assert answer.status_code == 302, text_of(answer)[-600:]
    rollout = world.endpoint.rollouts.latest("pk")
    assert (rollout.gate["peak_per_second"], rollout.gate["p95_ms"], rollout.gate["p99_ms"]) == (5, 200, None)
    assert rollout.started_at <= now()
