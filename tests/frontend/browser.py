"""A real Chromium on the panel, for the tests that drive one: windows of people, sockets answered by the test, axe."""

import json
import shutil
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections

from panel.core.clock import now
from tests.accounts.people import PASSWORD
from tests.fleet.factories import Machine, joined

playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: no page was opened in a browser"
)
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
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
