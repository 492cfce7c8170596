"""What live frames say of a GPU and of a host: the entries that snapshots and ingest share."""

from typing import TYPE_CHECKING, Any, Final

from fleet.selectors import gpu_live

if TYPE_CHECKING:
    from fleet.models import Gpu
    from monitoring.selectors import Latest

# What lists show, and what tells a busy card from a quiet one (monitoring/activity.py).
SUMMARY_METRICS: Final = (
    "utilization_percent",
    "memory_used_bytes",
    "power_watts",
    "temperature_celsius",
    "sm_activity_percent",
    "encoder_percent",
    "decoder_percent",
)


def readings(latest: "Latest") -> dict[str, Any]:
    """Return every metric of the newest sample by name, with its time."""
    return {"at": latest.at.isoformat(), **latest.values}


def gpu_entry(gpu: "Gpu", latest: "Latest | None") -> dict[str, Any]:
    """Return a GPU as pages of one server or card show it: state, reason and every reading."""
    if latest is None:
        return gpu_live(gpu)
    reasons = {"clock_event_reasons": latest.clock_event_reasons, "performance_state": latest.performance_state}
    return {**gpu_live(gpu), **readings(latest), **reasons}


def gpu_summary(gpu: "Gpu", latest: "Latest | None") -> dict[str, Any]:
    """Return a GPU as lists show it: state and a few readings."""
    entry: dict[str, Any] = {"state": gpu.state}
    if latest is not None:
        entry["at"] = latest.at.isoformat()
        entry.update({name: latest.values.get(name) for name in SUMMARY_METRICS})
    return entry


def host_entry(latest: "Latest") -> dict[str, Any]:
    """Return a host's readings."""
    return readings(latest)
