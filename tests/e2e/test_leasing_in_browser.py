"""A person adds an account in a real browser, orders a machine, watches it come, stops it, ends it, and it is gone."""

import contextlib
import json
import re
import shutil

import pytest

from tests.e2e.running import RunningPanel, wait_until

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no browser was driven")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
GRAVE = {"serious", "critical"}
PATIENCE_MS = 60_000

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(600),
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed: no browser was driven"),
]
expect = sync_api.expect


@pytest.fixture(scope="module")
def panel():
    with RunningPanel("--no-agent") as running:
        yield running


@pytest.fixture
def page(panel):
    """A window on the panel that the tests share."""
    with window(panel) as page:
        yield page


@contextlib.contextmanager
def window(panel):
    """Open a window, logged in as the admin; faults of its scripts fail the test."""
    faults = []
    with sync_api.sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        context = browser.new_context(base_url=panel.url, viewport={"width": 1280, "height": 900}, locale="en-GB")
        context.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: message.type == "error" and faults.append(message.text))
        page.goto("/login/?next=/providers/")
        page.fill("#id_username", "admin")
        page.fill("#id_password", panel.password)
        page.keyboard.press("Enter")
        yield page
        browser.close()
    assert faults == []


def grave(page):
    """Return what axe finds that stops people."""
    report = json.loads(json.dumps(axe.Axe().run(page).response))
    return [(one["id"], one["nodes"][0]["html"]) for one in report["violations"] if one["impact"] in GRAVE]


def add_an_account(page):
    """From the empty page to an account that was asked."""
    expect(page.locator("main")).to_contain_text("No account at a provider yet")
    page.get_by_role("link", name="Try it with the simulated provider").click()
    page.fill("[name=name]", "trial")
    page.fill("[name=option_boot_seconds]", "5")
    assert grave(page) == []
    page.get_by_role("button", name="Check and add").click()
    expect(page.locator("#provider-status")).to_contain_text("What this key may do")
    expect(page.locator("#provider-status .pill .word")).to_have_text("OK")
    assert grave(page) == []


def order(page):
    """Compare, plan, confirm, and watch the operation run to its end without a reload."""
    page.get_by_role("link", name="Its offers").click()
    row = page.locator("tbody tr", has_text="H100 SXM 80GB").filter(has_text="¥17.50").first
    expect(row).to_be_visible()
    page.locator("[data-pick]").first.check()
    expect(page.locator("[data-picked]").first).to_have_text("1")
    assert grave(page) == []
    row.get_by_role("link", name=re.compile("Order")).click()
    page.fill("[name=name]", "trainer")
    assert grave(page) == []
    page.get_by_role("button", name="Review the order").click()
    page.get_by_role("button", name="Order for ¥17.50 per hour").dblclick()
    page.wait_for_url("**/operations/*/")
    page.evaluate("window.stayed = true")
    expect(page.locator("#operation-status .pill .word")).to_have_text("Succeeded")
    expect(page.locator("[data-step=boot]")).to_have_attribute("data-state", "done")
    assert page.evaluate("window.stayed") is True
    assert grave(page) == []


def watched(page, word):
    """See an operation's end, then the lease in its new state."""
    page.wait_for_url("**/operations/*/")
    expect(page.locator("#operation-status .pill .word")).to_have_text("Succeeded")
    page.get_by_role("link", name="Open the lease").click()
    expect(page.locator("#lease-status .pill .word")).to_have_text(word)


def stop_and_end(page):
    """Stop it, see what that saves, end it by its name."""
    page.get_by_role("link", name="Open the lease").click()
    page.locator("#lease-status [data-dialog=act-stop]").click()
    expect(page.locator("#act-stop")).to_contain_text("Stopped, only its disk goes on costing.")
    expect(page.locator("#act-stop").get_by_role("button", name="Cancel")).to_be_focused()
    assert grave(page) == []
    page.locator("#act-stop [data-confirm]").click()
    watched(page, "Stopped")
    name = page.locator("h1").inner_text()
    page.locator("#lease-status [data-dialog=act-terminate]").click()
    expect(page.locator("#act-terminate [data-confirm]")).to_be_disabled()
    page.fill("#act-terminate [name=typed_name]", name)
    page.locator("#act-terminate [data-confirm]").click()
    watched(page, "Terminated")
    return name


def test_a_machine_is_ordered_stopped_and_ended_from_the_pages():
    with RunningPanel("--no-agent") as panel, window(panel) as page:  # an empty one, whatever the others do to theirs
        add_an_account(page)
        order(page)
        assert len(panel.client().get("/api/v1/leases/").json()["results"]) == 1  # a double click orders once
        name = stop_and_end(page)
        page.goto("/leases/")
        expect(page.locator("main")).to_contain_text("Nothing is rented")
        page.goto("/leases/?show=ended")
        expect(page.locator("tbody")).to_contain_text(name)


def seed(api):
    """See to it that there is an account with a lease and an operation, whether or not the story came before."""
    if api.get("/api/v1/accounts/").json()["results"]:
        return
    account = api.post("/api/v1/accounts/", json={"name": "seeded", "kind": "simulated"}).json()["id"]
    offers = wait_until(lambda: api.get("/api/v1/offers/").json()["results"], seconds=60, what="Offers")
    body = {"account": account, "offer": offers[0]["id"], "name": "seeded"}
    assert api.post("/api/v1/orders/", json=body).status_code == 202


PAGES = (
    "/providers/", "/providers/new/", "/providers/new/?kind=aliyun", "/providers/1/", "/providers/1/edit/", "/offers/",
    "/offers/?model=nothing", "/operations/", "/operations/1/", "/leases/?show=all", "/leases/new/", "/leases/1/",
    "/drift/", "/exchange-rates/", "/offers/1/order/", "/offers/compare/?offer=1&offer=2", "/leases/bulk/?act=end&lease=1",
    "/leases/bulk/?act=stop&lease=1", "/servers/1/", "/",
)  # fmt: skip


@pytest.mark.parametrize("language", ["en", "zh-hans"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_of_what_is_rented_stop_nobody_in_both_languages_and_themes(page, panel, language, scheme):
    seed(panel.client())
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 390, "height": 844} if scheme == "dark" else {"width": 1280, "height": 900})
    page.goto("/settings/")
    page.select_option("#id_language", language)
    page.locator("main form").first.get_by_role("button").first.click()
    expect(page.locator("html")).to_have_attribute("lang", language)
    for path in PAGES:
        page.goto(path)
        assert grave(page) == [], path
        wide = page.locator("html").evaluate("e => e.scrollWidth - e.clientWidth")
        assert wide <= 0, f"{path} overflows by {wide} px"
