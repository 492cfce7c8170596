"""Clients of the API, one for each kind of caller."""

import pytest

from tests.accounts.people import person, token_client


@pytest.fixture
def viewer_client(db):
    return token_client(person("vera", "viewer"))


@pytest.fixture
def operator_client(db):
    return token_client(person("otto", "operator"))


@pytest.fixture
def admin_client(db):
    return token_client(person("ada", "admin"))
