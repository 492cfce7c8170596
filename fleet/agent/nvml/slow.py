"""The slow tier: counters and flags that tell of a failing card; asked seldom, because some of these calls are dear."""

from typing import Any, Final

import pynvml

from fleet.agent import wire
from fleet.agent.nvml.fields import FieldReader
from fleet.agent.nvml.readings import Readings

ECC_COUNTERS: Final = {
    "ecc_corrected_volatile": (pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, pynvml.NVML_VOLATILE_ECC),
    "ecc_uncorrected_volatile": (pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC),
    "ecc_corrected_aggregate": (pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, pynvml.NVML_AGGREGATE_ECC),
    "ecc_uncorrected_aggregate": (pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_AGGREGATE_ECC),
}
RETIRED_PAGES: Final = {
    "retired_pages_single_bit": pynvml.NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS,
    "retired_pages_double_bit": pynvml.NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR,
}
FIELDS: Final = {
    "recovery_action": (pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, 0),
    "_nvlink_flit_errors": (pynvml.NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL, 0),
    "_nvlink_data_errors": (pynvml.NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL, 0),
    "_nvlink_replay_errors": (pynvml.NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL, 0),
    "_nvlink_recovery_errors": (pynvml.NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL, 0),
}


class SlowTier:
    """Reads the health of one card."""

    def __init__(self, handle: Any, readings: Readings, nvlink_links: int) -> None:
        self._handle = handle
        self._readings = readings
        self._nvlink_links = nvlink_links
        self._fields = FieldReader(handle, readings, FIELDS)

    def read(self) -> wire.GpuHealth:
        """Return the counters and flags of this moment. Raises CardLostError and StartOverError."""
        health = wire.GpuHealth()
        self._memory_errors(health)
        self._links(health)
        fields = self._fields.read()
        action = fields.pop("recovery_action", None)
        health.recovery_action = int(action) if action is not None else None
        health.nvlink_errors = int(sum(fields.values())) if fields else None
        ask, handle = self._readings.ask, self._handle
        health.enforced_power_limit_milliwatts = ask(
            "enforced_power_limit_milliwatts", pynvml.nvmlDeviceGetEnforcedPowerLimit, handle
        )
        health.persistence_mode = _flag(ask("persistence_mode", pynvml.nvmlDeviceGetPersistenceMode, handle))
        return health

    def _memory_errors(self, health: wire.GpuHealth) -> None:
        ask, handle = self._readings.ask, self._handle
        for name, (kind, counter) in ECC_COUNTERS.items():
            setattr(health, name, ask(name, pynvml.nvmlDeviceGetTotalEccErrors, handle, kind, counter))
        rows = ask("remapped_rows_correctable", pynvml.nvmlDeviceGetRemappedRows, handle)
        if rows is not None:
            health.remapped_rows_correctable, health.remapped_rows_uncorrectable = rows[0], rows[1]
            health.remapped_rows_pending, health.remapped_rows_failure = bool(rows[2]), bool(rows[3])
        for name, cause in RETIRED_PAGES.items():
            pages = ask(name, pynvml.nvmlDeviceGetRetiredPages, handle, cause)
            setattr(health, name, len(pages) if pages is not None else None)
        health.retired_pages_pending = _flag(
            ask("retired_pages_pending", pynvml.nvmlDeviceGetRetiredPagesPendingStatus, handle)
        )

    def _links(self, health: wire.GpuHealth) -> None:
        ask, handle = self._readings.ask, self._handle
        health.pcie_generation = ask("pcie_generation", pynvml.nvmlDeviceGetCurrPcieLinkGeneration, handle)
        health.pcie_width = ask("pcie_width", pynvml.nvmlDeviceGetCurrPcieLinkWidth, handle)
        health.pcie_replays = ask("pcie_replays", pynvml.nvmlDeviceGetPcieReplayCounter, handle)
        if self._nvlink_links:
            states = [
                ask("nvlink_active_links", pynvml.nvmlDeviceGetNvLinkState, handle, link)
                for link in range(self._nvlink_links)
            ]
            known = [state for state in states if state is not None]
            health.nvlink_active_links = sum(bool(state) for state in known) if known else None


def _flag(value: int | None) -> bool | None:
    return None if value is None else bool(value)
