"""The simulated library, built once per run, and servers that pynvml reads in this process."""

import ctypes
import os
from contextlib import contextmanager

import pynvml
import pytest

from fleet.simulation.nvml import SimulatedHost, build_library


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    return build_library(tmp_path_factory.mktemp("simulated-nvml"))


@pytest.fixture(scope="session")
def legacy_library(tmp_path_factory):
    return build_library(tmp_path_factory.mktemp("simulated-nvml"), legacy=True)


@contextmanager
def reading(library, host):
    """Let pynvml, unmodified, read this server in this process; not initialised yet."""
    before = pynvml.nvmlLib, dict(pynvml._nvmlGetFunctionPointer_cache), os.environ.get("FLEETDECK_SIMULATION_FILE")
    pynvml.nvmlLib = ctypes.CDLL(str(library))
    pynvml._nvmlGetFunctionPointer_cache.clear()
    os.environ["FLEETDECK_SIMULATION_FILE"] = str(host.path)
    try:
        yield pynvml
    finally:
        while pynvml.nvmlLib.nvmlShutdown() == pynvml.NVML_SUCCESS:
            pass
        pynvml.nvmlLib = before[0]
        pynvml._nvmlGetFunctionPointer_cache.clear()
        pynvml._nvmlGetFunctionPointer_cache.update(before[1])
        if before[2] is None:
            del os.environ["FLEETDECK_SIMULATION_FILE"]
        else:
            os.environ["FLEETDECK_SIMULATION_FILE"] = before[2]


@pytest.fixture
def host(tmp_path):
    return SimulatedHost.create(tmp_path / "server.nvml")


@pytest.fixture
def nvml(library, host):
    """pynvml reading `host`; the test initialises it, when its cards are in."""
    with reading(library, host) as module:
        yield module
