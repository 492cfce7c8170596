"""A prober that may look at loopback, as the jobs have it."""

import pytest

from fleet.agent.probes.addresses import Rules
from fleet.agent.probes.prober import Prober
from fleet.agent.probes.target import Target
from tests.faults.engine import Engine
from tests.probes.servers import raw_server


@pytest.fixture
async def prober():
    async with Prober("here", rules=Rules(is_private_allowed=True)) as made:
        yield made


@pytest.fixture
def engine():
    """Return a context manager: an engine of known behaviour, and where it listens."""
    return lambda **settings: raw_server(Engine(**settings).serve)


@pytest.fixture
def target():
    return lambda port, **others: Target(**{"id": 1, "kind": "http", "host": "127.0.0.1", "port": port, **others})
