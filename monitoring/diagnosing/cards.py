"""Stored readings of cards as a diagnosis looks at them: percent become shares, what is missing stays missing."""

from collections.abc import Mapping

from monitoring.diagnosis.evidence import GpuSample

Reading = Mapping[str, float | int | None]


def sample_of(
    reading: Reading, *, enforced_limit_watts: float | None = None, default_limit_watts: float | None = None
) -> GpuSample:
    """Return one reading. reading: values by the names of the catalogue of metrics, and `clock_event_reasons`."""
    reasons = reading.get("clock_event_reasons")
    return GpuSample(
        sm_active=_share(reading, "sm_activity_percent"),
        dram_active=_share(reading, "dram_activity_percent"),
        tensor_active=_share(reading, "tensor_activity_percent"),
        utilization=_share(reading, "utilization_percent"),
        power_watts=reading.get("power_watts"),
        enforced_limit_watts=enforced_limit_watts,
        default_limit_watts=default_limit_watts,
        throttle_mask=None if reasons is None else int(reasons),
    )


def _share(reading: Reading, name: str) -> float | None:
    value = reading.get(name)
    return None if value is None else value / 100
