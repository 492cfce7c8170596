"""Rows of the Fleet page for spreadsheets: base units, their names in the header, nothing formatted."""

from typing import Final

from frontend.fleet_list import Row, Tab
from frontend.fleet_rows import GpuRow, ServerRow

_GPU_READINGS: Final = (
    "utilization_percent",
    "memory_used_bytes",
    "temperature_celsius",
    "power_watts",
    "sm_clock_mhz",
    "throttled_percent",
)
_HOST_READINGS: Final = (
    "cpu_percent",
    "memory_used_bytes",
    "network_receive_bytes_per_second",
    "network_transmit_bytes_per_second",
)
CSV_HEADERS: Final[dict[Tab, list[str]]] = {
    "servers": [
        "server",
        "state",
        "provider",
        "region",
        "driver_state",
        "driver_version",
        "gpus_known",
        "gpus_reporting",
        "gpus_busy",
        "gpu_memory_used_bytes",
        "gpu_memory_total_bytes",
        "temperature_highest_celsius",
        "gpu_power_watts",
        "gpu_power_limit_watts",
        *(f"host_{name}" for name in _HOST_READINGS),
        "last_report_utc",
    ],
    "gpus": [
        "server",
        "index",
        "uuid",
        "model",
        "state",
        "state_reason",
        "activity",
        *_GPU_READINGS,
        "memory_total_bytes",
        "power_limit_watts",
        "processes",
        "mig_instances",
        "last_fault",
        "last_fault_utc",
        "reading_utc",
    ],
}


def csv_row(row: Row) -> list[object]:
    """Return a row in the order of its tab's header; missing values stay empty."""
    return _server(row) if isinstance(row, ServerRow) else _gpu(row)


def _server(row: ServerRow) -> list[object]:
    server = row.server
    return [
        server.name,
        server.state,
        server.provider,
        server.region,
        server.driver_state,
        server.driver_version,
        len(row.gpus),
        len(row.reporting),
        row.busy,
        row.total("memory_used_bytes"),
        row.memory_total_bytes,
        row.highest("temperature_celsius"),
        row.total("power_watts"),
        row.power_limit_watts,
        *(row.host_values.get(name) for name in _HOST_READINGS),
        row.last_seen_at.isoformat() if row.last_seen_at else None,
    ]


def _gpu(row: GpuRow) -> list[object]:
    fault = row.fault
    return [
        row.server_name,
        row.index,
        row.uuid,
        row.name,
        row.state,
        row.state_reason,
        str(row.activity),
        *(row.values.get(name) if row.reports else None for name in _GPU_READINGS),
        row.memory_total_bytes,
        row.power_limit_watts,
        row.processes,
        len(row.slices),
        f"{fault.kind} {fault.code}" if fault else None,
        fault.last_at.isoformat() if fault else None,
        row.at.isoformat() if row.at else None,
    ]
