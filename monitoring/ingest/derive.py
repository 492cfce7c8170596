"""From readings in NVML's units to the metrics of the catalogue. Pure, on whole arrays: one call serves many reports.

A counter becomes a rate against the reading before it, over the agent's monotonic clock (Fleetdeck never trusts wall
clocks for durations). A counter that fell, a card that was re-initialised, or no reading before: no rate for that step.
A value that no card can have (DCGM's blanks, a counter of all ones, 250 % load) is no value; it is never an error.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fleet.agent.wire import GpuSample, HostSample
from fleet.agent.wire_engines import EngineSample
from monitoring.metrics import ENGINE_METRICS, GPU_METRICS, HOST_METRICS, Metric

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Flags = NDArray[np.bool_]

MAX_STEP_MS: Final = (
    300_000  # a rate over a longer step would stand at one point of the chart and be about another time
)
HARDWARE_SLOWDOWN: Final = 0x8 | 0x20 | 0x40 | 0x80  # hardware, software thermal, hardware thermal, power brake
SOFTWARE_POWER_CAP: Final = 0x4
# DCGM's "not available" as int32, as float and (with every larger counter) as int64
_BLANKS: Final = ((2_147_483_632.0, 2_147_483_635.0), (140_737_488_355_328.0, 140_737_488_355_331.0))
_COUNTER_LIMIT: Final = 2.0**53
_QUIET: Final = np.errstate(
    invalid="ignore", over="ignore", divide="ignore"
)  # what comes of NaN and infinity is nothing


@dataclass(frozen=True, slots=True)
class Value:
    """The metric is a reading times `scale`."""

    reading: str
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Rate:
    """The metric is the growth of a counter per millisecond, times `scale`; `ceiling` cuts jitter of the clocks."""

    reading: str
    scale: float = 1.0
    ceiling: float = np.inf


Sources = dict[str, Value | Rate]

_GPU_SOURCES: Final[Sources] = {
    "utilization_percent": Value("utilization_percent"),
    "memory_busy_percent": Value("memory_busy_percent"),
    "memory_used_bytes": Value("memory_used_bytes"),
    "power_watts": Value("power_milliwatts", 1e-3),
    "energy_power_watts": Rate("energy_millijoules"),  # mJ per ms are W
    "temperature_celsius": Value("temperature_celsius"),
    "memory_temperature_celsius": Value("memory_temperature_celsius"),
    "sm_clock_mhz": Value("sm_clock_mhz"),
    "memory_clock_mhz": Value("memory_clock_mhz"),
    "encoder_percent": Value("encoder_percent"),
    "decoder_percent": Value("decoder_percent"),
    "fan_percent": Value("fan_percent"),
    "pcie_tx_bytes_per_second": Rate("pcie_tx_bytes", 1e3),
    "pcie_rx_bytes_per_second": Rate("pcie_rx_bytes", 1e3),
    "nvlink_tx_bytes_per_second": Rate("nvlink_tx_kib", 1024e3),
    "nvlink_rx_bytes_per_second": Rate("nvlink_rx_kib", 1024e3),
    "throttled_percent": Rate("thermal_violation_ns", 1e-4, ceiling=100),  # ns per ms; 1e6 of them are 100 %
    "power_capped_percent": Rate("power_violation_ns", 1e-4, ceiling=100),
    "sm_activity_percent": Value("sm_activity_percent"),
    "tensor_activity_percent": Value("tensor_activity_percent"),
    "dram_activity_percent": Value("dram_activity_percent"),
}
_HOST_SOURCES: Final[Sources] = {
    "cpu_percent": Value("cpu_percent"),
    "memory_used_bytes": Value("memory_used_bytes"),
    "swap_used_bytes": Value("swap_used_bytes"),
    "load_1m": Value("load_1m"),
    "disk_used_bytes": Value("disk_used_bytes"),
    "disk_read_bytes_per_second": Rate("disk_read_bytes", 1e3),
    "disk_write_bytes_per_second": Rate("disk_write_bytes", 1e3),
    "network_receive_bytes_per_second": Rate("network_receive_bytes", 1e3),
    "network_transmit_bytes_per_second": Rate("network_transmit_bytes", 1e3),
    "agent_cpu_percent": Value("agent_cpu_percent"),
    "agent_memory_bytes": Value("agent_memory_bytes"),
}
_ENGINE_SOURCES: Final[Sources] = {
    "running": Value("running"),
    "waiting": Value("waiting"),
    "kv_cache_percent": Value("kv_cache_percent"),
    "preemptions_per_second": Rate("preemptions", 1e3),
    "prompt_tokens_per_second": Rate("prompt_tokens", 1e3),
    "generation_tokens_per_second": Rate("generation_tokens", 1e3),
    "requests_per_second": Rate("requests", 1e3),
    "own_requests_per_second": Rate("own_requests", 1e3),
}


class Plan:
    """A table of sources, laid out as index arrays, and its numbers as columns: one for each metric."""

    def __init__(self, metrics: tuple[Metric, ...], sources: Sources, fields: tuple[str, ...]) -> None:
        self.width = len(metrics)
        self.minimum = np.array([[metric.minimum] for metric in metrics], dtype=np.float32)
        self.maximum = np.array([[metric.maximum] for metric in metrics], dtype=np.float32)
        ordered = [sources[metric.name] for metric in metrics]
        is_value = [isinstance(source, Value) for source in ordered]
        self.value_out = np.flatnonzero(is_value)
        self.rate_out = np.flatnonzero(np.logical_not(is_value))
        self.value_in = np.array([fields.index(ordered[i].reading) for i in self.value_out])
        self.rate_in = np.array([fields.index(ordered[i].reading) for i in self.rate_out])
        self.value_scale = np.array([[ordered[i].scale] for i in self.value_out])
        rates = [source for source in ordered if isinstance(source, Rate)]
        self.rate_scale = np.array([[rate.scale] for rate in rates])
        self.rate_ceiling = np.array([[rate.ceiling] for rate in rates])


GPU_PLAN: Final = Plan(GPU_METRICS, _GPU_SOURCES, GpuSample.__struct_fields__)
HOST_PLAN: Final = Plan(HOST_METRICS, _HOST_SOURCES, HostSample.__struct_fields__)
ENGINE_PLAN: Final = Plan(ENGINE_METRICS, _ENGINE_SOURCES, EngineSample.__struct_fields__)
_MONOTONIC: Final = 1
_FIRST_READING: Final = 2
_REASONS: Final = GpuSample.__struct_fields__.index("clock_event_reasons")
_PERFORMANCE_STATE: Final = GpuSample.__struct_fields__.index("performance_state")
_METRIC_NAMES: Final = tuple(metric.name for metric in GPU_METRICS)
_BY_REASON: Final = (
    (
        _METRIC_NAMES.index("throttled_percent"),
        GpuSample.__struct_fields__.index("thermal_violation_ns"),
        HARDWARE_SLOWDOWN,
    ),
    (
        _METRIC_NAMES.index("power_capped_percent"),
        GpuSample.__struct_fields__.index("power_violation_ns"),
        SOFTWARE_POWER_CAP,
    ),
)


def blank_sentinels(readings: Floats) -> None:
    """Set readings that stand for "not available" to NaN, in place; the two times in front stay."""
    values = readings.T[_FIRST_READING:]
    blank = values >= _COUNTER_LIMIT
    for low, high in _BLANKS:
        blank |= (values >= low) & (values <= high)
    values[blank] = np.nan


def metrics_of(plan: Plan, readings: Floats, continues: Flags) -> Singles:
    """Return the metrics of each row, (rows × metrics), NaN where there is none.

    readings: (rows × fields of the wire's struct), NaN for None, sentinels blanked. continues: whether the row before is
    the same subject's reading before.
    """
    columns = readings.T  # as they came: whatever is done to one column runs through memory in one go
    out = np.full((plan.width, len(readings)), np.nan, dtype=np.float32)
    if not len(readings):
        return out.T
    out[plan.value_out] = columns[plan.value_in] * plan.value_scale
    step_ms = columns[_MONOTONIC, 1:] - columns[_MONOTONIC, :-1]
    step_ms[~(continues[1:] & (step_ms > 0) & (step_ms <= MAX_STEP_MS))] = np.nan
    counters = columns[plan.rate_in]
    rates = (counters[:, 1:] - counters[:, :-1]) / step_ms * plan.rate_scale
    rates[rates < 0] = np.nan
    out[plan.rate_out, 1:] = np.minimum(rates, plan.rate_ceiling)
    out[(out < plan.minimum) | (out > plan.maximum)] = np.nan
    return np.ascontiguousarray(out.T)


@_QUIET
def gpu_metrics(readings: Floats, continues: Flags) -> tuple[Singles, NDArray[np.int32], NDArray[np.int16]]:
    """Return metrics, clock event reasons and performance states of GPU rows; -1 stands for none in the last two.

    A card without the counters of time throttled gets 0 or 100 from its reasons at that moment.
    """
    blank_sentinels(readings)
    out = metrics_of(GPU_PLAN, readings, continues)
    reasons = _whole(readings[:, _REASONS], 2**31 - 1).astype(np.int32)
    for metric, counter, bits in _BY_REASON:
        asks_reasons = np.isnan(readings[:, counter]) & (reasons >= 0)
        if asks_reasons.any():
            out[asks_reasons, metric] = np.where(reasons[asks_reasons] & bits, 100, 0)
    return out, reasons, _whole(readings[:, _PERFORMANCE_STATE], 15).astype(np.int16)


@_QUIET
def host_metrics(readings: Floats, continues: Flags) -> Singles:
    """Return the metrics of host rows."""
    blank_sentinels(readings)
    return metrics_of(HOST_PLAN, readings, continues)


@_QUIET
def engine_metrics(readings: Floats, continues: Flags) -> Singles:
    """Return the metrics of engines' rows. An engine that was started again counts from nothing: no rate for that step."""
    return metrics_of(ENGINE_PLAN, readings, continues)


def _whole(values: Floats, maximum: int) -> Floats:
    """Return values within 0 to maximum, -1 for all others."""
    return np.where((values >= 0) & (values <= maximum), values, -1.0)
