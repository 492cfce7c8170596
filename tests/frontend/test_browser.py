"""The shell in a real Chromium: log-in, themes, keyboard, dialogs, ticks of a join, and axe on every page."""

import json
import re
import shutil
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections

from endpoints.live import endpoint_snapshot
from endpoints.models import Endpoint
from fleet.agent import wire
from fleet.models import Server
from fleet.services.joining import server_join
from panel.core.clock import now
from tests.accounts.people import PASSWORD
from tests.fleet.factories import Machine, joined
from tests.frontend.leasing import simulated
from tests.frontend.probing import probing_world
from tests.frontend.serving import serving_world

playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: no page was opened in a browser"
)
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PAGES = [
    "/events/",
    "/self-health/",
    "/join/",
    "/settings/",
    "/settings/users/",
    "/settings/tokens/",
    "/settings/sessions/",
]
GRAVE = {"serious", "critical"}

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed: no page was opened in a browser"),
]


@pytest.fixture(scope="module")
def chromium():
    """One Chromium for all tests of this module.

    Playwright keeps an event loop in this thread, which Django takes for asynchronous code; nothing here is.
    """
    with pytest.MonkeyPatch.context() as patch, playwright.sync_playwright() as tools:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        instance = tools.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield instance
        instance.close()


@pytest.fixture
def window(chromium, transactional_db, live_server, people):
    """Open windows on the panel; `window(role="admin", path="/events/")` is logged in. Faults of scripts fail the test."""
    faults, contexts = [], []

    def open_(path="/settings/", *, role="admin", width=1280, **options):
        context = chromium.new_context(
            base_url=live_server.url, viewport={"width": width, "height": 844}, locale="en-GB", **options
        )
        contexts.append(context)
        context.set_default_timeout(20_000)
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: message.type == "error" and _note(faults, message.text))
        if role:
            page.goto(f"/login/?next={path}")
            page.fill("#id_username", people[role].username)
            page.fill("#id_password", PASSWORD)
            page.keyboard.press("Enter")
            page.wait_for_url(lambda address: "/login/" not in address)
        else:
            page.goto(path)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert faults == []


def _note(faults, text):
    # The test's server speaks no WebSocket: pages then poll, which is what some of these tests are about. And a window
    # that closes drops the request that is under way.
    if not any(known in text for known in ("WebSocket", "/live/snapshots/", "htmx:afterRequest", "htmx:send")):
        faults.append(text)


def outside(work, *args, **kwargs):
    """Do something to the panel in a thread of its own: what is published there may not meet Playwright's event loop."""

    def and_close():
        try:
            return work(*args, **kwargs)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(and_close).result()


def machine(name, cards=2, **kwargs):
    """A server with cards that has reported."""
    agent, _token = joined(name, **kwargs)
    Machine(agent, cards=cards).send()


def expect(locator):
    return playwright.expect(locator)


def test_somebody_logs_in_and_out(window):
    page = window("/events/")
    expect(page.locator("h1")).to_have_text("Events")
    page.locator("[popovertarget=menu-user]").click()
    page.get_by_role("button", name="Log out").click()
    expect(page.locator("h1")).to_have_text("Log in")


def test_the_theme_changes_at_once_and_is_there_at_the_next_first_paint(window):
    page = window()
    background = "getComputedStyle(document.body.parentElement).backgroundColor"
    before = page.evaluate(background)
    page.locator("[popovertarget=menu-theme]").click()
    with page.expect_response("**/preferences/"):
        page.locator("#menu-theme").get_by_role("button", name="Dark").click()
    after = page.evaluate(background)
    assert after != before
    page.reload()
    assert page.evaluate(background) == after
    assert page.locator("html").get_attribute("data-theme") == "dark"


def test_the_language_changes_with_the_page_one_was_on(window):
    page = window("/settings/tokens/")
    page.locator("[popovertarget=menu-language]").click()
    page.locator("#menu-language").get_by_role("button", name="简体中文").click()
    expect(page.locator("html")).to_have_attribute("lang", "zh-hans")
    assert page.url.endswith("/settings/tokens/")


def test_a_first_visit_shows_times_in_the_browsers_zone(window):
    page = window("/events/", timezone_id="Asia/Shanghai")
    expect(page.locator(".strip [data-zone-label]")).to_have_text("UTC+8")
    element = page.locator("tbody time").first
    utc = re.search(r"(\d\d):(\d\d):\d\d UTC", element.get_attribute("title"))
    assert f" {(int(utc[1]) + 8) % 24:02d}:{utc[2]}:" in element.text_content()


