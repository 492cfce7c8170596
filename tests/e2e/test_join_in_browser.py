"""A person joins a real machine in a real browser, on a whole panel, and watches its card."""

import json
import re
import shutil

import pytest

from fleet.simulation.cards import PROFILES
from fleet.simulation.nvml import SimulatedHost, build_library
from tests.e2e.machine import Machine, lacks_venv
from tests.e2e.running import RunningPanel

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no browser was driven")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")

CHROMIUM = shutil.which("chromium")
GRAVE = {"serious", "critical"}
JOIN_MS = 120_000
MOVE_MS = 30_000

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(500),
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed: no browser was driven"),
    pytest.mark.skipif(bool(lacks_venv()), reason=lacks_venv() or "-"),
]


@pytest.fixture(scope="module")
def panel():
    with RunningPanel("--no-agent") as running:
        yield running


@pytest.fixture
def card(tmp_path):
    """One simulated card that every user may read, and the machine whose agent will read it."""
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents[:3]:
        parent.chmod(0o755)
    host = SimulatedHost.create(tmp_path / "server.nvml")
    host.path.chmod(0o666)
    card = host.add_card(PROFILES["h200"])
    card.set(utilization_percent=12)
    library = build_library(tmp_path)
    machine = Machine(FLEETDECK_NVML_LIBRARY=str(library), FLEETDECK_SIMULATION_FILE=str(host.path))
    yield card, machine
    machine.close()


@pytest.fixture
def page(panel):
    """A window on the panel, logged in as the admin; faults of its scripts fail the test."""
    faults = []
    with sync_api.sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        context = browser.new_context(base_url=panel.url, viewport={"width": 1280, "height": 900}, locale="en-GB")
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: message.type == "error" and faults.append(message.text))
        page.goto("/")
        page.fill("#id_username", "admin")
        page.fill("#id_password", panel.password)
        page.keyboard.press("Enter")
        sync_api.expect(page.locator("h1")).to_have_text("Overview", timeout=20_000)
        yield page
        browser.close()
    assert faults == []


def grave(page):
    """Return what axe finds that stops people."""
    report = json.loads(json.dumps(axe.Axe().run(page).response))
    return [(one["id"], one["nodes"][0]["html"]) for one in report["violations"] if one["impact"] in GRAVE]


def last_value(page):
    """Return what the utilisation chart says of its newest point, as its keyboard reader speaks it."""
    plot = page.locator("[data-chart]").first.locator("[data-plot]")
    plot.focus()
    plot.press("Home")
    plot.press("End")
    return page.locator("[data-chart]").first.locator("[data-spoken]")


def test_a_machine_joined_by_the_line_on_the_page_is_watched_live(page, card):
    expect = sync_api.expect
    simulated, machine = card
    page.goto("/join/")
    page.fill("[name=name]", "rented-one")
    page.locator("main").get_by_role("button", name="Make the line").click()
    line = page.locator("#join-command").inner_text().strip()
    assert "fdj_" in line
    done = machine.run(line)
    assert done.returncode == 0, done.stdout + done.stderr
    for step in ("token", "facts", "sample", "gpus"):
        expect(page.locator(f"[data-step={step}]")).to_have_attribute("data-state", "done", timeout=JOIN_MS)
    page.get_by_role("link", name="Open rented-one").click()
    expect(page.locator("h1")).to_contain_text("rented-one")

    utilisation = page.locator("[data-r=utilization_percent]").first
    expect(utilisation).to_have_text("12", timeout=MOVE_MS)
    expect(page.locator("#live-state .word")).to_have_text("Live")
    simulated.set(utilization_percent=97)
    expect(utilisation).to_have_text("97", timeout=MOVE_MS)
    expect(last_value(page)).to_contain_text("97", timeout=MOVE_MS)

    page.locator("#live-state").click()
    expect(page.locator("#live-state .word")).to_have_text("Paused")
    simulated.set(utilization_percent=34)
    page.wait_for_timeout(8_000)
    expect(utilisation).to_have_text("97")
    page.locator("#live-state").click()
    expect(page.locator("#live-state .word")).to_have_text("Live", timeout=MOVE_MS)
    expect(utilisation).to_have_text("34", timeout=MOVE_MS)
    assert grave(page) == []

    page.locator("[popovertarget=menu-language]").click()
    page.locator("#menu-language").get_by_role("button", name="简体中文").click()
    expect(page.locator("html")).to_have_attribute("lang", re.compile("zh"))
    expect(page.get_by_role("link", name="机群", exact=True)).to_be_visible()
    page.locator("[popovertarget=menu-theme]").click()
    page.locator("#menu-theme [value=dark]").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    for path in ("/", "/fleet/?tab=gpus", "/join/"):
        page.goto(path)
        assert grave(page) == [], path
