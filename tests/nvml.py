"""pynvml, unmodified, on a simulated server in this process."""

import ctypes
import os
from contextlib import contextmanager

import pynvml


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
