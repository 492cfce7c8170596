"""GPU performance monitoring (Hopper and later): how many SMs, how much tensor work, how much memory traffic there was.

It works under MIG too: an instance's figures are shares of the instance.

Unlike profiling counters it takes no lock that debuggers and profilers want.
"""

import math
from contextlib import suppress
from functools import partial
from typing import Any, Final

import pynvml

from fleet.agent.nvml.readings import Readings

METRICS: Final = {
    "sm_activity_percent": pynvml.NVML_GPM_METRIC_SM_UTIL,
    "tensor_activity_percent": pynvml.NVML_GPM_METRIC_ANY_TENSOR_UTIL,
    "dram_activity_percent": pynvml.NVML_GPM_METRIC_DRAM_BW_UTIL,
}


class GpmReader:
    """Means between two calls of `read`; two buffers of the library take turns as the older and the newer sample.

    handle: of the card, also for an instance of it, which is named by gpu_instance.
    """

    def __init__(self, handle: Any, readings: Readings, *, gpu_instance: int | None = None) -> None:
        self._handle = handle
        self._readings = readings
        self._take = (
            partial(pynvml.nvmlGpmSampleGet, handle)
            if gpu_instance is None
            else partial(pynvml.nvmlGpmMigSampleGet, handle, gpu_instance)
        )
        self._is_supported: bool | None = None
        self._query: Any = None
        self._older: Any = None
        self._newer: Any = None
        self._has_newer = False

    def read(self) -> dict[str, float]:
        """Return metric → percent since the call before; nothing at the first call and on cards without it."""
        if self._is_supported is None:
            self._is_supported = self._prepare()
        if not self._is_supported:
            return {}
        had_newer, self._has_newer = self._has_newer, False
        if self._readings.ask("_gpm_sample", self._take, self._older) is None:
            return {}
        self._older, self._newer, self._has_newer = self._newer, self._older, True
        if not had_newer:
            return {}
        self._query.sample1, self._query.sample2 = self._older, self._newer
        if self._readings.ask("_gpm_metrics", pynvml.nvmlGpmMetricsGet, self._query) is None:
            return {}
        return self._values()

    def _values(self) -> dict[str, float]:
        values: dict[str, float] = {}
        for position, name in enumerate(METRICS):
            answer = self._query.metrics[position]
            if answer.nvmlReturn != pynvml.NVML_SUCCESS:
                self._readings.refused(name, answer.nvmlReturn)
            elif math.isfinite(answer.value):
                self._readings.answered(name)
                values[name] = round(answer.value, 2)
        return values

    def close(self) -> None:
        """Give the buffers back; the library must still be initialised."""
        self._is_supported = False
        for sample in filter(None, (self._older, self._newer)):
            with suppress(pynvml.NVMLError):
                pynvml.nvmlGpmSampleFree(sample)
        self._older = self._newer = None

    def _prepare(self) -> bool:
        try:
            is_supported = bool(pynvml.nvmlGpmQueryDeviceSupport(self._handle).isSupportedDevice)
            if is_supported:
                self._older, self._newer = pynvml.nvmlGpmSampleAlloc(), pynvml.nvmlGpmSampleAlloc()
        except pynvml.NVMLError as error:
            self._refuse_all(error.value)
            return False
        if not is_supported:
            self._refuse_all(pynvml.NVML_ERROR_NOT_SUPPORTED)
            return False
        self._query = pynvml.c_nvmlGpmMetricsGet_t()
        self._query.version = pynvml.NVML_GPM_METRICS_GET_VERSION
        self._query.numMetrics = len(METRICS)
        for position, number in enumerate(METRICS.values()):
            self._query.metrics[position].metricId = number
        return True

    def _refuse_all(self, code: int) -> None:
        for name in METRICS:
            self._readings.refused(name, code)
