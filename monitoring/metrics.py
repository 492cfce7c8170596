"""The catalogue of metrics: the one list of names, units and order that store, API, charts and live frames share.

`GPU_METRICS`, `HOST_METRICS` and `ENGINE_METRICS` are in column order: append only, never reorder. All values are stored as
4-byte floats (24 bits of mantissa: memory is exact to 16 KiB on a 140 GB card), null where the card gave none.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Metric:
    """One time series of a subject. unit: percent, bytes, watts, celsius, mhz, bytes_per_second, load, requests or
    per_second.
    """

    name: str
    unit: str
    minimum: float = 0.0
    maximum: float = 1e15


GPU_METRICS: Final = (
    Metric("utilization_percent", "percent", maximum=100),
    Metric("memory_busy_percent", "percent", maximum=100),
    Metric("memory_used_bytes", "bytes", maximum=1e13),
    Metric("power_watts", "watts", maximum=1e5),
    Metric("energy_power_watts", "watts", maximum=1e5),
    Metric("temperature_celsius", "celsius", minimum=-50, maximum=250),
    Metric("memory_temperature_celsius", "celsius", minimum=-50, maximum=250),
    Metric("sm_clock_mhz", "mhz", maximum=1e5),
    Metric("memory_clock_mhz", "mhz", maximum=1e5),
    Metric("encoder_percent", "percent", maximum=100),
    Metric("decoder_percent", "percent", maximum=100),
    Metric("fan_percent", "percent", maximum=200),
    Metric("pcie_tx_bytes_per_second", "bytes_per_second"),
    Metric("pcie_rx_bytes_per_second", "bytes_per_second"),
    Metric("nvlink_tx_bytes_per_second", "bytes_per_second"),
    Metric("nvlink_rx_bytes_per_second", "bytes_per_second"),
    Metric("throttled_percent", "percent", maximum=100),
    Metric("power_capped_percent", "percent", maximum=100),
    Metric("sm_activity_percent", "percent", maximum=100),
    Metric("tensor_activity_percent", "percent", maximum=100),
    Metric("dram_activity_percent", "percent", maximum=100),
)

HOST_METRICS: Final = (
    Metric("cpu_percent", "percent", maximum=100),
    Metric("memory_used_bytes", "bytes", maximum=1e15),
    Metric("swap_used_bytes", "bytes", maximum=1e15),
    Metric("load_1m", "load", maximum=1e6),
    Metric("disk_used_bytes", "bytes", maximum=1e17),
    Metric("disk_read_bytes_per_second", "bytes_per_second"),
    Metric("disk_write_bytes_per_second", "bytes_per_second"),
    Metric("network_receive_bytes_per_second", "bytes_per_second"),
    Metric("network_transmit_bytes_per_second", "bytes_per_second"),
    Metric("agent_cpu_percent", "percent", maximum=10_000),
    Metric("agent_memory_bytes", "bytes", maximum=1e12),
)

# What one replica's engine tells of itself; requests of the agent that looks after it are among the others and counted apart.
ENGINE_METRICS: Final = (
    Metric("running", "requests", maximum=1e7),
    Metric("waiting", "requests", maximum=1e7),
    Metric("kv_cache_percent", "percent", maximum=100),
    Metric("preemptions_per_second", "per_second", maximum=1e9),
    Metric("prompt_tokens_per_second", "per_second", maximum=1e9),
    Metric("generation_tokens_per_second", "per_second", maximum=1e9),
    Metric("requests_per_second", "per_second", maximum=1e7),
    Metric("own_requests_per_second", "per_second", maximum=1e7),
)

GPU_METRIC_INDEX: Final = {metric.name: index for index, metric in enumerate(GPU_METRICS)}
HOST_METRIC_INDEX: Final = {metric.name: index for index, metric in enumerate(HOST_METRICS)}
