"""When a sample was really taken, whatever the agent's clock says. Pure.

The agent's wall clock is believed while it agrees with ours within `TRUSTED_SKEW_SECONDS` and has not jumped since the
sample. Otherwise a sample's age is taken from the agent's monotonic clock, when that still runs (the same run of the
operating system), else its time is shifted by the skew. Nothing is ever stored in the future: if the newest sample would
be, the whole batch moves back, which keeps order and spacing.
"""

from dataclasses import dataclass
from typing import Final

TRUSTED_SKEW_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Sending:
    """The moment of sending as the agent's headers tell it; None where a header is missing or unreadable."""

    wall_ms: int | None = None
    monotonic_ms: int | None = None
    os_boot_id: str = ""


@dataclass(frozen=True, slots=True)
class SampleClock:
    """How sample times become ours: Unix ms = (monotonic or wall time of the sample) + offset_ms.

    skew_seconds: the agent's clock minus ours, None when the agent did not tell.
    """

    is_monotonic: bool
    offset_ms: float
    skew_seconds: float | None

    def at_ms(self, wall_ms: float, monotonic_ms: float) -> float:
        """Return the panel's time of a sample."""
        return (monotonic_ms if self.is_monotonic else wall_ms) + self.offset_ms


def sample_clock(
    *, received_ms: float, sending: Sending, os_boot_id: str, newest: tuple[float, float] | None
) -> SampleClock:
    """Choose how the times of one report are read.

    received_ms: our time at its arrival. os_boot_id: of the run in which the samples were taken. newest: wall and
    monotonic time of the newest sample in ms, None for a report without samples.
    """
    skew_ms = None if sending.wall_ms is None else sending.wall_ms - received_ms
    is_monotonic, offset_ms = False, 0.0
    if skew_ms is not None and newest is not None:
        has_same_boot = sending.monotonic_ms is not None and bool(os_boot_id) and os_boot_id == sending.os_boot_id
        if has_same_boot and _is_doubtful(skew_ms, sending, newest):
            is_monotonic, offset_ms = True, received_ms - (sending.monotonic_ms or 0)
        elif abs(skew_ms) > TRUSTED_SKEW_SECONDS * 1000:
            offset_ms = -skew_ms
    if newest is not None:
        newest_ms = (newest[1] if is_monotonic else newest[0]) + offset_ms
        offset_ms -= max(0.0, newest_ms - received_ms)
    return SampleClock(is_monotonic, offset_ms, None if skew_ms is None else skew_ms / 1000)


def _is_doubtful(skew_ms: float, sending: Sending, newest: tuple[float, float]) -> bool:
    """Say whether the wall clock is wrong now, or was set between the sample and the sending."""
    wall_age = (sending.wall_ms or 0) - newest[0]
    monotonic_age = (sending.monotonic_ms or 0) - newest[1]
    return max(abs(skew_ms), abs(wall_age - monotonic_age)) > TRUSTED_SKEW_SECONDS * 1000
