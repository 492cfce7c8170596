"""Loading NVIDIA's library and asking it what it is."""

import ctypes
import os
import re
from pathlib import Path
from typing import Final

import pynvml

LIBRARY_VARIABLE: Final = "FLEETDECK_NVML_LIBRARY"
KERNEL_MODULE_VERSION: Final = Path("/proc/driver/nvidia/version")
_MODULE_VERSION: Final = re.compile(r"Kernel Module(?: for \S+)?\s+(\d+(?:\.\d+)+)")
_LIBRARY_VERSION: Final = re.compile(r"libnvidia-ml\.so\.(\d+(?:\.\d+)+)")


def load() -> None:
    """Load the library named in the environment, if one is and none is loaded; else pynvml looks for the system's.

    Raises pynvml.NVMLError (LIBRARY_NOT_FOUND).
    """
    path = os.environ.get(LIBRARY_VARIABLE)
    if path and pynvml.nvmlLib is None:
        try:
            pynvml.nvmlLib = ctypes.CDLL(path)
        except OSError as error:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND) from error


def driver_version() -> str:
    """Return the driver's version, empty when it does not tell."""
    return _text(pynvml.nvmlSystemGetDriverVersion)


def nvml_version() -> str:
    """Return the library's version, empty when it does not tell."""
    return _text(pynvml.nvmlSystemGetNVMLVersion)


def cuda_version() -> str:
    """Return the newest CUDA that the driver serves, as 13.1; by the call that needs no libcuda beside it."""
    try:
        number = int(pynvml.nvmlSystemGetCudaDriverVersion())
    except pynvml.NVMLError:
        return ""
    return f"{number // 1000}.{number % 1000 // 10}"


def kernel_module_version(path: Path = KERNEL_MODULE_VERSION) -> str:
    """Return the version of the kernel module that is loaded, empty when none is."""
    try:
        match = _MODULE_VERSION.search(path.read_text())
    except OSError:
        return ""
    return match[1] if match else ""


def loaded_library_version(maps: Path = Path("/proc/self/maps")) -> str:
    """Return the driver version in the file name of the library that this process has loaded, empty when it has none."""
    try:
        text = maps.read_text()
    except OSError:
        return ""
    match = _LIBRARY_VERSION.search(text)
    return match[1] if match else ""


def loaded_library_was_replaced(maps: Path = Path("/proc/self/maps")) -> bool:
    """Say whether the file of the loaded library is gone from disk: a new driver package has come."""
    try:
        lines = maps.read_text().splitlines()
    except OSError:
        return False
    return any("libnvidia-ml.so" in line and line.endswith("(deleted)") for line in lines)


def _text(call: object) -> str:
    try:
        return str(call())  # type: ignore[operator]
    except pynvml.NVMLError:
        return ""
