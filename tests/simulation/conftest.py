"""Servers that pynvml reads in this process."""

import pytest

from fleet.simulation.nvml import SimulatedHost
from tests.nvml import reading


@pytest.fixture
def host(tmp_path):
    return SimulatedHost.create(tmp_path / "server.nvml")


@pytest.fixture
def nvml(library, host):
    """pynvml reading `host`; the test initialises it, when its cards are in."""
    with reading(library, host) as module:
        yield module
