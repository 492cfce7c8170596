"""An endpoint that serves, and the machine it serves on."""

import pytest

from tests.endpoints.world import Site, deployed, settle


@pytest.fixture
def site():
    return Site("rack-1", cards=4)


@pytest.fixture
def endpoint(site):
    made = deployed("chat")
    settle(sites=[site])
    return made
