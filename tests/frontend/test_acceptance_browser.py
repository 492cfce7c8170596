"""The acceptance report in a real Chromium: readable for everybody, on a phone, in Chinese, and on paper."""

import uuid

import msgspec
import pytest

from fleet.agent import wire
from fleet.enums import JobKind
from fleet.services.agents import agent_authenticate
from fleet.services.jobs import job_create, job_report
from tests.fleet.factories import OPERATOR, joined
from tests.frontend.browser import CHROMIUM, GRAVE, axe, chromium, outside, window  # noqa: F401 (fixtures)
from tests.leasing.test_acceptance_verdict import a_card, a_machine

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed: no page was opened in a browser"),
]


def checked(name="rack-1"):
    """Return the id of a server with a report: one card has half its lanes."""
    agent, token = joined(name)
    job = job_create(
        server_id=agent.server_id, kind=JobKind.ACCEPTANCE, actor=OPERATOR, arguments={},
        context={"typed": {"gpu_model": "H100 SXM 80GB", "gpu_count": 2}},
    )  # fmt: skip
    found = msgspec.to_builtins(a_machine(a_card(0), a_card(1, pcie_width=8)))
    for state, result in (("claimed", None), ("succeeded", found)):
        report = wire.JobReport(str(uuid.UUID(int=1)), state, result=result)
        job_report(identity=agent_authenticate(token=token), job_id=job.pk, report=report)
    return agent.server_id


def test_report_form_and_print_view_are_sound(window, tmp_path):  # noqa: F811
    address = f"/servers/{outside(checked)}/acceptance/"
    page = window(path=address)
    page.get_by_text("It is not what was ordered.").wait_for()
    violations = axe.Axe().run(page).response["violations"]
    assert [violation for violation in violations if violation["impact"] in GRAVE] == []
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    verdicts = page.locator("[data-verdict] [data-main='state']")
    boxes = [verdicts.nth(number).bounding_box() for number in range(verdicts.count())]
    assert boxes, "every line has its verdict"
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= 390 for box in boxes), "each in sight on a phone"
    page.set_viewport_size({"width": 1280, "height": 900})
    page.screenshot(path=tmp_path / "report.png", full_page=True)
    page.emulate_media(media="print")
    assert page.locator("[data-verdict='fail']").first.is_visible()
    assert not page.get_by_role("button", name="Begin the check").is_visible()
    assert not page.locator(".rail").is_visible()
    assert page.locator("[data-verdict] > th").first.bounding_box()["x"] >= 0  # nothing is cut off at the paper's edge
    page.screenshot(path=tmp_path / "print.png", full_page=True)


def test_an_empty_page_is_sound(window):  # noqa: F811
    agent, _token = outside(joined, "rack-2")
    page = window(path=f"/servers/{agent.server_id}/acceptance/")
    page.get_by_text("Is it what you pay for?").wait_for()
    violations = axe.Axe().run(page).response["violations"]
    assert [violation for violation in violations if violation["impact"] in GRAVE] == []
