"""What a model of card is: what it answers at rest, what it lacks (None: NOT_SUPPORTED), how far load takes it."""

from dataclasses import dataclass
from typing import Final

MIB: Final = 1 << 20
EVENTS_GEFORCE: Final = 0x8 | 0x4 | 0x10  # XID, P-state, clock
EVENTS_DATACENTER: Final = EVENTS_GEFORCE | 0x1 | 0x2  # and ECC
ALL_REASONS: Final = 0x1FF
GPM_READINGS: Final = (
    "gpm_graphics_millipercent",
    "gpm_sm_millipercent",
    "gpm_occupancy_millipercent",
    "gpm_tensor_millipercent",
    "gpm_dram_millipercent",
    "gpm_fp32_millipercent",
    "gpm_fp16_millipercent",
)
VIOLATIONS: Final = (
    "power_violation_ns",
    "thermal_violation_ns",
    "sync_boost_violation_ns",
    "board_limit_violation_ns",
    "low_utilization_violation_ns",
    "reliability_violation_ns",
    "application_clocks_violation_ns",
    "base_clocks_violation_ns",
    "software_thermal_ns",
    "hardware_thermal_ns",
    "power_brake_ns",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CardProfile:
    """One model of card. Watts, degrees and MHz are (at rest, under full load); context_watts: a CUDA context held."""

    name: str
    architecture: int
    brand: int
    compute_capability: tuple[int, int]
    vbios: str
    memory_mib: int
    reserved_mib: int
    idle_watts: float
    context_watts: float
    full_watts: float
    limit_watts: float
    limit_range_watts: tuple[float, float]
    temperature: tuple[int, int]
    thresholds: tuple[int, int, int]  # maximum, slowdown, shutdown
    sm_clock: tuple[int, int]
    memory_clock: tuple[int, int]
    video_clock: tuple[int, int]
    pcie_generation: tuple[int, int]
    pcie_width: int = 16
    pcie_width_maximum: int = 16
    bar1_mib: int = 32768
    cores: int
    memory_bus_width: int
    device_id: int
    subsystem_id: int
    part_number: str | None = None
    performance_state: tuple[int, int] = (0, 0)
    memory_temperature: tuple[int, int] | None = None
    memory_maximum: int | None = None
    fans: int | None = None
    fan_percent: tuple[int, int] = (0, 78)
    ecc: bool | None = None  # None: no such mode
    has_remapped_rows: bool = False
    has_retired_pages: bool = False
    has_serial: bool = True
    has_average_power: bool = True
    has_margin: bool = True
    has_recovery_action: bool = True
    has_pcie_counters: bool = False
    has_gpm: bool = False
    has_media_extras: bool = True  # JPEG and optical flow
    nvlink_links: int | None = None
    nvlink_version: int = 0
    nvlink_speed_mbps: int = 0
    mig_maximum: int | None = None
    persistence_mode: int = 1
    memory_busy_full_percent: int = 8
    pcie_throughput_seconds: float = 0.02
    numa_node: int = 0

    def readings(self) -> dict[str, int | None]:
        """Return every reading of a card at rest; those not named stay NOT_SUPPORTED."""
        return {
            **self._identity(),
            **self._memory(),
            **self._power(),
            **self._thermal(),
            **self._clocks(),
            **self._links(),
            **self._health(),
            **self._engines(),
        }

    def _identity(self) -> dict[str, int | None]:
        major, minor = self.compute_capability
        return {
            "architecture": self.architecture,
            "brand": self.brand,
            "cuda_major": major,
            "cuda_minor": minor,
            "cores": self.cores,
            "memory_bus_width": self.memory_bus_width,
            "pci_device_id": self.device_id,
            "pci_subsystem_id": self.subsystem_id,
            "persistence_mode": self.persistence_mode,
            "compute_mode": 0,
            "display_mode": 0,
            "display_active": 0,
            "numa_node": self.numa_node,
            "event_types": EVENTS_GEFORCE if self.ecc is not True else EVENTS_DATACENTER,
        }

    def _memory(self) -> dict[str, int | None]:
        return {
            "memory_total_bytes": self.memory_mib * MIB,
            "memory_reserved_bytes": self.reserved_mib * MIB,
            "memory_used_bytes": 0,
            "memory_v2": 0,
            "bar1_total_bytes": self.bar1_mib * MIB,
            "bar1_used_bytes": MIB,
        }

    def _power(self) -> dict[str, int | None]:
        idle, limit = round(self.idle_watts * 1000), round(self.limit_watts * 1000)
        low, high = self.limit_range_watts
        return {
            "power_milliwatts": idle,
            "power_instant_milliwatts": idle,
            "power_average_milliwatts": idle if self.has_average_power else None,
            "power_limit_milliwatts": limit,
            "power_limit_enforced_milliwatts": limit,
            "power_limit_default_milliwatts": limit,
            "power_limit_minimum_milliwatts": round(low * 1000),
            "power_limit_maximum_milliwatts": round(high * 1000),
            "energy_millijoules": 5_000_000_000,
            **dict.fromkeys(VIOLATIONS, 0),
        }

    def _thermal(self) -> dict[str, int | None]:
        maximum, slowdown, shutdown = self.thresholds
        return {
            "temperature_celsius": self.temperature[0],
            "memory_temperature_celsius": self.memory_temperature[0] if self.memory_temperature else None,
            "temperature_margin_celsius": maximum - self.temperature[0] if self.has_margin else None,
            "temperature_maximum_celsius": maximum,
            "temperature_slowdown_celsius": slowdown,
            "temperature_shutdown_celsius": shutdown,
            "temperature_memory_maximum_celsius": self.memory_maximum,
            "fan_count": self.fans if self.fans is not None else 0,
            "fan_percent": self.fan_percent[0] if self.fans else None,
        }

    def _clocks(self) -> dict[str, int | None]:
        return {
            "graphics_clock_mhz": self.sm_clock[0],
            "sm_clock_mhz": self.sm_clock[0],
            "memory_clock_mhz": self.memory_clock[0],
            "video_clock_mhz": self.video_clock[0],
            "graphics_clock_maximum_mhz": self.sm_clock[1],
            "sm_clock_maximum_mhz": self.sm_clock[1],
            "memory_clock_maximum_mhz": self.memory_clock[1],
            "video_clock_maximum_mhz": self.video_clock[1],
            "clock_event_reasons": 0x1,
            "clock_event_reasons_supported": ALL_REASONS,
            "performance_state": self.performance_state[0],
        }

    def _links(self) -> dict[str, int | None]:
        has = self.nvlink_links is not None
        counters = (
            "nvlink_inactive_mask",
            "nvlink_tx_kib",
            "nvlink_rx_kib",
            "nvlink_replay_errors",
            "nvlink_recovery_errors",
            "nvlink_crc_flit_errors",
            "nvlink_crc_data_errors",
        )
        return {
            "pcie_generation": self.pcie_generation[0],
            "pcie_generation_maximum": self.pcie_generation[1],
            "pcie_width": self.pcie_width,
            "pcie_width_maximum": self.pcie_width_maximum,
            "pcie_replays": 0,
            "pcie_tx_kib_per_second": 371,
            "pcie_rx_kib_per_second": 337,
            "pcie_tx_bytes": 0 if self.has_pcie_counters else None,
            "pcie_rx_bytes": 0 if self.has_pcie_counters else None,
            "nvlink_links": self.nvlink_links,
            "nvlink_version": self.nvlink_version if has else None,
            "nvlink_speed_mbps": self.nvlink_speed_mbps if has else None,
            **dict.fromkeys(counters, 0 if has else None),
        }

    def _health(self) -> dict[str, int | None]:
        ecc = 0 if self.ecc else None
        rows = 0 if self.has_remapped_rows else None
        pages = 0 if self.has_retired_pages else None
        return {
            "ecc_mode": None if self.ecc is None else int(self.ecc),
            "ecc_mode_pending": None if self.ecc is None else int(self.ecc),
            "ecc_corrected_volatile": ecc,
            "ecc_uncorrected_volatile": ecc,
            "ecc_corrected_aggregate": ecc,
            "ecc_uncorrected_aggregate": ecc,
            "remapped_rows_correctable": rows,
            "remapped_rows_uncorrectable": rows,
            "remapped_rows_pending": rows,
            "remapped_rows_failure": rows,
            "retired_pages_single_bit": pages,
            "retired_pages_double_bit": pages,
            "retired_pages_pending": pages,
            "recovery_action": 0 if self.has_recovery_action else None,
        }

    def _engines(self) -> dict[str, int | None]:
        extras = 0 if self.has_media_extras else None
        can_divide = self.mig_maximum is not None
        return {
            "utilization_percent": 0,
            "memory_busy_percent": 0,
            "encoder_percent": 0,
            "decoder_percent": 0,
            "jpeg_percent": extras,
            "ofa_percent": extras,
            "process_utilization": 0,
            "process_details": 0 if self.has_gpm else None,
            "gpm": 1 if self.has_gpm else None,
            **dict.fromkeys(GPM_READINGS, 0 if self.has_gpm else None),
            "mig_mode": 0 if can_divide else None,
            "mig_mode_pending": 0 if can_divide else None,
            "mig_maximum": self.mig_maximum if can_divide else 0,
        }
