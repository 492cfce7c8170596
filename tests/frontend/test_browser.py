"""The shell in a real Chromium: log-in, themes, search, keyboard, dialogs, ticks of a join, logs."""

import re

from endpoints.live import endpoint_snapshot
from endpoints.models import Endpoint
from fleet.agent import wire
from fleet.models import Server
from fleet.services.joining import server_join
from panel.core.clock import now
from tests.fleet.factories import Machine
from tests.frontend.browser import CHROMIUM, GRAVE, axe, chromium, expect, machine, outside, pytestmark, sayer, window
from tests.frontend.serving import serving_world

__all__ = ["CHROMIUM", "GRAVE", "axe", "chromium", "pytestmark", "window"]  # fixtures and marks, used here by name


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
    expect(page.locator("[data-log] > span:visible")).to_have_count(1)
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
