"""The pages of the API's description in a real Chromium, under the panel's own content security policy."""

import json
import shutil

import pytest
from playwright import sync_api as playwright

from tests.accounts.people import PASSWORD, person

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        CHROMIUM is None, reason="Chromium is not installed: the API's pages were not opened in a browser"
    ),
]


@pytest.fixture
def page(transactional_db, live_server):
    """A page of the panel, where vera may log in; whatever the policy refused, or a script broke on, fails the test.

    Nothing asks the database while Playwright runs: its event loop in this thread would make Django open another connection.
    """
    person("vera")
    faults = []
    with playwright.sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        opened = browser.new_page(base_url=live_server.url)
        opened.set_default_timeout(60_000)
        opened.on("pageerror", lambda error: faults.append(str(error)))
        opened.on("console", lambda message: message.type == "error" and faults.append(message.text))
        yield opened
        browser.close()
    assert faults == []


def test_the_description_is_read_and_tried_under_the_policy(page):
    page.goto("/login/?next=/api/docs/")
    page.fill("#id_username", "vera")
    page.fill("#id_password", PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url("**/api/docs/")
    page.locator("#operations-tag-servers").click()
    page.get_by_text("Show a server's series").wait_for()
    page.locator("#operations-tag-users").click()
    operation = page.locator("#operations-users-users_me_partial_update")
    operation.locator(".opblock-summary-control").click()
    operation.get_by_role("button", name="Try it out").click()
    operation.locator("textarea").fill(json.dumps({"theme": "dark"}))
    with page.expect_response("**/api/v1/users/me/") as answer:
        operation.get_by_role("button", name="Execute").click()
    assert answer.value.status == 200  # the session's cookie and its CSRF token were sent
    assert answer.value.json()["theme"] == "dark"
