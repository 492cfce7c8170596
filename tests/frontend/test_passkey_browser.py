"""Passkeys in a real Chromium with a virtual authenticator: added in the settings, asked for at the log-in."""

import re

import pytest
from django.core.cache import cache

from panel.accounts.models import Passkey
from tests.accounts.people import PASSWORD
from tests.frontend.browser import GRAVE, axe, chromium, expect, pytestmark, window

__all__ = ["chromium", "pytestmark", "window"]  # fixtures and marks of the shell's tests, used here by name

PATIENCE_MS = 30_000  # passwords are slow to check on a busy machine
AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


def plug_in(page):
    """Give the page an authenticator; returns what switches its finger on and off."""
    tools = page.context.new_cdp_session(page)
    tools.send("WebAuthn.enable")
    added = tools.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})

    def verify(is_verified):
        told = {"authenticatorId": added["authenticatorId"], "isUserVerified": is_verified}
        tools.send("WebAuthn.setUserVerified", told)

    return verify


@pytest.fixture
def settings_page(window, transactional_db):
    cache.clear()
    page = window("/settings/second-factor/", role="viewer")
    return page, plug_in(page)


def add(page, name):
    page.locator("#passkey_name").fill(name)
    page.locator("#passkey_password").fill(PASSWORD)
    page.get_by_role("button", name="Add a passkey").click()


def log_in_with_password(page, people):
    page.locator("[popovertarget=menu-user]").click()
    page.get_by_role("button", name="Log out").click()
    page.locator("#id_username").fill(people["viewer"].username)
    page.locator("#id_password").fill(PASSWORD)
    page.keyboard.press("Enter")


def test_somebody_adds_a_passkey_and_logs_in_with_it(settings_page, people):
    page, verify = settings_page
    add(page, "work laptop")
    expect(page.get_by_role("link", name="work laptop")).to_be_visible(timeout=PATIENCE_MS)
    assert [found for found in axe.Axe().run(page).response["violations"] if found["impact"] in GRAVE] == []

    add(page, "the same again")
    problem = page.locator("[data-passkey-error]")
    expect(problem).to_contain_text("has a passkey for this account already", timeout=PATIENCE_MS)

    log_in_with_password(page, people)
    use = page.get_by_role("button", name="Use a passkey")
    expect(use).to_be_enabled(timeout=PATIENCE_MS)
    verify(False)
    use.click()
    expect(problem).to_contain_text("cancelled, or took too long", timeout=PATIENCE_MS)
    verify(True)
    use.click()
    page.wait_for_url(lambda address: "/login/" not in address)
    row = Passkey.objects.get()
    assert (row.rp_id, row.sign_count > 0) == ("localhost", True)

    page.goto("/settings/second-factor/")
    page.get_by_role("link", name="work laptop").click()
    page.locator("#id_password").fill(PASSWORD)
    page.get_by_role("button", name="Remove").click()
    expect(page.locator(".toast")).to_contain_text("work laptop is removed.", timeout=PATIENCE_MS)
    assert not Passkey.objects.exists()


def test_a_browser_without_a_script_is_told_nothing_false(window, people):
    page = window("/settings/second-factor/", role="viewer", java_script_enabled=False)
    expect(page.get_by_role("button", name="Add a passkey")).to_be_disabled()
    assert re.search(r"/settings/second-factor/", page.url)
