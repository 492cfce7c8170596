"""How a card answers work: power, heat, clocks, limits and counters, each with its lag, consistent with one another."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from fleet.simulation.load import Demand, clamp
from fleet.simulation.nvml import Card
from fleet.simulation.profile import CardProfile

MIB: Final = 1 << 20
THERMAL_LAG_SECONDS: Final = 40.0
CLOCK_STEP_MHZ: Final = 15
REASON_IDLE: Final = 0x1
REASON_POWER_CAP: Final = 0x4
REASON_HARDWARE: Final = 0x8
REASON_SOFTWARE_THERMAL: Final = 0x20
REASON_HARDWARE_THERMAL: Final = 0x40
NS: Final = 1e9
NVLINK_KIB_PER_SECOND: Final = 3_000_000  # of one link at full load
PCIE_BYTES_PER_SECOND: Final = 2e9


@dataclass(slots=True)
class Throttle:
    """What holds the card back now. hardware and software: too hot."""

    is_capped: bool = False
    is_software: bool = False
    is_hardware: bool = False

    @property
    def power_factor(self) -> float:
        """Return how much of the wanted power is left."""
        return 0.55 if self.is_hardware else 0.82 if self.is_software else 1.0

    @property
    def clock_factor(self) -> float:
        """Return how much of the boost clock is left, apart from the power cap."""
        return 0.5 if self.is_hardware else 0.85 if self.is_software else 1.0

    def reasons(self, *, is_idle: bool) -> int:
        """Return NVML's bit mask."""
        if is_idle:
            return REASON_IDLE
        mask = REASON_POWER_CAP if self.is_capped else 0
        mask |= REASON_SOFTWARE_THERMAL if self.is_software else 0
        return mask | (REASON_HARDWARE | REASON_HARDWARE_THERMAL if self.is_hardware else 0)


def activity(demand: Demand) -> dict[str, float]:
    """Return what GPM tells of a card or an instance under this demand."""
    busy = demand.utilization * demand.intensity
    tensor = 0.62 if demand.nvlink > 0.3 else 0.38
    return {
        "gpm_graphics_millipercent": 1e5 * demand.utilization,
        "gpm_sm_millipercent": 9e4 * busy,
        "gpm_occupancy_millipercent": 4e4 * busy,
        "gpm_tensor_millipercent": 1e5 * tensor * busy,
        "gpm_dram_millipercent": 5e4 * busy,
    }


