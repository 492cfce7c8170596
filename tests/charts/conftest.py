"""Browsers of people with a role, and a fleet whose cards have been read."""

import pytest

from tests.frontend.conftest import ada, browser, no_attempts_counted, people

__all__ = ["ada", "browser", "no_attempts_counted", "people"]


@pytest.fixture
def viewer(browser):
    """The browser of somebody who may look."""
    return browser("viewer")


@pytest.fixture
def operator(browser):
    """The browser of somebody who may manage servers."""
    return browser("operator")
