"""What work asks of a card, second by second: training, inference, a parked model, video, nothing.

Phases follow from the clock and noise from a seeded generator, so that the same seed and the same clock give the same load.
"""

import math
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

DAY_SECONDS: Final = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What one second of work wants. All are shares of 0 to 1.

    utilization: of the time, a kernel runs. intensity: of the card that such a kernel keeps busy. memory: held. A context
    alone lifts clocks and power; media engines do not count as utilisation.
    """

    utilization: float = 0.0
    intensity: float = 0.0
    memory: float = 0.0
    has_context: bool = False
    encoder: float = 0.0
    decoder: float = 0.0
    nvlink: float = 0.0


class Load(Protocol):
    """Some work. step: the demand of the time that passed until `now` (Unix seconds)."""

    def step(self, now: float, seconds: float) -> Demand:
        """Go on by so many seconds."""
        ...


def clamp(value: float, low: float = 0.0, high: float = 1.0) -> float:
    """Return the value, held within bounds."""
    return min(high, max(low, value))


class Idle:
    """Nothing: no process, no context."""

    def step(self, now: float, seconds: float) -> Demand:  # noqa: ARG002  # the protocol's arguments
        """Ask for nothing."""
        return Demand()


class Parked:
    """A model is loaded and nobody asks it anything; with `probe_every_seconds` a health check now and then."""

    def __init__(self, *, memory: float = 0.88, probe_every_seconds: float | None = None) -> None:
        self.memory = memory
        self.probe_every_seconds = probe_every_seconds

    def step(self, now: float, seconds: float) -> Demand:
        """Hold memory; answer the probe when one falls into this step."""
        probed = self.probe_every_seconds is not None and now % self.probe_every_seconds < seconds
        return Demand(
            memory=self.memory,
            has_context=True,
            utilization=0.3 if probed else 0.0,
            intensity=0.4 if probed else 0.0,
        )


class Training:
    """A training job: high and noisy, with stalls, a dip at every checkpoint, and a gap when the job is started again.

    Cards of one job share `job`, so that they dip together.
    """

    CHECKPOINT_SECONDS: Final = 35.0
    RESTART_SECONDS: Final = 240.0

    def __init__(
        self, rng: np.random.Generator, *, job: int = 0, memory: float = 0.91, intensity: float = 0.93
    ) -> None:
        self.rng = rng
        self.memory = memory
        self.intensity = intensity
        phases = np.random.default_rng(job)
        self.checkpoint_every = float(phases.uniform(700, 1100))
        self.restart_every = float(phases.uniform(3.0, 5.0)) * 3600
        self.offset = float(phases.uniform(0, self.restart_every))
        self.drift = 0.0

    def step(self, now: float, seconds: float) -> Demand:  # noqa: ARG002  # one step is one second or so
        """Compute, save a checkpoint, or start again."""
        clock = now + self.offset
        if clock % self.restart_every < self.RESTART_SECONDS:
            is_loading = clock % self.restart_every > self.RESTART_SECONDS * 0.6
            return Demand(memory=self.memory * 0.4 if is_loading else 0.0, has_context=is_loading)
        if clock % self.checkpoint_every < self.CHECKPOINT_SECONDS:
            return Demand(
                utilization=clamp(float(self.rng.normal(0.05, 0.04))),
                intensity=0.3,
                memory=self.memory,
                has_context=True,
            )
        self.drift = 0.9 * self.drift + float(self.rng.normal(0, 0.008))
        stall = 0.35 if self.rng.random() < 0.01 else 0.0
        utilization = clamp(float(self.rng.normal(0.97, 0.015)) + self.drift - stall)
        return Demand(
            utilization=utilization,
            intensity=clamp(self.intensity + float(self.rng.normal(0, 0.02))),
            memory=self.memory,
            has_context=True,
            nvlink=clamp(0.55 * utilization + float(self.rng.normal(0, 0.03))),
        )


class Inference:
    """Requests by the hour of the day, with bursts: arrivals are Poisson, each stays a few seconds in the batch."""

    def __init__(
        self,
        rng: np.random.Generator,
        *,
        utc_offset_hours: float = 0.0,
        peak_requests_per_second: float = 6.0,
        request_seconds: float = 4.0,
        batch: int = 32,
        memory: float = 0.9,
        bursts_per_hour: float = 14.0,
    ) -> None:
        self.rng = rng
        self.utc_offset_hours = utc_offset_hours
        self.peak_requests_per_second = peak_requests_per_second
        self.request_seconds = request_seconds
        self.batch = batch
        self.memory = memory
        self.bursts_per_hour = bursts_per_hour
        self.in_flight = 0.0
        self.burst_until = 0.0
        self.burst_factor = 1.0

    def step(self, now: float, seconds: float) -> Demand:
        """Take what arrives, finish what is done."""
        self._maybe_burst(now, seconds)
        rate = self.peak_requests_per_second * daily_curve(now, self.utc_offset_hours) * self._factor(now)
        self.in_flight *= math.exp(-seconds / self.request_seconds)
        self.in_flight += float(self.rng.poisson(rate * seconds))
        share = clamp(self.in_flight / self.batch)
        utilization = clamp(share**0.55 + float(self.rng.normal(0, 0.02))) if share > 0.005 else 0.0
        return Demand(
            utilization=utilization,
            intensity=0.35 + 0.45 * share,
            memory=self.memory,
            has_context=True,
            nvlink=0.08 * utilization,
        )

    def _maybe_burst(self, now: float, seconds: float) -> None:
        if now >= self.burst_until and self.rng.random() < self.bursts_per_hour * seconds / 3600:
            self.burst_until = now + float(self.rng.uniform(15, 75))
            self.burst_factor = float(self.rng.uniform(2.0, 4.0))

    def _factor(self, now: float) -> float:
        return self.burst_factor if now < self.burst_until else 1.0


class Video:
    """Transcoding: the media engines work, the compute part hardly does."""

    def __init__(self, rng: np.random.Generator, *, memory: float = 0.12) -> None:
        self.rng = rng
        self.memory = memory

    def step(self, now: float, seconds: float) -> Demand:  # noqa: ARG002  # one step is one second or so
        """Decode and encode a varying number of streams."""
        streams = 0.55 + 0.25 * math.sin(now / 900) + 0.1 * math.sin(now / 77)
        return Demand(
            utilization=clamp(0.06 + float(self.rng.normal(0, 0.015))),
            intensity=0.15,
            memory=self.memory,
            has_context=True,
            encoder=clamp(0.8 * streams + float(self.rng.normal(0, 0.03))),
            decoder=clamp(streams + float(self.rng.normal(0, 0.03))),
        )


def daily_curve(now: float, utc_offset_hours: float) -> float:
    """Return how busy people are at this moment, 0.08 (before dawn) to 1 (afternoon and evening)."""
    hour = (now % DAY_SECONDS) / 3600 + utc_offset_hours
    day = math.exp(-((((hour - 15) % 24 + 12) % 24 - 12) ** 2) / 18)
    evening = math.exp(-((((hour - 21) % 24 + 12) % 24 - 12) ** 2) / 6)
    return clamp(0.08 + 0.75 * day + 0.6 * evening)
