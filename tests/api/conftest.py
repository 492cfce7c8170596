"""Clients of the API, one for each kind of caller."""

import pytest
from rest_framework.test import APIClient

from tests.accounts.people import person, token_client


@pytest.fixture
def viewer(db):
    return person("vera", "viewer")


@pytest.fixture
def operator(db):
    return person("otto", "operator")


@pytest.fixture
def admin(db):
    return person("ada", "admin")


@pytest.fixture
def stranger_client():
    return APIClient(enforce_csrf_checks=True)


@pytest.fixture
def viewer_client(viewer):
    return token_client(viewer)


@pytest.fixture
def operator_client(operator):
    return token_client(operator)


@pytest.fixture
def admin_client(admin):
    return token_client(admin)