def test_the_search_opens_by_key_finds_and_opens(window):
    outside(machine, "rack-1")
    page = window()
    page.keyboard.press("/")
    expect(page.locator("#palette")).to_be_visible()
    page.keyboard.type("rack")
    option = page.locator("#palette-results [role=option]").first
    expect(option).to_contain_text("rack-1")
    expect(option).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Escape")
    expect(page.locator("#palette")).to_be_hidden()
    page.keyboard.press("Control+k")
    page.locator("#palette input").fill("events")
    expect(page.locator("#palette-results [role=option]").first).to_contain_text("Events")
    page.keyboard.press("Enter")
    page.wait_for_url("**/events/")


def test_enter_jumps_only_to_the_one_match_and_else_opens_the_list(window):
    outside(machine, "rack-1")
    outside(machine, "rack-2")
    page = window()
    page.keyboard.press("/")
    page.keyboard.type("rack-")
    expect(page.locator("#palette-results [role=option]")).to_have_count(2)
    expect(page.locator("#palette-results [aria-selected=true]")).to_have_count(0)
    page.keyboard.press("Enter")
    page.wait_for_url("**/search/?q=rack-")
    page.keyboard.press("Control+k")
    page.locator("#palette input").fill("rack-")
    expect(page.locator("#palette-results [role=option]")).to_have_count(2)
    page.keyboard.press("ArrowDown")
    expect(page.locator("#palette-results [aria-selected=true]")).to_contain_text("rack-1")
    page.keyboard.press("Enter")
    page.wait_for_url("**/servers/*/")


