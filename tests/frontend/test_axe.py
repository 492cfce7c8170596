"""Every page in a real Chromium: axe finds nothing grave, and none is wider than its screen."""

import pytest

from tests.frontend.browser import GRAVE, axe, chromium, expect, machine, outside, pytestmark, window
from tests.frontend.golive import World
from tests.frontend.leasing import simulated
from tests.frontend.probing import probing_world
from tests.frontend.serving import serving_world

__all__ = ["chromium", "pytestmark", "window"]  # fixtures and marks, used here by name


PAGES = [
    "/events/",
    "/self-health/",
    "/join/",
    "/settings/",
    "/settings/users/",
    "/settings/tokens/",
    "/settings/sessions/",
]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_grave(window, theme):
    outside(machine, "rack-1")
    page = window("/settings/", color_scheme=theme)
    found = {}
    for path in PAGES:
        page.goto(path)
        page.wait_for_load_state("load")
        answer = axe.Axe().run(page).response
        grave = [violation for violation in answer["violations"] if violation["impact"] in GRAVE]
        if grave:
            found[path] = [(v["id"], [node["html"][:160] for node in v["nodes"]][:3]) for v in grave]
    assert found == {}


def endpoint_pages(world):
    """Addresses of the pages of endpoints, with something on each."""
    chat, broken = f"/endpoints/{world['endpoint'].pk}", f"/endpoints/{world['broken'].pk}"
    model = "kind=vllm&source=huggingface&model=Qwen/Qwen3-8B&runtime=process"
    shape = "parameters=8.2&layers=36&attention_heads=32&kv_heads=8&head_size=128&precision=bfloat16&context=8192"
    return [
        "/endpoints/", f"{chat}/", f"{chat}/latency/", f"{chat}/replicas/", f"{chat}/revisions/?before=1&after=2",
        f"{chat}/keys/",
        f"{chat}/settings/", f"{chat}/scale/?replicas=1", f"{chat}/delete/", f"{chat}/deploy/?arg_max_num_seqs=32&step=review",
        f"{broken}/runs/{world['failed_run'].pk}/", f"/replicas/{world['failing'].pk}/", "/endpoints/new/",
        f"/endpoints/new/?{model}&{shape}&concurrency=4&gpus=1&step=hardware",
        f"/endpoints/new/?{model}&{shape}&concurrency=4&gpus=1&step=arguments",
        "/gateways/", "/gateways/new/", "/keys/", "/keys/new/", "/secrets/", f"/servers/{world['server'].pk}/serving/",
    ]  # fmt: skip


def probe_pages(world):
    """Addresses of the pages of probes, with something on each."""
    stream = f"/probes/{world['stream'].pk}"
    return [
        "/probes/", "/probes/?q=nothing", "/probes/new/", "/probes/new/?kind=chat", f"{stream}/", f"{stream}/?range=7d",
        f"{stream}/edit/", f"/probes/{world['broken'].pk}/", f"/probes/{world['paused'].pk}/",
    ]  # fmt: skip


@pytest.mark.parametrize(("language", "theme"), [("en", "light"), ("zh-hans", "dark")])
def test_axe_finds_nothing_grave_on_pages_of_endpoints_and_probes_and_none_is_wider_than_a_phone(
    window, people, language, theme
):
    world = outside(serving_world)
    probed = outside(probing_world)
    people["admin"].language = language
    people["admin"].save()
    page = window("/settings/", color_scheme=theme)
    found = {}
    for path in [*endpoint_pages(world), *probe_pages(probed)]:
        page.set_viewport_size({"width": 1280, "height": 844})
        page.goto(path)
        page.wait_for_load_state("load")
        grave = [v for v in axe.Axe().run(page).response["violations"] if v["impact"] in GRAVE]
        page.set_viewport_size({"width": 390, "height": 844})
        extra = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        if grave or extra > 0:
            found[path] = [extra, *((v["id"], [node["html"][:160] for node in v["nodes"]][:3]) for v in grave)]
    assert found == {}


