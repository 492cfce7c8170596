"""A person joins a real machine in a real browser, on a whole panel, and watches its card."""

import json
import re
import shutil
import tempfile
from pathlib import Path

import pytest

from fleet.simulation.cards import H200
from fleet.simulation.nvml import SimulatedHost, build_library
from tests.e2e.machine import Machine, lacks_venv
from tests.e2e.running import RunningPanel, wait_until

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no browser was driven")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
GRAVE = {"serious", "critical"}
PATIENCE_MS = 60_000
STEPS = ("token", "facts", "sample", "gpus")

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(600),
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed: no browser was driven"),
    pytest.mark.skipif(bool(lacks_venv()), reason=lacks_venv() or "-"),
]
expect = sync_api.expect


@pytest.fixture(scope="module")
def panel():
    with RunningPanel("--no-agent") as running:
        yield running


@pytest.fixture
def card():
    """One simulated card that every user may read, and the machine whose agent will read it."""
    with tempfile.TemporaryDirectory(prefix="fleetdeck-card-") as name:
        directory = Path(name)
        directory.chmod(0o755)
        host = SimulatedHost.create(directory / "server.nvml")
        host.path.chmod(0o666)
        card = host.add_card(H200)
        card.set(utilization_percent=12)
        library = build_library(directory)
        with Machine(FLEETDECK_NVML_LIBRARY=str(library), FLEETDECK_SIMULATION_FILE=str(host.path)) as machine:
            yield card, machine


@pytest.fixture
def page(panel):
    """A window on the panel, logged in as the admin; faults of its scripts fail the test."""
    faults = []
    with sync_api.sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        context = browser.new_context(base_url=panel.url, viewport={"width": 1280, "height": 900}, locale="en-GB")
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: message.type == "error" and faults.append(message.text))
        page.goto("/")
        page.fill("#id_username", "admin")
        page.fill("#id_password", panel.password)
        page.keyboard.press("Enter")
        soon(page.locator("h1")).to_have_text("Overview")
        yield page
        browser.close()
    assert faults == []


def soon(locator):
    """Expect something within a time that a busy machine needs too."""

    class Patient:
        def __getattr__(self, name):
            check = getattr(expect(locator), name)
            return lambda *given, **options: check(*given, **({"timeout": PATIENCE_MS} | options))

    return Patient()


def grave(page):
    """Return what axe finds that stops people."""
    report = json.loads(json.dumps(axe.Axe().run(page).response))
    return [(one["id"], one["nodes"][0]["html"]) for one in report["violations"] if one["impact"] in GRAVE]


def newest_point(page):
    """Return what the utilisation chart says of its newest point, as its keyboard reader speaks it."""
    figure = page.locator("[data-chart=utilization]")
    figure.locator("[data-plot]").press("Home")
    figure.locator("[data-plot]").press("End")
    return figure.locator("[data-spoken]").text_content()


def stored_utilization(panel):
    """Return the newest utilisation that the panel knows, whatever pages show."""
    (card,) = panel.client().get("/api/v1/gpus/").json()["results"]
    return card["latest"]["utilization_percent"]


def join(page, machine):
    """Make a line for a new machine, run it there, and see its ticks."""
    page.goto("/join/")
    assert grave(page) == []
    page.fill("[name=name]", "rented-one")
    page.locator("main").get_by_role("button", name="Make the line").click()
    line = page.locator("#join-command").inner_text().strip()
    assert "fdj_" in line
    soon(page.locator("[data-step=token]")).to_have_attribute("data-state", "current")
    done = machine.run(line)
    assert done.returncode == 0, done.stdout + done.stderr
    for step in STEPS:
        soon(page.locator(f"[data-step={step}]")).to_have_attribute("data-state", "done")
    assert grave(page) == []
    page.get_by_role("link", name="Open rented-one").click()
    soon(page.locator("h1")).to_contain_text("rented-one")


def see_it_move(page, simulated):
    """See figures, the chart's newest point and its table follow the card."""
    soon(page.locator("#live-state .word")).to_have_text("Live")
    soon(page.locator("[data-r=utilization_percent]").first).to_have_text("12")
    wait_until(lambda: "12" in newest_point(page), seconds=60, what="A first point of the chart")
    before = newest_point(page)
    simulated.set(utilization_percent=97)
    soon(page.locator("[data-r=utilization_percent]").first).to_have_text("97")
    wait_until(lambda: "97" in newest_point(page), seconds=60, what="A newer point of the chart")
    assert newest_point(page) != before
    page.locator("[data-chart=utilization] [data-table]").click()
    soon(page.locator("[data-chart=utilization] table")).to_contain_text("97")
    page.locator("[data-chart=utilization] [data-table]").click()


def pause_and_resume(page, panel, simulated):
    """Hold the page still while the panel goes on, then let it catch up."""
    utilization = page.locator("[data-r=utilization_percent]").first
    page.locator("#live-state").click()
    soon(page.locator("#live-state .word")).to_have_text("Paused")
    simulated.set(utilization_percent=34)
    wait_until(lambda: stored_utilization(panel) == 34, seconds=60, what="A reading that the paused page does not show")
    expect(utilization).to_have_text("97")
    page.locator("#live-state").click()
    soon(page.locator("#live-state .word")).to_have_text("Live")
    soon(utilization).to_have_text("34")
    wait_until(lambda: "34" in newest_point(page), seconds=60, what="The chart's catching up")


def change_language_and_theme(page):
    """Change both from the top bar, and find them again after a reload."""
    page.locator("[popovertarget=menu-language]").click()
    page.locator("#menu-language").get_by_role("button", name="简体中文").click()
    soon(page.locator("html")).to_have_attribute("lang", re.compile("zh"))
    soon(page.get_by_role("link", name="机群", exact=True).first).to_be_visible()
    page.locator("[popovertarget=menu-theme]").click()
    with page.expect_response("**/preferences/"):
        page.locator("#menu-theme [value=dark]").click()
    page.reload()
    soon(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_a_machine_joined_by_the_line_on_the_page_is_watched_live(page, panel, card):
    simulated, machine = card
    join(page, machine)
    see_it_move(page, simulated)
    pause_and_resume(page, panel, simulated)
    assert grave(page) == []
    server = page.url.partition("?")[0].removeprefix(panel.url)
    gpu = page.locator(".gpu-card h3 a").get_attribute("href")
    change_language_and_theme(page)
    for path in ("/", "/fleet/", "/fleet/?tab=gpus", server, gpu, "/join/", "/settings/", "/events/", "/self-health/"):
        page.goto(path)
        assert grave(page) == [], path
