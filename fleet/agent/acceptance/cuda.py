"""As much of CUDA's driver library as a copy needs, through ctypes: no toolkit, no other package."""

import ctypes
import statistics
import time
import uuid
from collections.abc import Callable
from ctypes import byref, c_char, c_int, c_size_t, c_uint64, c_void_p
from typing import Any, Final

from fleet.agent.acceptance.found import CopyFound

LIBRARY: Final = "libcuda.so.1"
COPY_BYTES: Final = 64 * 1024 * 1024
ROUND_SECONDS: Final = 0.1


class CudaError(Exception):
    """A call failed, or there is no library. reason: a short code for the report."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Cuda:
    """The library, initialised. Raises CudaError where it cannot be had."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL(LIBRARY)
        except OSError:
            raise CudaError("no_cuda") from None
        self._call("cuInit", 0)

    def _call(self, name: str, *arguments: Any) -> None:
        try:
            status: int = getattr(self._library, name)(*arguments)
        except AttributeError:
            raise CudaError("cuda_too_old") from None
        if status != 0:
            raise CudaError(f"cuda_error_{status}")

    def devices(self) -> dict[str, int]:
        """Return UUID, as NVML writes it, → number of the device."""
        count = c_int()
        self._call("cuDeviceGetCount", byref(count))
        found = {}
        for number in range(count.value):
            device, raw = c_int(), (c_char * 16)()
            self._call("cuDeviceGet", byref(device), number)
            self._call("cuDeviceGetUuid", byref(raw), device)
            found[f"GPU-{uuid.UUID(bytes=bytes(raw))}"] = device.value
        return found

    def copy(self, device: int, seconds: float) -> CopyFound:
        """Copy pinned host memory to the card again and again for so long; the first round only warms up."""
        context = c_void_p()
        self._call("cuDevicePrimaryCtxRetain", byref(context), device)
        try:
            self._call("cuCtxSetCurrent", context)
            rates, took = self._with_buffers(lambda target, source: self._rounds(target, source, seconds))
        finally:
            self._call("cuDevicePrimaryCtxRelease_v2", device)
        return summary(rates, took)

    def _with_buffers(
        self, work: Callable[[c_uint64, c_void_p], tuple[list[float], float]]
    ) -> tuple[list[float], float]:
        target, source = c_uint64(), c_void_p()
        self._call("cuMemAlloc_v2", byref(target), c_size_t(COPY_BYTES))
        try:
            self._call("cuMemAllocHost_v2", byref(source), c_size_t(COPY_BYTES))
            try:
                return work(target, source)
            finally:
                self._call("cuMemFreeHost", source)
        finally:
            self._call("cuMemFree_v2", target)

    def _rounds(self, target: c_uint64, source: c_void_p, seconds: float) -> tuple[list[float], float]:
        """Return bytes per second of each round, and how long they took together."""
        rates: list[float] = []
        self._round(target, source)
        began = time.monotonic()
        while not rates or time.monotonic() - began < seconds:
            rates.append(self._round(target, source))
        return rates, time.monotonic() - began

    def _round(self, target: c_uint64, source: c_void_p) -> float:
        copied, began = 0, time.perf_counter()
        while (took := time.perf_counter() - began) < ROUND_SECONDS or not copied:
            self._call("cuMemcpyHtoD_v2", target, source, c_size_t(COPY_BYTES))
            copied += COPY_BYTES
        self._call("cuCtxSynchronize")
        took = time.perf_counter() - began
        return copied / took


def summary(rates: list[float], seconds: float) -> CopyFound:
    """Return what the rounds say together. Variation: population standard deviation divided by the mean."""
    mean = statistics.fmean(rates)
    return CopyFound(
        rounds=len(rates),
        seconds=round(seconds, 3),
        mean_bytes_per_second=mean,
        lowest_bytes_per_second=min(rates),
        variation=statistics.pstdev(rates, mean) / mean if mean > 0 else 0.0,
    )
