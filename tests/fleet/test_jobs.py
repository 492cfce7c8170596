"""One-shot commands for agents: asked, handed out, claimed once, reported on, cancelled, given up."""

import uuid
from datetime import timedelta

import msgspec
import pytest
from django.test import Client

from fleet.agent import wire
from fleet.agent.acceptance.found import CardFound, Found
from fleet.enums import JobKind, JobState
from fleet.lifecycle import JOB_TRANSITIONS
from fleet.models import Agent, Job
from fleet.services import jobs
from fleet.services.agents import agent_authenticate, assignments_for
from fleet.services.jobs import job_cancel, job_create, job_report, jobs_expire
from panel.core.clock import now
from panel.core.errors import Conflict, InvalidInput, NotFound
from panel.core.models import Event
from tests.fleet.factories import OPERATOR, joined

pytestmark = pytest.mark.django_db
RUN = str(uuid.uuid4())


@pytest.fixture
def machine():
    return joined()


def ask(agent, **arguments):
    return job_create(
        server_id=agent.server_id, kind=JobKind.ACCEPTANCE, actor=OPERATOR, arguments=arguments, context={}
    )


def told(token):
    return assignments_for(identity=agent_authenticate(token=token))


def say(token, job, state, run=RUN, **kwargs):
    report = wire.JobReport(run, state, **kwargs)
    return job_report(identity=agent_authenticate(token=token), job_id=job.pk, report=report).state


def found(**kwargs):
    return msgspec.to_builtins(Found(**{"at_ms": 1, "seconds": 2.0, "agent_version": "0.1.0"} | kwargs))


def state_of(job):
    job.refresh_from_db()
    return job.state


def test_the_table_of_states_is_total():
    assert set(JOB_TRANSITIONS) == set(JobState)


def test_a_job_is_told_to_its_agent_alone_with_a_new_version(machine, django_capture_on_commit_callbacks):
    agent, token = machine
    _other, others_token = joined("rack-2")
    before = told(token).version
    with django_capture_on_commit_callbacks() as callbacks:
        job = ask(agent, target="https://example.org/")
    assert len(callbacks) >= 2  # the agent's waiting request is released, the pages are told
    assignments = told(token)
    assert assignments.version == before + 1
    assert assignments.jobs == [wire.JobOrder(job.pk, "acceptance", 150, {"target": "https://example.org/"})]
    assert told(others_token).jobs == []


def test_a_job_goes_from_claim_to_result_and_repeats_change_nothing(machine):
    agent, token = machine
    job = ask(agent)
    for state in ("claimed", "claimed"):
        assert say(token, job, state) == "claimed"
    for percent in (10, 10, 60):
        assert say(token, job, "running", percent=percent, step="disk") == "running"
    job.refresh_from_db()
    assert job.progress == {"percent": 60, "step": "disk"}
    for _repeat in range(2):
        assert say(token, job, "succeeded", result=found(cpu_count=8)) == "succeeded"
    job.refresh_from_db()
    assert job.result["cpu_count"] == 8
    assert job.ended_at is not None
    assert told(token).jobs == []
    assert Event.objects.filter(kind="job.ended").count() == 1


def test_only_one_of_a_kind_is_under_way_on_a_server(machine):
    agent, token = machine
    job = ask(agent)
    with pytest.raises(Conflict, match="under way"):
        ask(agent)
    say(token, job, "failed", reason="forbidden")
    assert ask(agent).pk != job.pk


def test_a_server_without_an_agent_is_given_nothing(machine):
    agent, _token = machine
    Agent.objects.filter(pk=agent.pk).update(revoked_at=now())
    with pytest.raises(Conflict, match="no agent"):
        ask(agent)
    with pytest.raises(NotFound):
        job_create(server_id=2**40, kind=JobKind.ACCEPTANCE, actor=OPERATOR, arguments={}, context={})


def test_arguments_are_bounded(machine):
    with pytest.raises(InvalidInput):
        ask(machine[0], target="x" * 5000)


def test_another_agents_job_does_not_exist_for_it(machine):
    job = ask(machine[0])
    _other, others_token = joined("rack-2")
    with pytest.raises(NotFound):
        say(others_token, job, "claimed")
    assert state_of(job) == "pending"


def test_a_cancelled_job_is_not_listed_and_says_so_to_its_agent(machine):
    agent, token = machine
    job = ask(agent)
    say(token, job, "claimed")
    version = told(token).version
    for _twice in range(2):
        job_cancel(job_id=job.pk, actor=OPERATOR)
    assert told(token).jobs == []
    assert told(token).version == version + 1
    assert say(token, job, "running", percent=50) == "cancelled"
    assert say(token, job, "succeeded", result=found()) == "cancelled"
    assert state_of(job) == "cancelled"
    assert job.result == {}


def test_what_is_over_cannot_be_cancelled(machine):
    agent, token = machine
    job = ask(agent)
    say(token, job, "claimed")
    say(token, job, "succeeded", result=found())
    with pytest.raises(Conflict):
        job_cancel(job_id=job.pk, actor=OPERATOR)


def test_a_job_claimed_by_a_process_that_is_gone_was_interrupted(machine):
    agent, token = machine
    job = ask(agent)
    say(token, job, "claimed")
    assert say(token, job, "claimed", run=str(uuid.uuid4())) == "failed"
    job.refresh_from_db()
    assert job.reason == "interrupted"


