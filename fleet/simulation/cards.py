"""Card models: what they answer at rest, what they lack, and how far load takes them.

Figures are those of public captures and data sheets; what a model lacks is None and answers NOT_SUPPORTED.
"""

from dataclasses import dataclass
from typing import Final

MIB: Final = 1 << 20
EVENTS_GEFORCE: Final = 0x8 | 0x4 | 0x10  # XID, P-state, clock
EVENTS_DATACENTER: Final = EVENTS_GEFORCE | 0x1 | 0x2  # and ECC
ALL_REASONS: Final = 0x1FF
GPM_READINGS: Final = (
    "gpm_graphics_millipercent", "gpm_sm_millipercent", "gpm_occupancy_millipercent", "gpm_tensor_millipercent",
    "gpm_dram_millipercent", "gpm_fp32_millipercent", "gpm_fp16_millipercent",
)
VIOLATIONS: Final = (
    "power_violation_ns", "thermal_violation_ns", "sync_boost_violation_ns", "board_limit_violation_ns",
    "low_utilization_violation_ns", "reliability_violation_ns", "application_clocks_violation_ns",
    "base_clocks_violation_ns", "software_thermal_ns", "hardware_thermal_ns", "power_brake_ns",
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
            **self._identity(), **self._memory(), **self._power(), **self._thermal(), **self._clocks(), **self._links(),
            **self._health(), **self._engines(),
        }

    def _identity(self) -> dict[str, int | None]:
        major, minor = self.compute_capability
        return {
            "architecture": self.architecture, "brand": self.brand, "cuda_major": major, "cuda_minor": minor,
            "cores": self.cores, "memory_bus_width": self.memory_bus_width, "pci_device_id": self.device_id,
            "pci_subsystem_id": self.subsystem_id, "persistence_mode": self.persistence_mode, "compute_mode": 0,
            "display_mode": 0, "display_active": 0, "numa_node": self.numa_node,
            "event_types": EVENTS_GEFORCE if self.ecc is not True else EVENTS_DATACENTER,
        }

    def _memory(self) -> dict[str, int | None]:
        return {
            "memory_total_bytes": self.memory_mib * MIB, "memory_reserved_bytes": self.reserved_mib * MIB,
            "memory_used_bytes": 0, "memory_v2": 0, "bar1_total_bytes": self.bar1_mib * MIB, "bar1_used_bytes": MIB,
        }

    def _power(self) -> dict[str, int | None]:
        idle, limit = round(self.idle_watts * 1000), round(self.limit_watts * 1000)
        low, high = self.limit_range_watts
        return {
            "power_milliwatts": idle, "power_instant_milliwatts": idle,
            "power_average_milliwatts": idle if self.has_average_power else None,
            "power_limit_milliwatts": limit, "power_limit_enforced_milliwatts": limit,
            "power_limit_default_milliwatts": limit, "power_limit_minimum_milliwatts": round(low * 1000),
            "power_limit_maximum_milliwatts": round(high * 1000), "energy_millijoules": 5_000_000_000,
            **dict.fromkeys(VIOLATIONS, 0),
        }

    def _thermal(self) -> dict[str, int | None]:
        maximum, slowdown, shutdown = self.thresholds
        return {
            "temperature_celsius": self.temperature[0],
            "memory_temperature_celsius": self.memory_temperature[0] if self.memory_temperature else None,
            "temperature_margin_celsius": maximum - self.temperature[0] if self.has_margin else None,
            "temperature_maximum_celsius": maximum, "temperature_slowdown_celsius": slowdown,
            "temperature_shutdown_celsius": shutdown, "temperature_memory_maximum_celsius": self.memory_maximum,
            "fan_count": self.fans if self.fans is not None else 0,
            "fan_percent": self.fan_percent[0] if self.fans else None,
        }

    def _clocks(self) -> dict[str, int | None]:
        return {
            "graphics_clock_mhz": self.sm_clock[0], "sm_clock_mhz": self.sm_clock[0],
            "memory_clock_mhz": self.memory_clock[0], "video_clock_mhz": self.video_clock[0],
            "graphics_clock_maximum_mhz": self.sm_clock[1], "sm_clock_maximum_mhz": self.sm_clock[1],
            "memory_clock_maximum_mhz": self.memory_clock[1], "video_clock_maximum_mhz": self.video_clock[1],
            "clock_event_reasons": 0x1, "clock_event_reasons_supported": ALL_REASONS,
            "performance_state": self.performance_state[0],
        }

    def _links(self) -> dict[str, int | None]:
        has = self.nvlink_links is not None
        counters = ("nvlink_inactive_mask", "nvlink_tx_kib", "nvlink_rx_kib", "nvlink_replay_errors",
                    "nvlink_recovery_errors", "nvlink_crc_flit_errors", "nvlink_crc_data_errors")
        return {
            "pcie_generation": self.pcie_generation[0], "pcie_generation_maximum": self.pcie_generation[1],
            "pcie_width": self.pcie_width, "pcie_width_maximum": self.pcie_width_maximum, "pcie_replays": 0,
            "pcie_tx_kib_per_second": 371, "pcie_rx_kib_per_second": 337,
            "pcie_tx_bytes": 0 if self.has_pcie_counters else None,
            "pcie_rx_bytes": 0 if self.has_pcie_counters else None,
            "nvlink_links": self.nvlink_links, "nvlink_version": self.nvlink_version if has else None,
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
            "ecc_corrected_volatile": ecc, "ecc_uncorrected_volatile": ecc,
            "ecc_corrected_aggregate": ecc, "ecc_uncorrected_aggregate": ecc,
            "remapped_rows_correctable": rows, "remapped_rows_uncorrectable": rows,
            "remapped_rows_pending": rows, "remapped_rows_failure": rows,
            "retired_pages_single_bit": pages, "retired_pages_double_bit": pages, "retired_pages_pending": pages,
            "recovery_action": 0 if self.has_recovery_action else None,
        }

    def _engines(self) -> dict[str, int | None]:
        extras = 0 if self.has_media_extras else None
        can_divide = self.mig_maximum is not None
        return {
            "utilization_percent": 0, "memory_busy_percent": 0, "encoder_percent": 0, "decoder_percent": 0,
            "jpeg_percent": extras, "ofa_percent": extras, "process_utilization": 0,
            "process_details": 0 if self.has_gpm else None, "gpm": 1 if self.has_gpm else None,
            **dict.fromkeys(GPM_READINGS, 0 if self.has_gpm else None),
            "mig_mode": 0 if can_divide else None, "mig_mode_pending": 0 if can_divide else None,
            "mig_maximum": self.mig_maximum if can_divide else 0,
        }


