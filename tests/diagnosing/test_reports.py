"""A diagnosis from asking to its report: who is told what, what is collected, how it ends."""

from datetime import timedelta

import pytest

from endpoints.models import Endpoint
from fleet.enums import JobState
from fleet.models import Job
from monitoring.diagnosing.enums import ReportState
from monitoring.diagnosing.following import diagnosis_cancel, panel_found
from monitoring.diagnosing.models import DiagnosisReport
from monitoring.diagnosing.places import places_of, plan_of
from monitoring.diagnosing.starting import diagnosis_start
from monitoring.diagnosis import words
from monitoring.diagnosis.report import Diagnosis
from monitoring.probing.services import probe_delete
from panel.accounts.models import AuditEntry
from panel.core.clock import now
from panel.core.errors import Conflict, InvalidInput, NotFound
from panel.core.events import event_write
from panel.core.models import Event
from tests.diagnosing.places import do, do_panel, follow, measured, probe_of, say, served, told
from tests.endpoints.world import Site
from tests.fleet.factories import OPERATOR

pytestmark = pytest.mark.django_db


def begin(probe, **others):
    return diagnosis_start(probe_id=probe.pk, actor=OPERATOR, **others)


def panel_plan(report):
    return plan_of(report, next(place for place in places_of(report) if place.key == "panel"))


def test_each_place_gets_a_plan_of_the_same_slots_at_moments_of_its_own():
    endpoint, host, other = served()
    report = begin(probe_of(endpoint))
    [(_, near)], [(_, away)] = told(host), told(other)
    here = panel_plan(report)
    assert here.begin_at == away.begin_at == near.begin_at == report.begin_at.timestamp()
    assert here.slots == away.slots == near.slots == list(range(40))
    assert len({here.offset_seconds, away.offset_seconds, near.offset_seconds}) == 3
    assert max(here.offset_seconds, away.offset_seconds, near.offset_seconds) < report.slot_seconds
    assert here.target.mark, "gateways count what is measured apart from load"
    assert not near.target.mark
    assert (here.target.connections, near.target.connections) == (("cold", "warm"), ("cold",))


def test_the_engine_is_asked_directly_over_loopback_and_callers_keys_stay_outside():
    endpoint, host, _other = served()
    begin(probe_of(endpoint))
    [(order, near)] = told(host)
    assert (near.target.host, near.target.is_tls) == ("127.0.0.1", False)
    assert near.target.path == "/v1/chat/completions", (
        "the gateway's own part of the path is nothing that an engine knows"
    )
    assert near.target.bearer == ""
    job = Job.objects.get(pk=order.id)
    assert "secret" not in str(job.arguments) + str(job.context), "what is secret is told and not kept with the job"


def test_a_clock_that_is_wrong_moves_the_beginning_of_its_own_machine_alone():
    endpoint, host, other = served()
    other.agent.__class__.objects.filter(server=other.server).update(clock_skew_seconds=75.0)
    report = begin(probe_of(endpoint))
    [(_, near)], [(_, away)] = told(host), told(other)
    assert away.begin_at - report.begin_at.timestamp() == pytest.approx(75.0)
    assert near.begin_at == pytest.approx(report.begin_at.timestamp())


def test_a_slow_host_gives_a_report_with_a_sentence_and_the_secrets_are_gone():
    endpoint, host, other = served()
    report = begin(probe_of(endpoint))
    do(host, 300.0)
    do(other, 320.0, tcp_ms=10.0)
    assert follow() == 0, "the panel's own prober is not done"
    assert do_panel(report, 310.0, panel_plan(report))
    assert follow() == 1
    report.refresh_from_db()
    assert (report.state, report.verdict) == (ReportState.DONE, "not_enough_data")
    found = Diagnosis.from_json(report.diagnosis)
    assert found.side == "host", "with paired rounds alone a slow host is as much as can be said"
    assert set(found.vantages) == {"panel", "edge-1"}
    assert words.why(found)
    assert (report.bearer, report.host_bearer) == ("", "")
    assert Event.objects.filter(kind="diagnosis.done", subject_id=endpoint.pk).exists()
    assert AuditEntry.objects.filter(action="diagnosis.start").exists()


def test_replicas_on_several_machines_take_turns():
    endpoint, host, other = served()
    second = Site("gpu-2", cards=2)
    from tests.endpoints.world import settle

    Endpoint.objects.filter(pk=endpoint.pk).update(desired_replicas=2, reconcile_at=now(), placement={"spread": True})
    settle(sites=[host, other, second])
    report = begin(probe_of(endpoint))
    hosts = [place for place in places_of(report) if place.role == "host"]
    slots = sorted(slot for place in hosts for slot in place.slots)
    assert slots == list(range(40)), "each slot has one of them"


def test_sweeps_need_consent_and_are_told_to_the_first_host_alone():
    endpoint, host, other = served()
    report = begin(probe_of(endpoint))
    assert told(host)[0][1].sweeps is None
    diagnosis_cancel(report_id=report.pk, actor=OPERATOR)
    begin(probe_of(endpoint, name="again"), has_sweeps=True)
    assert told(host)[0][1].sweeps.most_requests == 400
    assert told(other)[0][1].sweeps is None


def test_one_subject_has_one_diagnosis_under_way():
    endpoint, _host, _other = served()
    begin(probe_of(endpoint))
    with pytest.raises(Conflict, match="under way"):
        begin(probe_of(endpoint, name="another"))
    assert Job.objects.filter(ended_at=None).count() == 2, "the refused one asked nobody"