def test_a_job_that_nobody_begins_or_ends_is_given_up_and_a_late_result_still_counts(machine):
    agent, token = machine
    job = ask(agent)
    say(token, job, "claimed")
    at = now()
    assert jobs_expire(at=at + timedelta(minutes=10)) == 0
    assert jobs_expire(at=at + timedelta(hours=1)) == 1
    job.refresh_from_db()
    assert (job.state, job.reason) == ("expired", "no_result")
    assert say(token, job, "succeeded", result=found()) == "succeeded"
    waiting = ask(agent)
    assert jobs_expire(at=at + timedelta(hours=1)) == 1
    waiting.refresh_from_db()
    assert (waiting.state, waiting.reason) == ("expired", "not_begun")


def test_a_job_whose_time_is_over_is_not_claimed_any_more(machine):
    agent, token = machine
    job = ask(agent)
    Job.objects.filter(pk=job.pk).update(expires_at=now() - timedelta(seconds=1))
    assert say(token, job, "claimed") == "expired"


BAD_RESULTS = {
    "none": None,
    "another shape": {"at_ms": "soon"},
    "too many cards": {"at_ms": 1, "seconds": 1.0, "agent_version": "1", "cards": [{"uuid": "GPU"}] * 65},
    "long text": {"at_ms": 1, "seconds": 1.0, "agent_version": "1", "cpu_model": "x" * 101},
}


@pytest.mark.parametrize("result", BAD_RESULTS.values(), ids=BAD_RESULTS)
def test_a_result_is_held_to_the_shape_of_its_kind(machine, result):
    agent, token = machine
    job = ask(agent)
    say(token, job, "claimed")
    with pytest.raises(InvalidInput):
        say(token, job, "succeeded", result=result)
    assert state_of(job) == "claimed"


def test_what_postgres_cannot_hold_is_taken_out_of_a_result(machine):
    agent, token = machine
    job = ask(agent)
    say(token, job, "claimed")
    cards = [CardFound("GPU-1\0", name="H\x00200")]
    say(token, job, "succeeded", result=found(cpu_limit=float("nan"), cards=cards))
    job.refresh_from_db()
    assert job.result["cpu_limit"] is None
    assert job.result["cards"][0]["name"] == "H200"


def test_old_jobs_are_forgotten(machine, monkeypatch):
    monkeypatch.setattr(jobs, "KEPT_OF_A_KIND", 2)
    agent, token = machine
    made = []
    for _number in range(4):
        made.append(ask(agent))
        say(token, made[-1], "failed", reason="crashed")
    assert set(Job.objects.values_list("pk", flat=True)) == {job.pk for job in made[1:]}


# ---- over HTTP


def client(token):
    return Client(headers={"Authorization": f"Bearer {token}"})


def post(token, job, body):
    return client(token).post(f"/api/agent/v1/jobs/{job.pk}/", body, content_type="application/json")


def test_agents_report_over_http_and_strangers_do_not(machine):
    agent, token = machine
    job = ask(agent)
    body = {"run_id": RUN, "state": "claimed"}
    assert post("", job, body).status_code == 401
    assert post(joined("rack-2")[1], job, body).status_code == 404
    assert post(token, job, {**body, "state": "cancelled"}).status_code == 400
    assert post(token, job, {**body, "run_id": "mine"}).status_code == 400
    assert post(token, job, {**body, "detail": "x" * 300_000}).status_code == 413
    answer = post(token, job, body)
    assert (answer.status_code, answer.json()) == (200, {"state": "claimed"})


def test_the_way_to_the_panel_is_measured_only_while_a_job_is_under_way(machine):
    agent, token = machine
    machine_client = client(token)
    assert machine_client.get("/api/agent/v1/speed/down/?bytes=10").status_code == 409
    job = ask(agent)
    assert machine_client.get("/api/agent/v1/speed/down/?bytes=10").status_code == 409
    say(token, job, "claimed")
    answer = machine_client.get("/api/agent/v1/speed/down/?bytes=1000000")
    assert len(answer.content) == 1_000_000
    assert abs(int(answer["Fleetdeck-Panel-Time-Ms"]) - now().timestamp() * 1000) < 10_000
    assert machine_client.get("/api/agent/v1/speed/down/?bytes=5000000").status_code == 400
    assert machine_client.get("/api/agent/v1/speed/down/?bytes=-1").status_code == 400
    assert Client().get("/api/agent/v1/speed/down/").status_code == 401
    up = "/api/agent/v1/speed/up/"
    assert machine_client.post(up, b"x" * 1_000_000, content_type="application/octet-stream").status_code == 204
    assert machine_client.post(up, b"x" * 4_200_000, content_type="application/octet-stream").status_code == 413
    say(token, job, "succeeded", result=found())
    assert machine_client.get("/api/agent/v1/speed/down/?bytes=10").status_code == 409


def test_one_agent_cannot_keep_the_panel_busy(machine, monkeypatch):
    from fleet import job_views
    from panel.core.rates import Rate

    monkeypatch.setattr(job_views, "SPEED_RATE", Rate(limit=3, period_seconds=3600))
    agent, token = machine
    say(token, ask(agent), "claimed")
    codes = [client(token).get("/api/agent/v1/speed/down/?bytes=1").status_code for _ in range(5)]
    assert codes.count(200) <= 3
    assert codes[-1] == 429
