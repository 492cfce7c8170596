"""The fast tier: what moves from second to second, in as few calls as the card allows."""

from typing import Any, Final

import pynvml

from fleet.agent import clock, wire
from fleet.agent.nvml.facts import read_memory
from fleet.agent.nvml.fields import ALL_LINKS, FieldReader
from fleet.agent.nvml.gpm import GpmReader
from fleet.agent.nvml.readings import Readings

UNKNOWN_PERFORMANCE_STATE: Final = 32
# Not answered by a card that is divided into instances; only they have values then.
HIDDEN_BY_MIG: Final = frozenset(
    {"utilization_percent", "encoder_percent", "decoder_percent", "remapped_rows_correctable"}
)
# Names with an underscore are ways to a reading, not readings of their own.
FIELDS: Final = {
    "memory_temperature_celsius": (pynvml.NVML_FI_DEV_MEMORY_TEMP, 0),
    "energy_millijoules": (pynvml.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, 0),
    "power_violation_ns": (pynvml.NVML_FI_DEV_PERF_POLICY_POWER, 0),
    "thermal_violation_ns": (pynvml.NVML_FI_DEV_PERF_POLICY_THERMAL, 0),
    "pcie_tx_bytes": (pynvml.NVML_FI_DEV_PCIE_COUNT_TX_BYTES, 0),
    "pcie_rx_bytes": (pynvml.NVML_FI_DEV_PCIE_COUNT_RX_BYTES, 0),
    "nvlink_tx_kib": (pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, ALL_LINKS),
    "nvlink_rx_kib": (pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, ALL_LINKS),
    "_nvlink_tx_bytes": (pynvml.NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES, ALL_LINKS),
    "_nvlink_rx_bytes": (pynvml.NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES, ALL_LINKS),
}


class FastTier:
    """Takes one sample of one card at a time."""

    def __init__(self, handle: Any, readings: Readings) -> None:
        self._handle = handle
        self._readings = readings
        self._fields = FieldReader(handle, readings, FIELDS)
        self._gpm = GpmReader(handle, readings)
        self._pcie = PcieThroughput(handle, readings)

    def read(self, *, is_pcie_wanted: bool = False) -> wire.GpuSample:
        """Return the sample of this moment. Raises CardLostError and StartOverError.

        is_pcie_wanted: also ask calls that block 20 ms a direction, on cards that have no byte counters.
        """
        at = clock.now()
        sample = wire.GpuSample(at.at_ms, at.monotonic_ms)
        self._load(sample)
        self._power_and_heat(sample)
        self._counters(sample)
        if is_pcie_wanted and sample.pcie_tx_bytes is None:
            sample.pcie_tx_bytes, sample.pcie_rx_bytes = self._pcie.read(at)
        for name, value in self._gpm.read().items():
            setattr(sample, name, value)
        return sample

    def close(self) -> None:
        """Give back what the library holds for this card."""
        self._gpm.close()

    def _load(self, sample: wire.GpuSample) -> None:
        ask, handle = self._readings.ask, self._handle
        rates = ask("utilization_percent", pynvml.nvmlDeviceGetUtilizationRates, handle)
        if rates is not None:
            sample.utilization_percent, sample.memory_busy_percent = rates.gpu, rates.memory
        memory = read_memory(handle, self._readings)
        if memory is not None:
            sample.memory_used_bytes = memory.used
        encoder = ask("encoder_percent", pynvml.nvmlDeviceGetEncoderUtilization, handle)
        sample.encoder_percent = encoder[0] if encoder else None
        decoder = ask("decoder_percent", pynvml.nvmlDeviceGetDecoderUtilization, handle)
        sample.decoder_percent = decoder[0] if decoder else None

    def _power_and_heat(self, sample: wire.GpuSample) -> None:
        ask, handle = self._readings.ask, self._handle
        sample.power_milliwatts = ask("power_milliwatts", pynvml.nvmlDeviceGetPowerUsage, handle)
        sample.temperature_celsius = self._readings.ask_newest(
            "temperature_celsius",
            lambda: pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU),
            lambda: pynvml.nvmlDeviceGetTemperatureV(handle, pynvml.NVML_TEMPERATURE_GPU),
        )
        clock_info = pynvml.nvmlDeviceGetClockInfo
        sample.sm_clock_mhz = ask("sm_clock_mhz", clock_info, handle, pynvml.NVML_CLOCK_SM)
        sample.memory_clock_mhz = ask("memory_clock_mhz", clock_info, handle, pynvml.NVML_CLOCK_MEM)
        sample.fan_percent = ask("fan_percent", pynvml.nvmlDeviceGetFanSpeed, handle)
        state = ask("performance_state", pynvml.nvmlDeviceGetPerformanceState, handle)
        sample.performance_state = state if state != UNKNOWN_PERFORMANCE_STATE else None
        sample.clock_event_reasons = self._readings.ask_newest(
            "clock_event_reasons",
            lambda: pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle),
            lambda: pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle),  # its name before driver 535
        )

    def _counters(self, sample: wire.GpuSample) -> None:
        for name, value in self._fields.read().items():
            if name == "_nvlink_tx_bytes":
                sample.nvlink_tx_kib = int(value) // 1024
            elif name == "_nvlink_rx_bytes":
                sample.nvlink_rx_kib = int(value) // 1024
            else:
                setattr(sample, name, int(value))


class PcieThroughput:
    """Traffic of cards without byte counters: a rate that takes the driver 20 ms to measure, added up to a counter."""

    def __init__(self, handle: Any, readings: Readings) -> None:
        self._handle = handle
        self._readings = readings
        self._before: clock.Moment | None = None
        self._sent = 0
        self._received = 0

    def read(self, at: clock.Moment) -> tuple[int | None, int | None]:
        """Return bytes sent and received since the first call, as if the measured rate had held between calls."""
        call = pynvml.nvmlDeviceGetPcieThroughput
        sent = self._readings.ask("_pcie_tx", call, self._handle, pynvml.NVML_PCIE_UTIL_TX_BYTES)
        received = self._readings.ask("_pcie_rx", call, self._handle, pynvml.NVML_PCIE_UTIL_RX_BYTES)
        if sent is None or received is None:
            self._before = None
            return None, None
        milliseconds = at.monotonic_ms - self._before.monotonic_ms if self._before else 0
        self._before = at
        self._sent += sent * 1024 * milliseconds // 1000
        self._received += received * 1024 * milliseconds // 1000
        return self._sent, self._received