H200: Final = CardProfile(
    name="NVIDIA H200", architecture=9, brand=14, compute_capability=(9, 0), vbios="96.00.A5.00.03",
    part_number="695-2G520-0280-001", memory_mib=143771, reserved_mib=614, idle_watts=77.7, context_watts=118,
    full_watts=628, limit_watts=700, limit_range_watts=(200, 700), temperature=(28, 62), thresholds=(87, 89, 95),
    memory_temperature=(32, 70), memory_maximum=95, sm_clock=(345, 1980), memory_clock=(3201, 3201),
    video_clock=(765, 1545), pcie_generation=(5, 5), bar1_mib=262144, cores=16896, memory_bus_width=6144,
    device_id=0x233510DE, subsystem_id=0x18BE10DE, ecc=True, has_remapped_rows=True, has_pcie_counters=True,
    has_gpm=True, nvlink_links=18, nvlink_version=6, nvlink_speed_mbps=26562, mig_maximum=7,
)
H100: Final = CardProfile(
    name="NVIDIA H100 80GB HBM3", architecture=9, brand=14, compute_capability=(9, 0), vbios="96.00.89.00.01",
    part_number="692-2G520-0200-000", memory_mib=81559, reserved_mib=479, idle_watts=70, context_watts=112,
    full_watts=640, limit_watts=700, limit_range_watts=(200, 700), temperature=(29, 64), thresholds=(87, 89, 95),
    memory_temperature=(35, 74), memory_maximum=95, sm_clock=(345, 1980), memory_clock=(2619, 2619),
    video_clock=(765, 1545), pcie_generation=(5, 5), bar1_mib=131072, cores=16896, memory_bus_width=5120,
    device_id=0x233010DE, subsystem_id=0x16C110DE, ecc=True, has_remapped_rows=True, has_pcie_counters=True,
    has_gpm=True, nvlink_links=18, nvlink_version=6, nvlink_speed_mbps=26562, mig_maximum=7,
)
A100: Final = CardProfile(
    name="NVIDIA A100-SXM4-80GB", architecture=7, brand=14, compute_capability=(8, 0), vbios="92.00.36.00.02",
    part_number="692-2G506-0212-002", memory_mib=81920, reserved_mib=626, idle_watts=61.5, context_watts=88,
    full_watts=389, limit_watts=400, limit_range_watts=(100, 400), temperature=(31, 66), thresholds=(85, 89, 92),
    memory_temperature=(38, 76), memory_maximum=95, sm_clock=(210, 1410), memory_clock=(1593, 1593),
    video_clock=(585, 1290), pcie_generation=(4, 4), bar1_mib=131072, cores=6912, memory_bus_width=5120,
    device_id=0x20B210DE, subsystem_id=0x147F10DE, ecc=True, has_remapped_rows=True, has_average_power=False,
    has_margin=False, nvlink_links=12, nvlink_version=4, nvlink_speed_mbps=25781, mig_maximum=7,
)
L40S: Final = CardProfile(
    name="NVIDIA L40S", architecture=8, brand=14, compute_capability=(8, 9), vbios="95.02.66.00.02",
    part_number="900-2G133-0080-000", memory_mib=46068, reserved_mib=609, idle_watts=37, context_watts=103,
    full_watts=338, limit_watts=350, limit_range_watts=(100, 350), temperature=(30, 68), thresholds=(88, 90, 93),
    sm_clock=(210, 2520), memory_clock=(405, 9001), video_clock=(1185, 1965), pcie_generation=(4, 4),
    bar1_mib=65536, cores=18176, memory_bus_width=384, device_id=0x26B910DE, subsystem_id=0x185110DE,
    performance_state=(8, 0), ecc=True, has_remapped_rows=True, has_pcie_counters=True, memory_busy_full_percent=42,
)
L20: Final = CardProfile(
    name="NVIDIA L20", architecture=8, brand=14, compute_capability=(8, 9), vbios="95.02.66.00.1C",
    part_number="900-2G133-0120-000", memory_mib=46068, reserved_mib=609, idle_watts=25.9, context_watts=74,
    full_watts=268, limit_watts=275, limit_range_watts=(100, 275), temperature=(30, 66), thresholds=(88, 90, 93),
    sm_clock=(210, 2520), memory_clock=(405, 9001), video_clock=(1185, 1965), pcie_generation=(1, 4), bar1_mib=65536,
    cores=11776, memory_bus_width=384, device_id=0x26BA10DE, subsystem_id=0x195710DE, performance_state=(8, 0),
    ecc=True, has_remapped_rows=True, has_pcie_counters=True, memory_busy_full_percent=40,
)
RTX_4090: Final = CardProfile(
    name="NVIDIA GeForce RTX 4090", architecture=8, brand=5, compute_capability=(8, 9), vbios="95.02.18.80.5F",
    memory_mib=24564, reserved_mib=346, idle_watts=26.8, context_watts=62, full_watts=438, limit_watts=450,
    limit_range_watts=(10, 600), temperature=(38, 72), thresholds=(83, 85, 90), sm_clock=(210, 2745),
    memory_clock=(405, 10501), video_clock=(1185, 2145), pcie_generation=(1, 4), cores=16384, memory_bus_width=384,
    device_id=0x268410DE, subsystem_id=0x40BF1458, performance_state=(8, 2), fans=2, ecc=False, has_serial=False,
    has_remapped_rows=True, persistence_mode=0, memory_busy_full_percent=55,
)
T4: Final = CardProfile(
    name="Tesla T4", architecture=6, brand=14, compute_capability=(7, 5), vbios="90.04.84.00.06",
    part_number="900-2G183-0000-001", memory_mib=15360, reserved_mib=388, idle_watts=9.8, context_watts=26.5,
    full_watts=69.5, limit_watts=70, limit_range_watts=(60, 70), temperature=(34, 76), thresholds=(85, 93, 96),
    sm_clock=(300, 1590), memory_clock=(405, 5001), video_clock=(540, 1470), pcie_generation=(1, 3), pcie_width=8,
    bar1_mib=256, cores=2560, memory_bus_width=256, device_id=0x1EB810DE, subsystem_id=0x12A210DE,
    performance_state=(8, 0), ecc=True, has_retired_pages=True, has_average_power=False, has_margin=False,
    has_recovery_action=False, has_media_extras=False, persistence_mode=0, memory_busy_full_percent=35,
)

PROFILES: Final = {
    "h200": H200, "h100": H100, "a100": A100, "l40s": L40S, "l20": L20, "rtx4090": RTX_4090, "t4": T4,
}