def test_axe_finds_nothing_grave_on_pages_of_go_live_tests_and_none_is_wider_than_a_phone(window, people):
    world = outside(World)
    outside(lambda: (world.failed, world.running))
    people["admin"].language = "zh-hans"
    people["admin"].save()
    page = window("/settings/", color_scheme="dark")
    found = {}
    endpoint = world.endpoint.pk
    for path in ("/golive/", f"/golive/new/?endpoint={endpoint}", f"/golive/{world.failed.pk}/", f"/golive/{world.running.pk}/",
                 f"/endpoints/{endpoint}/runs/{world.rollout.pk}/"):  # fmt: skip
        page.set_viewport_size({"width": 1280, "height": 844})
        page.goto(path)
        page.wait_for_load_state("load")
        grave = [
            (v["id"], v["nodes"][0]["html"][:160])
            for v in axe.Axe().run(page).response["violations"]
            if v["impact"] in GRAVE
        ]
        page.set_viewport_size({"width": 390, "height": 844})
        extra = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        if grave or extra > 0:
            found[path] = [extra, *grave]
    assert found == {}


def test_axe_finds_nothing_grave_where_the_rail_shows_icons_alone(window):
    page = window("/events/")
    page.locator("[data-rail-toggle]").click()
    expect(page.locator("html")).to_have_attribute("data-rail", "collapsed")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-rail", "collapsed")
    assert [v for v in axe.Axe().run(page).response["violations"] if v["impact"] in GRAVE] == []
    expect(page.get_by_role("link", name="Fleet", exact=True)).to_be_visible()
    page.set_viewport_size({"width": 768, "height": 844})
    expect(page.get_by_role("link", name="Fleet", exact=True)).to_be_visible()


def test_axe_finds_nothing_grave_before_log_in_and_in_dialogs(window):
    page = window("/login/", role="")
    assert [v for v in axe.Axe().run(page).response["violations"] if v["impact"] in GRAVE] == []
    page = window()
    page.keyboard.press("?")
    expect(page.locator("#shortcuts")).to_be_visible()
    assert [v for v in axe.Axe().run(page).response["violations"] if v["impact"] in GRAVE] == []
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    expect(page.locator("#palette-results [role=option]").first).to_be_visible()
    assert [v for v in axe.Axe().run(page).response["violations"] if v["impact"] in GRAVE] == []


def test_no_page_is_wider_than_a_phone_or_than_a_page_at_double_size(window):
    outside(
        machine, "a-server-with-quite-a-long-name-in-shanghai-07", 8, provider="Alibaba Cloud", region="cn-shanghai-b"
    )
    page = window("/settings/", width=390)
    wide = {}
    for width in (390, 640, 768):
        page.set_viewport_size({"width": width, "height": 844})
        for path in PAGES:
            page.goto(path)
            extra = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            if extra > 0:
                wide[(path, width)] = extra
    assert wide == {}


def test_a_list_of_many_cards_has_one_scroll_bar(window):
    for number in range(6):
        outside(machine, f"rack-{number}", 8)
    page = window("/fleet/?tab=gpus", width=1440)
    page.set_viewport_size({"width": 1440, "height": 900})
    assert page.evaluate("document.documentElement.scrollHeight - document.documentElement.clientHeight") <= 0
    assert page.evaluate("(el => el.scrollHeight > el.clientHeight)(document.querySelector('.list-wrap'))")


def test_a_list_that_loads_its_rows_in_parts_is_no_wider_than_its_place(window):
    outside(machine, "rack-1", 210)
    page = window("/fleet/?tab=gpus", width=1440)
    extra = {}
    for width in range(1436, 1446):
        page.set_viewport_size({"width": width, "height": 900})
        page.reload()
        expect(page.locator("table.is-fixed")).to_be_visible()
        extra[width] = page.locator(".list-wrap").evaluate("el => el.scrollWidth - el.clientWidth")
    assert set(extra.values()) == {0}, extra


def test_an_offer_can_be_ordered_without_scrolling_sideways(window):
    outside(simulated)
    page = window("/offers/", role="admin", width=1440)
    edge = page.locator(".table-wrap").bounding_box()
    button = page.locator("tbody .actions .btn").first.bounding_box()
    assert button["x"] + button["width"] <= edge["x"] + edge["width"]
    fields = [box["y"] + box["height"] for box in (e.bounding_box() for e in page.locator(".toolbar .field").all())]
    filter_button = page.locator(".toolbar button").bounding_box()
    assert abs(max(fields) - (filter_button["y"] + filter_button["height"])) < 4
    assert max(fields) - min(fields) < 4
