"""A panel, agents with simulated cards, and a CUDA library that copies within the host's memory."""

import itertools
from pathlib import Path

import pytest

from fleet.simulation.nvml import SimulatedHost
from fleet.simulation.nvml.build import compile_c
from tests.scenarios.running import Panel, Story

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def cuda(tmp_path_factory):
    """The folder of a libcuda.so.1 with one card, whose UUID is CUDA_UUID (without `GPU-`)."""
    target = tmp_path_factory.mktemp("cuda") / "libcuda.so.1"
    compile_c([Path(__file__).parent / "libcuda.c"], target, "-std=gnu11", "-fPIC", "-shared")
    return target.parent


@pytest.fixture(scope="session")
def panel(tmp_path_factory):
    with Panel(tmp_path_factory.mktemp("panel")) as running:
        yield running


@pytest.fixture
def host(tmp_path):
    """An empty simulated server."""
    return SimulatedHost.create(tmp_path / "rig.nvml")


@pytest.fixture
def rig(panel, host, library, tmp_path):
    """Return a function that joins a server with the cards of `host` and starts its agent."""
    stories = []

    def begin(**environment):
        environment |= {"FLEETDECK_NVML_LIBRARY": str(library), "FLEETDECK_SIMULATION_FILE": str(host.path)}
        stories.append(Story(panel, f"box-{next(_numbers):02d}", tmp_path, environment))
        return stories[-1]

    yield begin
    for story in stories:
        story.stop()
