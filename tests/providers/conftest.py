"""Fixtures of the providers' own tests."""

import pytest


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    """Calls are not spaced: fakes have no limits unless a test sets some."""
    monkeypatch.setattr("fleet.providers.http.Spacing.wait_for_turn", lambda *_: None)
