"""What the cards say in the minutes of the window: held back or not, and what they were busy with."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from monitoring.diagnosis.evidence import GpuSample

# NVML's clock reasons (nvmlClocksEventReason*). 0x8 is the umbrella of 0x40 and 0x80.
HEAT: Final = 0x20 | 0x40
BRAKE: Final = 0x80
HARDWARE: Final = 0x8
POWER_CAP: Final = 0x4
LOWERED: Final = 0.9  # of the card's own limit: a limit under it was lowered by somebody
LEAST_SHARE: Final = 0.2  # of the readings that have to be held back


@dataclass(frozen=True, slots=True)
class CardFacts:
    """Means of all readings, as shares; None where no card tells. sm_active falls back on utilization, which is never below it.

    throttled_share: of readings that were held back; heat_share, power_share: by heat or the hardware, by power. lowest_limit:
    enforced power limit against the card's own. power_share_of_limit: power drawn against the enforced limit.
    """

    sm_active: float | None
    dram_active: float | None
    tensor_active: float | None
    throttled_share: float | None
    heat_share: float | None
    power_share: float | None
    lowest_limit: float | None
    power_of_limit: float | None

    @property
    def is_throttled(self) -> bool:
        """Whether a card was held back long enough to matter."""
        return self.throttled_share is not None and self.throttled_share >= LEAST_SHARE


def card_facts(samples: Sequence[GpuSample]) -> CardFacts:
    """Return what the readings add up to.

    A power cap (0x4) alone is how a busy card normally runs; it counts where the limit was lowered below 90 % of the card's own.
    """
    masks = [(sample, sample.throttle_mask) for sample in samples if sample.throttle_mask is not None]
    heat = [bool(mask & (HEAT | HARDWARE)) and not mask & BRAKE for _, mask in masks]
    power = [bool(mask & BRAKE) or (bool(mask & POWER_CAP) and _is_lowered(sample)) for sample, mask in masks]
    return CardFacts(
        sm_active=_mean(samples, lambda sample: sample.utilization if sample.sm_active is None else sample.sm_active),
        dram_active=_mean(samples, lambda sample: sample.dram_active),
        tensor_active=_mean(samples, lambda sample: sample.tensor_active),
        throttled_share=_share([hot or weak for hot, weak in zip(heat, power, strict=True)]),
        heat_share=_share(heat),
        power_share=_share(power),
        lowest_limit=min((limit for limit in map(_limit, samples) if limit is not None), default=None),
        power_of_limit=_mean(samples, _power),
    )


def _limit(sample: GpuSample) -> float | None:
    if sample.enforced_limit_watts is None or not sample.default_limit_watts:
        return None
    return sample.enforced_limit_watts / sample.default_limit_watts


def _power(sample: GpuSample) -> float | None:
    if sample.power_watts is None or not sample.enforced_limit_watts:
        return None
    return sample.power_watts / sample.enforced_limit_watts


def _is_lowered(sample: GpuSample) -> bool:
    limit = _limit(sample)
    return limit is not None and limit < LOWERED


def _share(found: Sequence[bool]) -> float | None:
    return sum(found) / len(found) if found else None


def _mean(samples: Sequence[GpuSample], read: Callable[[GpuSample], float | None]) -> float | None:
    found = [value for value in map(read, samples) if value is not None]
    return sum(found) / len(found) if found else None
