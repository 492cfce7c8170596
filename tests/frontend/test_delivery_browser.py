"""Pages of channels and notifications in a real Chromium: axe, and no page wider than a phone."""

import pytest

from tests.frontend.test_browser import GRAVE, axe, chromium, outside, pytestmark, window  # noqa: F401 (fixtures)
from tests.frontend.test_delivery_pages import delivery_world, pages_of


@pytest.mark.parametrize(("language", "theme"), [("en", "light"), ("zh-hans", "dark")])
def test_axe_finds_nothing_grave_and_none_is_wider_than_a_phone(window, people, language, theme):  # noqa: F811
    world = outside(delivery_world)
    people["admin"].language = language
    people["admin"].save()
    page = window("/settings/", color_scheme=theme)
    found = {}
    viewed, operated, managed = pages_of(world)
    kinds = ["/channels/new/", "/channels/new/?kind=webhook", managed[-2]]
    for path in [*viewed[:4], *operated, *kinds]:
        page.set_viewport_size({"width": 1280, "height": 844})
        page.goto(path)
        page.wait_for_load_state("load")
        grave = [v for v in axe.Axe().run(page).response["violations"] if v["impact"] in GRAVE]
        page.set_viewport_size({"width": 390, "height": 844})
        extra = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        if grave or extra > 0:
            found[path] = [extra, *((v["id"], [node["html"][:160] for node in v["nodes"]][:3]) for v in grave)]
    assert found == {}
