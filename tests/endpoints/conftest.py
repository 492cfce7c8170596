"""A machine with two cards, and clients of the API."""

import pytest

from tests.accounts.people import person, token_client
from tests.endpoints.world import Site


@pytest.fixture
def site(db):
    return Site()


@pytest.fixture
def operator_client(db):
    return token_client(person("otto", "operator"))


@pytest.fixture
def viewer_client(db):
    return token_client(person("vera", "viewer"))