class CardModel:
    """The state of one card. cooling: how far it heats up compared with a well cooled one (1.0)."""

    def __init__(
        self, card: Card, profile: CardProfile, rng: np.random.Generator, *, cooling: float = 1.0, ambient: float = 0.0
    ) -> None:
        self.card = card
        self.profile = profile
        self.rng = rng
        self.cooling = cooling
        self.ambient = ambient
        self.watts = profile.idle_watts
        self.celsius = float(profile.temperature[0]) + ambient
        self.throttle = Throttle()

    def step(self, demand: Demand, seconds: float) -> None:
        """Go on by so many seconds under this demand, and write what the card answers now."""
        wanted = self._wanted_watts(demand)
        self._heat(seconds)
        limit = self.profile.limit_watts
        throttled = wanted * self.throttle.power_factor
        self.throttle.is_capped = throttled > limit * 0.985
        instant = min(throttled, limit * float(self.rng.uniform(0.985, 1.004)))
        self.watts += (instant - self.watts) * clamp(seconds / 1.2)
        self.card.update(self._values(demand, instant, wanted), self._rates(demand))

    def reset(self) -> None:
        """Start as a card does after a reset of the driver: cold, counters at zero."""
        self.watts, self.celsius = self.profile.idle_watts, float(self.profile.temperature[0]) + self.ambient
        self.throttle = Throttle()
        self.card.update({"energy_millijoules": 0, "power_violation_ns": 0, "thermal_violation_ns": 0})

    def _wanted_watts(self, demand: Demand) -> float:
        profile = self.profile
        rest = profile.context_watts if demand.has_context else profile.idle_watts
        effort = demand.utilization * demand.intensity + 0.06 * (demand.encoder + demand.decoder)
        span = (profile.full_watts - rest) * 1.08
        return rest + span * effort + float(self.rng.normal(0, 0.006 * profile.full_watts * (0.1 + effort)))

    def _heat(self, seconds: float) -> None:
        profile = self.profile
        low, high = profile.temperature
        share = (self.watts - profile.idle_watts) / (profile.full_watts - profile.idle_watts)
        settled = low + self.ambient + (high - low) * self.cooling * share
        self.celsius += (settled - self.celsius) * clamp(seconds / THERMAL_LAG_SECONDS)
        maximum, slowdown, _shutdown = profile.thresholds
        throttle = self.throttle
        throttle.is_software = self.celsius >= maximum or (throttle.is_software and self.celsius > maximum - 2)
        throttle.is_hardware = self.celsius >= slowdown or (throttle.is_hardware and self.celsius > slowdown - 3)

    def _values(self, demand: Demand, instant: float, wanted: float) -> dict[str, float]:
        is_idle = not demand.has_context and demand.utilization == 0
        return {
            **self._load_values(demand),
            **self._clock_values(demand, wanted),
            "power_milliwatts": self.watts * 1000,
            "power_average_milliwatts": self.watts * 1000,
            "power_instant_milliwatts": instant * 1000,
            "temperature_celsius": self.celsius,
            "memory_temperature_celsius": self._memory_celsius(),
            "temperature_margin_celsius": self.profile.thresholds[0] - self.celsius,
            "fan_percent": self._fan_percent(),
            "clock_event_reasons": self.throttle.reasons(is_idle=is_idle),
        }

    def _load_values(self, demand: Demand) -> dict[str, float]:
        profile = self.profile
        busy = demand.utilization * demand.intensity
        room = (profile.memory_mib - profile.reserved_mib) * MIB
        return {
            "utilization_percent": 100 * demand.utilization,
            "memory_busy_percent": profile.memory_busy_full_percent * demand.utilization,
            "memory_used_bytes": demand.memory * room,
            "encoder_percent": 100 * demand.encoder,
            "decoder_percent": 100 * demand.decoder,
            "pcie_tx_kib_per_second": 371 + 2e6 * busy,
            "pcie_rx_kib_per_second": 337 + 3e6 * busy,
            **activity(demand),
        }

    def _clock_values(self, demand: Demand, wanted: float) -> dict[str, float]:
        profile = self.profile
        is_awake = demand.utilization > 0 or (demand.has_context and profile.performance_state[0] == 0)
        at = int(is_awake)
        clock = profile.sm_clock[1] * self.throttle.clock_factor if is_awake else profile.sm_clock[0]
        if self.throttle.is_capped:
            clock *= (profile.limit_watts / wanted) ** 0.5 * float(self.rng.uniform(0.97, 1.0))
        clock = CLOCK_STEP_MHZ * round(clock / CLOCK_STEP_MHZ)
        return {
            "sm_clock_mhz": clock,
            "graphics_clock_mhz": clock,
            "memory_clock_mhz": profile.memory_clock[at],
            "video_clock_mhz": profile.video_clock[at],
            "performance_state": profile.performance_state[at],
            "pcie_generation": profile.pcie_generation[at],
        }

    def _memory_celsius(self) -> float:
        if self.profile.memory_temperature is None:
            return 0.0
        offset = self.profile.memory_temperature[0] - self.profile.temperature[0]
        return self.celsius + offset + 0.08 * (self.celsius - self.profile.temperature[0])

    def _fan_percent(self) -> float:
        low, high = self.profile.fan_percent
        cool, hot = self.profile.temperature
        share = clamp((self.celsius - cool - 8) / (hot - cool))
        return low + (high - low) * share if share > 0 else 0.0

    def _rates(self, demand: Demand) -> dict[str, float]:
        links = self.profile.nvlink_links or 0
        busy = demand.utilization * demand.intensity
        hot = self.throttle.is_software or self.throttle.is_hardware
        return {
            "energy_millijoules": self.watts * 1000,
            "pcie_tx_bytes": 3.8e5 + PCIE_BYTES_PER_SECOND * 0.7 * busy,
            "pcie_rx_bytes": 3.4e5 + PCIE_BYTES_PER_SECOND * busy,
            "nvlink_tx_kib": links * NVLINK_KIB_PER_SECOND * demand.nvlink,
            "nvlink_rx_kib": links * NVLINK_KIB_PER_SECOND * demand.nvlink,
            "power_violation_ns": NS * 0.85 if self.throttle.is_capped else 0.0,
            "thermal_violation_ns": NS if hot else 0.0,
            "software_thermal_ns": NS if self.throttle.is_software else 0.0,
            "hardware_thermal_ns": NS if self.throttle.is_hardware else 0.0,
        }