def test_calling_it_off_stops_the_places_and_the_panel_hears_that_nobody_wants_it():
    endpoint, host, other = served()
    report = begin(probe_of(endpoint))
    diagnosis_cancel(report_id=report.pk, actor=OPERATOR)
    assert set(Job.objects.values_list("state", flat=True)) == {JobState.CANCELLED}
    assert (told(host), told(other)) == ([], [])
    assert panel_found(report_id=report.pk, found=None, percent=50, at=now()) is False
    assert diagnosis_cancel(report_id=report.pk, actor=OPERATOR).state == ReportState.CANCELLED, "again changes nothing"
    with pytest.raises(NotFound):
        diagnosis_cancel(report_id=10**9, actor=OPERATOR)


def test_progress_is_that_of_the_slowest_place():
    endpoint, host, other = served()
    report = begin(probe_of(endpoint))
    panel_found(report_id=report.pk, found=None, percent=60, at=now())
    for site, percent in ((host, 30), (other, 45)):
        [(order, _)] = told(site)
        say(site, order, "claimed")
        say(site, order, "running", percent=percent, step="rounds")
    follow()
    report.refresh_from_db()
    assert (report.progress["percent"], report.progress["step"]) == (30, "rounds")


def test_without_the_engines_machine_it_fails_and_says_why():
    endpoint, host, other = served()
    report = begin(probe_of(endpoint))
    [(order, _)] = told(host)
    say(host, order, "claimed")
    say(host, order, "failed", reason="crashed", detail="no room")
    do(other, 100.0)
    do_panel(report, 100.0, panel_plan(report))
    follow()
    report.refresh_from_db()
    assert (report.state, report.failure, report.detail) == (ReportState.FAILED, "no_host", "crashed: no room")


def test_a_prober_that_does_not_run_holds_nothing_up_for_ever():
    endpoint, host, _other = served()
    report = begin(probe_of(endpoint, vantages=["panel"]))
    do(host, 100.0)
    assert follow(report.begin_at + timedelta(seconds=60)) == 0
    assert follow(report.begin_at + timedelta(seconds=120)) == 1
    report.refresh_from_db()
    assert (report.state, report.failure) == (ReportState.FAILED, "no_prober")


def test_when_time_is_up_what_is_there_is_judged_and_who_still_measures_is_stopped():
    endpoint, host, other = served()
    report = begin(probe_of(endpoint))
    do(host, 50.0)
    do_panel(report, 60.0, panel_plan(report))
    assert follow(report.ends_at + timedelta(seconds=1)) == 1
    report.refresh_from_db()
    assert (report.state, report.verdict) == (ReportState.DONE, "healthy")
    assert told(other) == []


def test_a_rollout_in_the_window_is_a_marker_of_the_report():
    endpoint, host, other = served()
    report = begin(probe_of(endpoint))
    facts = {"subject_kind": "endpoint", "subject_id": endpoint.pk, "subject_name": "chat"}
    event_write(kind="rollout.started", **facts)
    event_write(kind="rollout.succeeded", **facts)
    Event.objects.filter(kind__startswith="rollout", subject_id=endpoint.pk).update(
        at=report.begin_at + timedelta(seconds=30)
    )
    do(host, 300.0)
    do(other, 320.0)
    do_panel(report, 310.0, panel_plan(report))
    follow(report.begin_at + timedelta(seconds=500))
    report.refresh_from_db()
    assert [marker["cause"] for marker in report.evidence["markers"]][-1] == "deploy"


def test_a_bare_probe_needs_the_machine_of_its_engine_and_works_with_it():
    endpoint, host, _other = served()
    bare = probe_of(endpoint, subject_kind="", subject_id=None, vantages=["panel"])
    with pytest.raises(InvalidInput, match="which machine"):
        begin(bare)
    from monitoring.diagnosing.asked import Host

    report = begin(bare, hosts=[Host(server_id=host.server.pk, port=9000)])
    [(_, near)] = told(host)
    assert (near.target.port, near.target.bearer) == (9000, "fdk_secret"), "its own key is what there is"
    assert (report.subject_kind, report.subject_id) == ("probe", bare.pk)


def test_a_probe_that_is_measured_on_the_engines_machine_alone_has_no_place_outside():
    endpoint, host, _other = served()
    probe = probe_of(endpoint, vantages=[f"server:{host.server.pk}"])
    with pytest.raises(Conflict, match="No place outside"):
        begin(probe)


def test_a_report_outlives_its_probe():
    endpoint, host, other = served()
    probe = probe_of(endpoint)
    report = begin(probe)
    probe_delete(probe_id=probe.pk, actor=OPERATOR)
    do(host, 50.0)
    do(other, 60.0)
    do_panel(report, 60.0, panel_plan(report))
    follow()
    report.refresh_from_db()
    assert (report.verdict, report.probe_id) == ("healthy", None)


def test_what_agents_send_is_held_to_its_shape():
    endpoint, host, _other = served()
    begin(probe_of(endpoint))
    [(order, plan)] = told(host)
    say(host, order, "claimed")
    with pytest.raises(InvalidInput):
        say(host, order, "succeeded", result={"rounds": [{"slot": 1, "cold": {"outcome": "perfect"}}]})
    assert DiagnosisReport.objects.get().state == ReportState.RUNNING
    assert len(measured(plan, 1.0).rounds) == 40
