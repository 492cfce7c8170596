"""Series made of readings of cards and what is known of them: room to the slowdown temperature, share of the power limit."""

import numpy as np
from numpy.typing import NDArray

from fleet.models import Gpu
from monitoring.alerts.series import Derived, register_series
from monitoring.alerts.subjects import uses_of

Values = NDArray[np.float64]
Ids = NDArray[np.int64]


def _of_cards(ids: Ids, column: str, *path: str) -> Values:
    """Return a number that is known of each card, NaN where it is not."""
    known: dict[int, float] = {}
    for pk, held in Gpu.objects.filter(removed_at=None).values_list("pk", column):
        value = held
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, int | float) and value > 0:
            known[pk] = float(value)
    return np.array([known.get(each, np.nan) for each in ids.tolist()])


def _headroom(ids: Ids, values: dict[str, Values]) -> Values:
    return _of_cards(ids, "facts", "temperature_slowdown_celsius") - values["temperature_celsius"]


def _power(ids: Ids, values: dict[str, Values]) -> Values:
    return 100 * values["power_watts"] / _of_cards(ids, "power_limit_watts")


def _memory(ids: Ids, values: dict[str, Values]) -> Values:
    return 100 * values["memory_used_bytes"] / _of_cards(ids, "memory_total_bytes")


def _grown(ids: Ids, values: dict[str, Values]) -> Values:
    """Memory of cards without an engine of ours: those take their share when they start, which is no sign of anything."""
    serving = set(uses_of("gpu"))
    is_serving = np.array([each in serving for each in ids.tolist()], dtype=bool)
    return np.where(is_serving, np.nan, _memory(ids, values))


def _serving(ids: Ids, values: dict[str, Values]) -> Values:
    """How busy the processors of cards are whose replica has requests, NaN of all others."""
    busy = {key for key, (_endpoint, is_busy) in uses_of("gpu").items() if is_busy}
    is_busy = np.array([each in busy for each in ids.tolist()], dtype=bool)
    return np.where(is_busy, values["sm_activity_percent"], np.nan)


def register_all() -> None:
    """Register the series."""
    register_series(Derived("gpu", "headroom_celsius", "celsius", ("temperature_celsius",), _headroom))
    register_series(Derived("gpu", "power_limit_percent", "percent", ("power_watts",), _power))
    register_series(Derived("gpu", "memory_percent", "percent", ("memory_used_bytes",), _memory))
    register_series(Derived("gpu", "memory_grown_percent", "percent", ("memory_used_bytes",), _grown))
    register_series(Derived("gpu", "serving_activity_percent", "percent", ("sm_activity_percent",), _serving))
