"""Pages of diagnoses in a real Chromium: axe, a phone's width, and a diagnosis that ends while one looks."""

import pytest

from monitoring.diagnosing.following import diagnosis_cancel
from tests.fleet.factories import OPERATOR
from tests.frontend.browser import GRAVE, axe, chromium, expect, outside, pytestmark, window  # noqa: F401 (fixtures)
from tests.frontend.diagnosing import diagnosing_world


@pytest.mark.parametrize(("language", "theme"), [("en", "light"), ("zh-hans", "dark")])
def test_axe_finds_nothing_grave_on_pages_of_diagnoses_and_none_is_wider_than_a_phone(window, people, language, theme):  # noqa: F811
    world = outside(diagnosing_world)
    people["admin"].language = language
    people["admin"].save()
    page = window("/settings/", color_scheme=theme)
    reports = [f"/diagnoses/{world[name].pk}/" for name in ("slow", "healthy", "failed", "running")]
    found = {}
    for path in ["/diagnoses/", "/diagnoses/?verdict=dns", f"/diagnoses/new/?probe={world['probe'].pk}", *reports]:
        page.set_viewport_size({"width": 1280, "height": 844})
        page.goto(path)
        page.wait_for_load_state("load")
        grave = [v for v in axe.Axe().run(page).response["violations"] if v["impact"] in GRAVE]
        page.set_viewport_size({"width": 390, "height": 844})
        extra = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        if grave or extra > 0:
            found[path] = [extra, *((v["id"], [node["html"][:160] for node in v["nodes"]][:3]) for v in grave)]
    assert found == {}


def test_a_page_that_waits_comes_anew_when_the_diagnosis_is_over(window):  # noqa: F811
    world = outside(diagnosing_world)
    page = window(f"/diagnoses/{world['running'].pk}/")
    expect(page.get_by_role("progressbar").or_(page.locator(".bar")).first).to_be_visible()
    outside(diagnosis_cancel, report_id=world["running"].pk, actor=OPERATOR)
    expect(page.locator(".banner")).to_contain_text("Cancelled", timeout=20_000)
