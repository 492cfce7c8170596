"""What comes while a page is open is seen there: servers, cards, memory, without a reload and without a press."""

import json

import pytest

from monitoring.live.kinds import fleet_snapshot, server_snapshot
from tests.charts.fleet_data import HOST_FACTS
from tests.fleet.factories import Machine, joined
from tests.frontend.browser import chromium, expect, machine, outside, pytestmark, sayer, window

__all__ = ["chromium", "pytestmark", "window"]  # fixtures and marks of the shell's tests, used here by name


def newcomer():
    """A machine that has joined and told nothing of itself but its driver."""
    agent, _token = joined("newcomer")
    made = Machine(agent, cards=2)
    made.send(gpus=[])
    return made


def test_cards_and_memory_that_come_after_the_page_get_their_cards_and_charts_without_a_reload(window):
    made = outside(newcomer)
    server = made.agent.server_id
    page = window()
    say = sayer(page)
    page.goto(f"/servers/{server}/")
    expect(page.locator("#server-status")).to_contain_text("No GPU here")
    expect(page.locator("[data-chart]")).to_have_count(2)
    expect(page.locator("#processes")).to_be_hidden()
    page.evaluate("window.isSamePage = true")

    outside(made.send, host=HOST_FACTS)
    say(f"server.{server}", outside(server_snapshot, server))
    expect(page.locator(".gpu-card")).to_have_count(2)
    expect(page.locator("[data-chart]")).to_have_count(8, timeout=15_000)
    expect(page.locator("[data-legend]")).to_have_count(2)
    expect(page.locator("#facts")).to_contain_text("rack-1.local")
    expect(page.locator("#processes")).to_be_visible()
    config = json.loads(page.locator("[data-module=charts]").get_attribute("data-config"))
    (shares,) = (chart["choices"][0] for chart in config["charts"] if chart["id"] == "host")
    assert [line["metric"] for line in shares["lines"]] == ["host.cpu_percent", "host.memory_used_bytes"]
    assert page.evaluate("window.isSamePage")


@pytest.mark.parametrize(("path", "awaited"), [("/", ".heat-server"), ("/fleet/?tab=gpus", "tr[data-gpu]")])
def test_a_page_with_nothing_to_show_fills_itself_when_something_comes(window, path, awaited):
    page = window()
    say = sayer(page)
    page.goto(path)
    expect(page.get_by_text("No server has joined yet")).to_be_visible()
    outside(machine, "rack-1")
    say("fleet", outside(fleet_snapshot, 0))
    expect(page.locator(awaited).first).to_be_visible(timeout=30_000)


def test_a_list_that_its_filters_empty_fills_itself_once_something_matches(window):
    outside(machine, "rack-1")
    page = window()
    page.clock.install()
    page.goto("/fleet/?q=rack-2")
    expect(page.get_by_text("Nothing matches these filters")).to_be_visible()
    outside(machine, "rack-2")
    page.locator("#filter-q").focus()
    page.clock.run_for(11_000)
    expect(page.get_by_text("Nothing matches these filters")).to_be_visible()
    page.locator("#filter-q").blur()
    page.clock.run_for(11_000)
    expect(page.locator("tr[data-server]")).to_contain_text("rack-2")


def test_a_server_that_joins_gets_its_rows_and_its_count_in_the_open_list(window):
    outside(machine, "rack-1")
    page = window()
    say = sayer(page)
    page.goto("/fleet/?tab=gpus")
    say("fleet", outside(fleet_snapshot, 0))
    expect(page.locator("tr[data-gpu]")).to_have_count(2)
    page.evaluate("window.isSamePage = true")

    outside(machine, "rack-2", 60)
    say("fleet", outside(fleet_snapshot, 0))
    expect(page.locator("tr[data-gpu]").nth(49)).to_contain_text("rack-2", timeout=8_000)
    expect(page.locator("[data-total-words]")).to_have_text("62 GPUs")
    expect(page.locator(".tabs [aria-current] .count")).to_have_text("62")
    page.locator("tbody[data-chunk='1']").scroll_into_view_if_needed()
    expect(page.locator("tr[data-gpu]")).to_have_count(62)
    assert page.evaluate("window.isSamePage")


def test_a_server_that_joins_gets_its_cells_in_the_open_overview(window):
    outside(machine, "rack-1")
    page = window()
    say = sayer(page)
    page.goto("/")
    say("fleet", outside(fleet_snapshot, 0))
    expect(page.locator(".heat-server")).to_have_count(1)
    outside(machine, "rack-2")
    say("fleet", outside(fleet_snapshot, 0))
    expect(page.locator(".heat-server")).to_have_count(2, timeout=8_000)


def test_a_page_with_nothing_to_show_does_not_load_itself_again_under_an_open_dialog(window):
    page = window()
    say = sayer(page)
    page.clock.install()
    page.goto("/fleet/")
    page.locator("[data-dialog=join-dialog]").click()
    expect(page.locator("#join-dialog #id_name")).to_be_visible()
    outside(machine, "rack-1")
    say("fleet", outside(fleet_snapshot, 0))
    page.clock.run_for(5_000)
    page.locator("#join-dialog #id_name").fill("rack-9")
    page.keyboard.press("Escape")
    expect(page.locator("tr[data-server]")).to_be_visible(timeout=30_000)