def test_shortcuts_go_rest_while_typing_and_can_be_switched_off(window, people):
    page = window()
    page.locator("#id_current_password").click()
    page.keyboard.type("ge?")
    assert page.url.endswith("/settings/")
    page.locator("h1").click()
    page.keyboard.press("?")
    expect(page.locator("#shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("e")
    page.wait_for_url("**/endpoints/")
    page.keyboard.press("g")
    page.keyboard.press("v")
    page.wait_for_url("**/events/")
    people["admin"].has_shortcuts = False
    people["admin"].save()
    page.reload()
    page.keyboard.press("?")
    expect(page.locator("#shortcuts")).to_be_hidden()


def test_rows_are_walked_by_key(window):
    outside(machine, "rack-1")
    page = window("/events/")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator("tbody tr[data-cursor]")).to_have_count(1)
    assert page.evaluate("document.activeElement.closest('tr') === document.querySelector('tr[data-cursor]')")


def test_a_destructive_dialog_starts_on_cancel_and_wants_the_name(window, people):
    page = window(f"/settings/users/{people['viewer'].pk}/")
    page.get_by_role("button", name="Delete…").click()
    assert page.evaluate("document.activeElement.textContent.trim()") == "Cancel"
    button = page.get_by_role("button", name="Delete user")
    expect(button).to_be_disabled()
    page.keyboard.press("Escape")
    expect(page.locator("#delete-user")).to_be_hidden()
    page.get_by_role("button", name="Delete…").click()
    page.locator("#delete-user-name").fill("vic")
    expect(button).to_be_enabled()
    button.click()
    expect(page.locator(".toast")).to_contain_text("vic is deleted.")


def test_a_toast_takes_back_what_was_done(window, people):
    page = window("/settings/users/")
    page.locator("tr", has_text="vic").get_by_role("button", name="Deactivate").click()
    expect(page.locator("tr", has_text="vic")).to_contain_text("Deactivated")
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(page.locator("tr", has_text="vic")).to_contain_text("Active")


def test_a_machine_that_joins_is_ticked_off_without_sockets(window):
    page = window("/fleet/", role="operator")
    page.locator("[data-dialog=join-dialog]").click()
    page.locator("#join-dialog #id_name").fill("rack-9")
    page.keyboard.press("Enter")
    line = page.locator("#join-command").text_content()
    token = re.search(r"fdj_[a-z0-9]{8}_[\w-]{43}", line)[0]
    word = page.locator("#join-dialog [data-copy-word]").first
    expect(word).to_have_attribute("aria-live", "polite", timeout=30_000)  # its script has come
    page.locator("#join-dialog [data-copy]").first.click()
    expect(word).to_have_text(re.compile("Copied|Press Ctrl C"))
    step = page.locator("#join-dialog [data-step=token]")
    expect(step).to_have_attribute("data-state", "current")
    request = wire.JoinRequest(token=token, agent_version="0.1.0")
    server = outside(server_join, request=request, address="127.0.0.1").server_id
    expect(step).to_have_attribute("data-state", "done")
    sample = wire.HostSample(at_ms=int(now().timestamp() * 1000), monotonic_ms=1, cpu_percent=1.0)
    agent = Server.objects.select_related("agent").get(pk=server).agent
    outside(Machine(agent, cards=8).send, host=wire.HostFacts(hostname="h"), host_samples=[sample])
    expect(page.locator("#join-dialog [data-step=gpus]")).to_contain_text("8 GPUs found")
    expect(page.get_by_role("link", name="Open rack-9")).to_be_visible()


def test_the_panel_can_be_used_without_javascript(window):
    page = window("/settings/", java_script_enabled=False)
    page.locator("#id_theme").select_option("dark")
    page.get_by_role("button", name="Save", exact=True).click()
    assert page.locator("html").get_attribute("data-theme") == "dark"
    page.locator("a.search-open").click()
    page.locator("#q").fill("users")
    page.locator("main button").click()
    page.locator("main a", has_text="Users").click()
    expect(page.locator("h1")).to_have_text("Settings")


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
        "/endpoints/", f"{chat}/", f"{chat}/replicas/", f"{chat}/revisions/?before=1&after=2", f"{chat}/keys/",
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
def test_axe_finds_nothing_grave_on_pages_of_endpoints_and_probes_and_none_is_wider_than_a_phone(window, people, language, theme):
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


def test_a_log_follows_what_the_socket_says_and_is_filtered_while_one_types(window):
    world = outside(serving_world)
    replica = world["replica"]
    page = window()
    say = sayer(page)
    page.goto(f"/replicas/{replica.pk}/")
    expect(page.locator("[data-log]")).to_contain_text("Application startup complete")
    say(f"replica.{replica.pk}", {"log": {"1:900": {"text": "GET /v1/models\nERROR boom\n", "skipped": 0}}})
    expect(page.locator("[data-log]")).to_contain_text("ERROR boom")
    page.locator("#log-q").fill("error")
    expect(page.locator("[data-log] span:visible")).to_have_count(1)
    page.locator("[data-log-wrap]").click()
    expect(page.locator("[data-log-wrap]")).to_have_attribute("aria-pressed", "false")


def test_an_endpoint_that_changes_is_seen_without_a_reload(window):
    world = outside(serving_world)
    endpoint = world["endpoint"]
    page = window()
    say = sayer(page)
    page.goto(f"/endpoints/{endpoint.pk}/")
    page.evaluate("window.isSamePage = true")
    expect(page.locator("#endpoint-status")).to_contain_text("Revision 1")
    outside(Endpoint.objects.filter(pk=endpoint.pk).update, desired_replicas=7)
    say(f"endpoint.{endpoint.pk}", outside(endpoint_snapshot, endpoint.pk))
    expect(page.locator("#replicas")).to_have_value("7")
    assert page.evaluate("window.isSamePage")


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


def sayer(page):
    """Answer the page's sockets; returns what sends a snapshot, once the page has asked for its topic."""
    asked = {}

    def answer(socket):
        def heard(text):
            asked.update(dict.fromkeys(json.loads(text)["topics"], socket))

        socket.on_message(heard)

    def say(topic, data):
        deadline = time.monotonic() + 20
        while topic not in asked:
            assert time.monotonic() < deadline, f"the page never asked for {topic}"
            page.wait_for_timeout(50)  # Playwright hears of sockets while it waits
        asked[topic].send(
            json.dumps({"type": "snapshot", "topic": topic, "seq": 1, "at": now().isoformat(), "data": data})
        )

    page.route_web_socket("**/ws/live/", answer)
    return say


def test_a_list_of_many_cards_has_one_scroll_bar(window):
    for number in range(6):
        outside(machine, f"rack-{number}", 8)
    page = window("/fleet/?tab=gpus", width=1440)
    page.set_viewport_size({"width": 1440, "height": 900})
    assert page.evaluate("document.documentElement.scrollHeight - document.documentElement.clientHeight") <= 0
    assert page.evaluate("(el => el.scrollHeight > el.clientHeight)(document.querySelector('.list-wrap'))")


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
