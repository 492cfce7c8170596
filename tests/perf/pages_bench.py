"""Pages: how soon the Fleet page of 1,000 and of 4,000 cards is answered, and painted in Chromium, by a whole panel."""

import os
import shutil
import statistics
import subprocess
import sys
import time

import httpx

from tests.e2e.running import ROOT, RunningPanel
from tests.perf.harness import Row

SIZES = (1_000, 4_000)
FLOOR = "/settings/"  # a page without any card: what Chromium takes on this machine, whatever the panel does
PATHS = {"servers": "/fleet/", "GPUs": "/fleet/?tab=gpus", "overview": "/"}
RUNS = 3
GOAL_PAINT_SECONDS = 1.5
PAINT = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def fill(panel, cards):
    """Bring the panel's fleet up to a number of cards."""
    environment = {
        **panel.environment,
        "DATABASE_URL": panel.database_url,
        "DJANGO_SETTINGS_MODULE": "panel.settings",
        "PYTHONPATH": str(ROOT),
    }
    subprocess.run(
        [sys.executable, "-m", "tests.perf.pages_fleet", str(cards)], cwd=ROOT, env=os.environ | environment, check=True
    )


def logged_in(panel):
    """Return a client with the session of the admin."""
    client = httpx.Client(base_url=panel.url, timeout=60, follow_redirects=True)
    client.get("/login/")
    token = client.cookies["csrftoken"]
    form = {"username": "admin", "password": panel.password, "csrfmiddlewaretoken": token}
    client.post("/login/", data=form, headers={"Referer": f"{panel.url}/login/"}).raise_for_status()
    return client


def answer_seconds(panel, client, path):
    """Return the median time until the whole answer is there, the mean processor time of the web process, the bytes."""
    taken, web = [], panel.child("web")
    client.get(path).raise_for_status()  # what a process learns once
    before = web.cpu_times()
    for _ in range(RUNS):
        start = time.perf_counter()
        answer = client.get(path).raise_for_status()
        taken.append(time.perf_counter() - start)
    after = web.cpu_times()
    work = (after.user + after.system - before.user - before.system) / RUNS
    return statistics.median(taken), work, len(answer.content)


def paint_seconds(browser, client, panel, path):
    """Return the median time until Chromium paints the first content, with the styles and scripts of an earlier visit."""
    context = browser.new_context(base_url=panel.url, viewport={"width": 1440, "height": 900})
    context.add_cookies([{"name": name, "value": value, "url": panel.url} for name, value in client.cookies.items()])
    page = context.new_page()
    taken = []
    for _ in range(RUNS + 1):
        page.goto(path, wait_until="load")
        page.wait_for_function(f"({PAINT})() !== null")
        taken.append(page.evaluate(PAINT) / 1000)
    context.close()
    return statistics.median(taken[1:])


def measure(panel, browser):
    """Return the rows of every size and page."""
    client, rows = logged_in(panel), []
    first: dict[str, float] = {}
    floor = None if browser is None else paint_seconds(browser, client, panel, FLOOR)
    if floor is not None:
        rows.append(Row("settings: first paint", floor, "s", note="without any card"))
    for cards in SIZES:
        fill(panel, cards)
        for name, path in PATHS.items():
            seconds, work, size = answer_seconds(panel, client, path)
            beside = first.setdefault(name, seconds)
            note = f"{work:.3f} s of processor, {size / 1000:,.0f} kB"
            peer = f"{SIZES[0]:,} cards" if cards != SIZES[0] else ""
            ratio = seconds / beside if peer else None
            rows.append(Row(f"{name}, {cards:,} cards: answer", seconds, "s", peer, ratio, note=note))
            if browser is not None:
                paint = paint_seconds(browser, client, panel, path)
                goal = f"<= {GOAL_PAINT_SECONDS} s"
                rows.append(
                    Row(f"{name}, {cards:,} cards: first paint", paint, "s", "settings", paint / floor, goal=goal)
                )
    if browser is None:
        rows.append(Row("first paint", None, "s", note="Chromium or playwright is missing: nothing was painted"))
    return rows


def run(_out):
    """Measure on a panel of its own."""
    with RunningPanel("--no-agent") as panel:
        try:
            from playwright.sync_api import sync_playwright
        except ImportError:
            return measure(panel, None)
        if CHROMIUM is None:
            return measure(panel, None)
        with sync_playwright() as tools:
            browser = tools.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
            try:
                return measure(panel, browser)
            finally:
                browser.close()
