"""The page of a server's acceptance check: empty, under way, the report, earlier ones, and who may begin one."""

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
    agent, token = joined()
    Lease.objects.create(
        server_id=agent.server_id, name="rack 7", landlord="Seven & Sons", origin="typed", state="active",
        state_changed_at=now(), billing="monthly", requested_at=now(), spec={"gpu_model": "H100 SXM 80GB", "gpu_count": 2},
    )  # fmt: skip
    return agent.server_id, token


def say(token, job, state, **kwargs):
    report = wire.JobReport(RUN, state, **kwargs)
    job_report(identity=agent_authenticate(token=token), job_id=job.pk, report=report)


def begin(client, server_id, **fields):
    return client.post(f"/servers/{server_id}/acceptance/begin/", fields, follow=True)


def text_of(answer):
    return answer.content.decode()


def test_an_empty_page_teaches_and_offers_the_check_to_operators_only(browser, rented):
    address = f"/servers/{rented[0]}/acceptance/"
    shown = text_of(browser("operator").get(address))
    assert "Is it what you pay for?" in shown
    assert "Compared with the lease rack 7" in shown
    assert "Begin the check" in shown
    seen = text_of(browser("viewer").get(address))
    assert "Is it what you pay for?" in seen
    assert "Begin the check" not in seen
    assert f'href="{address}"' in text_of(browser("viewer").get(f"/servers/{rented[0]}/"))


def test_a_check_is_begun_watched_and_printed(browser, rented):
    server_id, token = rented
    olga = browser("operator")
    shown = text_of(begin(olga, server_id, pcie_width="16", downlink_mbit="1000", target="example.org:443"))
    job = Job.objects.get()
    assert job.context["typed"] == {"pcie_width": 16, "downlink_bytes_per_second": 125_000_000}
    assert job.arguments == {"target": "example.org:443"}
    assert f'data-topic="job.{job.pk}"' in shown
    assert "Begin the check" not in shown
    say(token, job, "claimed")
    say(token, job, "running", percent=45, step="disk")
    progress = f"/servers/{server_id}/acceptance/{job.pk}/progress/"
    assert "Reading from the disk" in text_of(olga.get(progress))
    found = a_machine(a_card(0), a_card(1, pcie_width=8, name="<b>H100</b> 80GB HBM3"))
    say(token, job, "succeeded", result=msgspec.to_builtins(found))
    assert olga.get(progress)["HX-Refresh"] == "true"
    report = text_of(browser("viewer").get(f"/servers/{server_id}/acceptance/"))
    assert "It is not what was ordered." in report
    assert "Seven &amp; Sons" in report
    assert "×16" in report
    assert "×8" in report
    assert "usual for this model" in report
    assert 'data-module="print"' in report
    assert "<b>H100</b>" not in report


def test_a_job_that_failed_says_why_and_the_history_keeps_it(browser, rented):
    server_id, token = rented
    olga = browser("operator")
    begin(olga, server_id)
    say(token, Job.objects.get(), "failed", reason="forbidden")
    shown = text_of(olga.get(f"/servers/{server_id}/acceptance/"))
    assert "the policy of the machine forbids it" in shown
    assert "Checks of this server" in shown
    assert "Begin the check" in shown


def test_what_cannot_be_expected_stands_at_its_field(browser, rented):
    answer = begin(browser("operator"), rented[0], gpu_model="abacus")
    assert answer.status_code == 400
    assert "No such GPU model is known" in text_of(answer)
    assert not Job.objects.exists()


def test_a_check_is_cancelled_from_its_page(browser, rented):
    olga = browser("operator")
    begin(olga, rented[0])
    job = Job.objects.get()
    address = f"/servers/{rented[0]}/acceptance/{job.pk}/cancel/"
    assert browser("viewer").post(address).status_code == 403
    assert "Cancelled" in text_of(olga.post(address, follow=True))
    job.refresh_from_db()
    assert job.state == "cancelled"


def test_a_check_of_another_server_has_no_page_here(browser, rented):
    olga = browser("operator")
    begin(olga, rented[0])
    other, _token = joined("rack-2")
    assert olga.get(f"/servers/{other.server_id}/acceptance/{Job.objects.get().pk}/").status_code == 404
    assert olga.get(f"/servers/{2**40}/acceptance/").status_code == 404


def test_the_page_costs_the_same_for_any_number_of_checks(browser, rented, django_assert_max_num_queries):
    server_id, token = rented
    olga = browser("operator")
    for _number in range(5):
        begin(olga, server_id)
        job = Job.objects.get(ended_at=None)
        say(token, job, "claimed")
        say(token, job, "succeeded", result=msgspec.to_builtins(a_machine()))
    with django_assert_max_num_queries(12):
        assert text_of(olga.get(f"/servers/{server_id}/acceptance/")).count("acceptance/") > 5
