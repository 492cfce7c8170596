"""Signs of life of the evaluator and the dispatcher, in the database that they work on."""

from datetime import datetime
from typing import Any

from monitoring.delivery.models import Heartbeat


def heartbeat(name: str, *, at: datetime, facts: dict[str, Any] | None = None) -> None:
    """Say that a round of this part ended well. facts: JSON-ready, for Self-health."""
    Heartbeat.objects.update_or_create(name=name, defaults={"at": at, "facts": facts or {}})


def heartbeat_age_seconds(name: str, *, at: datetime) -> float | None:
    """Return how long ago that was, or None when it never was."""
    told = Heartbeat.objects.filter(name=name).values_list("at", flat=True).first()
    return (at - told).total_seconds() if told is not None else None
