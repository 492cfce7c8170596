"""Acceptance checks and jobs over the API."""

import uuid

import msgspec
import pytest

from fleet.agent import wire
from fleet.models import Job, Lease
from fleet.services.agents import agent_authenticate
from fleet.services.jobs import job_report
from panel.core.clock import now
from tests.fleet.factories import joined
from tests.leasing.test_acceptance_verdict import a_card, a_machine

pytestmark = pytest.mark.django_db
RUN = str(uuid.uuid4())


@pytest.fixture
def rented():
    """A server with a lease, and its agent's token."""
    agent, token = joined()
    Lease.objects.create(
        server_id=agent.server_id,
        name="rack 7",
        origin="typed",
        state="active",
        state_changed_at=now(),
        billing="monthly",
        requested_at=now(),
        spec={"gpu_model": "H100 SXM 80GB", "gpu_count": 2, "cpu_count": "many", "region": "here"},
    )
    return agent.server_id, token


def finish(token, job_id, found):
    for state, result in (("claimed", None), ("succeeded", msgspec.to_builtins(found))):
        report = wire.JobReport(RUN, state, result=result)
        job_report(identity=agent_authenticate(token=token), job_id=job_id, report=report)


def address(server_id):
    return f"/api/v1/servers/{server_id}/acceptance/"


def test_a_check_is_begun_watched_and_read_line_by_line(rented, operator_client, viewer_client):
    server_id, token = rented
    body = {"expected": {"pcie_width": 16}, "target": "example.org:443"}
    answer = operator_client.post(address(server_id), body, content_type="application/json")
    assert (answer.status_code, answer.json()["state"], answer.json()["verdict"]) == (202, "pending", None)
    job_id = answer.json()["id"]
    again = operator_client.post(address(server_id), {}, content_type="application/json")
    assert again.status_code == 409
    assert viewer_client.get(f"/api/v1/jobs/{job_id}/").json()["state"] == "pending"
    finish(token, job_id, a_machine(a_card(0), a_card(1, pcie_width=8)))
    [entry] = viewer_client.get(address(server_id)).json()["results"]
    assert (entry["state"], entry["verdict"]) == ("succeeded", "fail")
    detail = viewer_client.get(f"{address(server_id)}{job_id}/").json()
    [wrong] = [line for line in detail["lines"] if line["verdict"] == "fail"]
    assert wrong == {
        "code": "pcie_width", "gpu": 1, "kind": "width", "ordered": 16, "found": 8, "tolerance": None,
        "origin": "typed", "verdict": "fail", "reason": "",
    }  # fmt: skip
    [count] = [line for line in detail["lines"] if line["code"] == "gpu_count"]
    assert (count["ordered"], count["origin"], count["verdict"]) == (2, "lease", "pass")
    assert detail["found"]["cpu_count"] == 64


def test_a_lease_that_changes_later_changes_no_report(rented, operator_client):
    server_id, token = rented
    job_id = operator_client.post(address(server_id), {}, content_type="application/json").json()["id"]
    finish(token, job_id, a_machine())
    Lease.objects.update(spec={"gpu_model": "A100 80GB", "gpu_count": 8})
    assert operator_client.get(f"{address(server_id)}{job_id}/").json()["verdict"] == "pass"


BAD = {
    "an unknown model": {"expected": {"gpu_model": "abacus"}},
    "no cards": {"expected": {"gpu_count": 0}},
    "a strange scheme": {"target": "ftp://example.org"},
    "somebody's password": {"target": "https://me:secret@example.org"},
    "words": {"target": "over there"},
}


@pytest.mark.parametrize("body", BAD.values(), ids=BAD)
def test_what_cannot_be_meant_is_refused(rented, operator_client, body):
    answer = operator_client.post(address(rented[0]), body, content_type="application/json")
    assert answer.status_code == 400, answer.json()
    assert not Job.objects.exists()


def test_viewers_begin_and_cancel_nothing(rented, viewer_client, operator_client):
    assert viewer_client.post(address(rented[0]), {}, content_type="application/json").status_code == 403
    job_id = operator_client.post(address(rented[0]), {}, content_type="application/json").json()["id"]
    assert viewer_client.post(f"/api/v1/jobs/{job_id}/cancel/").status_code == 403
    cancelled = operator_client.post(f"/api/v1/jobs/{job_id}/cancel/")
    assert (cancelled.status_code, cancelled.json()["state"]) == (202, "cancelled")
    assert viewer_client.get("/api/v1/jobs/?state=cancelled").json()["results"][0]["id"] == job_id
    assert viewer_client.get("/api/v1/jobs/?is_open=true").json()["results"] == []


def test_a_check_of_another_server_is_not_found_under_this_one(rented, operator_client):
    job_id = operator_client.post(address(rented[0]), {}, content_type="application/json").json()["id"]
    other, _token = joined("rack-2")
    assert operator_client.get(f"{address(other.server_id)}{job_id}/").status_code == 404
    assert operator_client.get(address(2**40)).status_code == 404


def test_lists_cost_the_same_for_any_number_of_checks(
    rented, viewer_client, operator_client, django_assert_max_num_queries
):
    server_id, token = rented
    for _number in range(4):
        finish(
            token,
            operator_client.post(address(server_id), {}, content_type="application/json").json()["id"],
            a_machine(),
        )
    with django_assert_max_num_queries(5):
        assert len(viewer_client.get(address(server_id)).json()["results"]) == 4
