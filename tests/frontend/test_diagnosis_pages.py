"""The pages of diagnoses: what a report says first, what it rests on, how one is begun, and who may."""

import re

import pytest

from monitoring.diagnosing.enums import ReportState
from monitoring.diagnosing.models import DiagnosisReport
from monitoring.diagnosis.report import Diagnosis
from tests.diagnosing.places import probe_of, served
from tests.frontend.diagnosing import diagnosing_world
from tests.frontend.html import Page

pytestmark = pytest.mark.django_db


def text_of(answer):
    """Return what is to be read, with single spaces."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


@pytest.fixture
def world(people):
    return diagnosing_world()


def test_no_diagnosis_yet_teaches_what_one_is_and_what_it_needs(ada, browser):
    said = text_of(ada.get("/diagnoses/"))
    assert "Why is it slow?" in said
    assert "A probe of the endpoint" in said
    assert "needs the role “Operator”" in text_of(browser("viewer").get("/diagnoses/"))


def test_a_report_says_the_sentence_first_then_one_step_then_the_evidence(ada, world):
    answer = ada.get(f"/diagnoses/{world['slow'].pk}/")
    assert Page(answer.content.decode()).faults() == []
    said = text_of(answer)
    order = ["Next step:", "What would change this verdict", "Where the time goes", "Round by round", "By length of the prompt",
             "By requests at once", "The engine and its machine", "What was asked"]  # fmt: skip
    places = [said.index(each) for each in order]
    assert places == sorted(places)
    assert "From 2 at once on, more of them bring no more throughput" in said
    assert "The sweeps took 156 requests, 161,000 tokens and 88 s" in said
    assert "gpu-1, the engine’s machine" in said
    assert "P95 of first token within 200 ms" in said
    assert "prompt" in said[: said.index("Next step:")].lower(), "the verdict of this world is its long prompt"


def test_what_was_not_measured_is_not_zero(ada, world):
    said = ada.get(f"/diagnoses/{world['healthy'].pk}/").content.decode()
    machine = said[said.index("The engine and its machine") :]
    cards = machine[machine.index("Cards at work") :][:200]
    assert "no reading" in cards, "this machine’s cards told nothing"
    assert "<dd>0%" not in machine, "to the first token no tokens are produced: that is no share"


def test_a_diagnosis_that_failed_says_why_and_what_to_do(ada, world):
    said = text_of(ada.get(f"/diagnoses/{world['failed'].pk}/"))
    assert "Failed: The engine’s machine did not measure" in said
    assert "crashed: no room" in said
    assert "is its agent heard" in said


def test_progress_moves_and_the_page_comes_anew_when_it_is_over(ada, world):
    running = world["running"]
    assert "Waiting for the places to begin" in text_of(ada.get(f"/diagnoses/{running.pk}/"))
    assert ada.get(f"/diagnoses/{running.pk}/?part=progress").status_code == 200
    answer = ada.post(f"/diagnoses/{running.pk}/stop/", follow=True)
    assert "Cancelled" in text_of(answer)
    assert ada.get(f"/diagnoses/{running.pk}/?part=progress").headers["HX-Refresh"] == "true"


def test_the_list_says_verdict_sentence_and_step_and_filters(ada, world):
    said = text_of(ada.get("/diagnoses/"))
    verdict = Diagnosis.from_json(world["slow"].diagnosis).verdict
    assert said.count("chat") >= 4
    only = text_of(ada.get(f"/diagnoses/?verdict={verdict}"))
    table = only[only.rindex("Sentence and next step") :]
    assert "Failed" not in table
    assert "Nothing matches" in text_of(ada.get("/diagnoses/?verdict=dns"))


def test_the_endpoints_page_leads_to_a_form_with_consent_that_is_not_given(ada, world):
    world["running"].__class__.objects.filter(pk=world["running"].pk).update(state="cancelled")
    endpoint = world["endpoint"]
    assert f"/diagnoses/new/?endpoint={endpoint.pk}" in ada.get(f"/endpoints/{endpoint.pk}/").content.decode()
    form = ada.get(f"/diagnoses/new/?endpoint={endpoint.pk}").content.decode()
    box = form[form.index('name="has_sweeps"') - 100 :][:200]
    assert "checked" not in box
    assert "at most 400 requests" in form


def test_a_diagnosis_begun_here_keeps_what_was_agreed_to(ada):
    endpoint, _host, _other = served()
    probe = probe_of(endpoint)
    answer = ada.post(
        f"/diagnoses/new/?endpoint={endpoint.pk}", {"probe": probe.pk, "has_sweeps": "on", "threshold_ms": "150"}
    )
    report = DiagnosisReport.objects.get()
    assert answer.headers["Location"] == f"/diagnoses/{report.pk}/"
    assert (report.state, report.threshold_ms, report.sweeps["most_requests"]) == (ReportState.RUNNING, 150.0, 400)
    assert "is under way" in text_of(ada.get(f"/diagnoses/new/?endpoint={endpoint.pk}"))


def test_without_a_probe_the_way_to_one_is_shown(ada):
    endpoint, _host, _other = served()
    answer = ada.get(f"/diagnoses/new/?endpoint={endpoint.pk}")
    assert "No probe is about this endpoint yet" in text_of(answer)
    assert f"kind=chat&amp;endpoint={endpoint.pk}" in answer.content.decode()


def test_a_bare_probe_without_its_machine_is_refused_beside_the_field(ada):
    endpoint, _host, _other = served()
    probe = probe_of(endpoint, subject_kind="", subject_id=None)
    answer = ada.post("/diagnoses/new/", {"probe": probe.pk})
    assert answer.status_code == 400
    assert "name its server and its port there" in text_of(answer)


def test_a_viewer_reads_and_begins_nothing(browser, world):
    viewer = browser("viewer")
    page = viewer.get(f"/diagnoses/{world['slow'].pk}/")
    assert page.status_code == 200
    assert "/diagnoses/new/" not in page.content.decode()
    assert viewer.get("/diagnoses/new/").status_code == 403
    assert viewer.post(f"/diagnoses/{world['running'].pk}/stop/").status_code == 403
