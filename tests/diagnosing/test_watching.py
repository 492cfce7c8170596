"""Diagnoses that begin by themselves: only beyond doubt, only paired rounds, rarely."""

from datetime import timedelta

import pytest

from fleet.agent.probes.result import ProbeResult
from monitoring.diagnosing.following import diagnosis_cancel
from monitoring.diagnosing.models import DiagnosisReport
from monitoring.diagnosing.watching import PAUSE, objectives_watch
from monitoring.probing.storing import results_store
from panel.core.clock import now
from tests.diagnosing.places import probe_of, served
from tests.fleet.factories import OPERATOR

pytestmark = pytest.mark.django_db


def seen(probe, *, slow, fast):
    """Store so many results over the threshold and under it."""
    at = now() - timedelta(minutes=20)
    results = [
        ProbeResult(
            target=probe.pk, kind="chat", vantage="panel", connection="cold", scheduled_ms=0,
            started_ms=round((at + timedelta(seconds=10 * number)).timestamp() * 1000), outcome="ok", phase_reached="done",
            ttft_ms=500.0 if number < slow else 50.0, e2e_ms=600.0, ttfb_ms=40.0, total_ms=600.0,
        )
        for number in range(slow + fast)
    ]  # fmt: skip
    results_store(server_id=0, results=results, known={probe.pk}, at=now())


@pytest.mark.parametrize(("slow", "fast", "begun"), [(40, 60, 1), (3, 60, 0), (9, 20, 0)])
def test_only_what_is_beyond_doubt_begins_one(slow, fast, begun):
    endpoint, _host, _other = served()
    seen(probe_of(endpoint), slow=slow, fast=fast)
    assert len(objectives_watch(at=now())) == begun


def test_it_measures_rounds_alone_and_says_why_it_began():
    endpoint, _host, _other = served()
    seen(probe_of(endpoint), slow=40, fast=20)
    [report_id] = objectives_watch(at=now())
    report = DiagnosisReport.objects.get(pk=report_id)
    assert (report.cause, report.sweeps, report.created_by_name) == ("objective", None, "diagnosis")


def test_one_endpoint_is_looked_into_at_most_every_six_hours():
    endpoint, _host, _other = served()
    probe = probe_of(endpoint)
    seen(probe, slow=40, fast=20)
    [report_id] = objectives_watch(at=now())
    DiagnosisReport.objects.filter(pk=report_id).update(state="done", ended_at=now())
    assert objectives_watch(at=now()) == []
    DiagnosisReport.objects.filter(pk=report_id).update(created_at=now() - PAUSE)
    from fleet.models import Job

    Job.objects.update(state="cancelled", ended_at=now())
    assert len(objectives_watch(at=now())) == 1


def test_one_that_a_person_called_off_does_not_count():
    endpoint, _host, _other = served()
    seen(probe_of(endpoint), slow=40, fast=20)
    [report_id] = objectives_watch(at=now())
    diagnosis_cancel(report_id=report_id, actor=OPERATOR)
    assert len(objectives_watch(at=now())) == 1


def test_a_probe_without_a_threshold_begins_nothing():
    endpoint, _host, _other = served()
    seen(probe_of(endpoint, threshold_ms=None), slow=40, fast=20)
    assert objectives_watch(at=now()) == []
