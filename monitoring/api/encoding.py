"""Series on the wire: JSON for people and scripts, 4-byte floats for the panel's own charts. Pure.

The frame `application/vnd.fleetdeck.series`: `FDS1`, the header's length (uint32, little-endian), the header (JSON, padded
with spaces to a multiple of 4), then for each series in the header `points` averages and `points` maxima as little-endian
floats, NaN for a gap. Bucket i begins at from_ms + i × step_seconds.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import numpy as np

from monitoring.metrics import GPU_METRICS, HOST_METRICS
from monitoring.selectors import Series, SeriesResult

MAGIC: Final = b"FDS1"
HOST_PREFIX: Final = "host."
# Digits behind the point in JSON: what the unit can mean, so that 61.6 does not read 61.599998474121094.
_DECIMALS: Final = {"percent": 3, "watts": 3, "celsius": 2, "mhz": 1, "bytes": 0, "bytes_per_second": 0, "load": 3}
_ANY_DECIMALS: Final = 3
_UNITS: Final = {
    "gpu": {metric.name: metric.unit for metric in GPU_METRICS},
    "server": {metric.name: metric.unit for metric in HOST_METRICS},
}
_encoder: Final = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class SeriesAnswer:
    """Series of one grid, and the range that was asked for."""

    result: SeriesResult
    start: datetime
    end: datetime


def _identity(series: Series) -> dict[str, Any]:
    """Return what names a series: its GPU, its server or what else it is of, and its metric; a host's carry their prefix."""
    if series.kind not in _UNITS:
        return {series.kind: series.subject_id, "metric": series.metric}
    is_gpu = series.kind == "gpu"
    return {
        "gpu": series.subject_id if is_gpu else None,
        "server": None if is_gpu else series.subject_id,
        "metric": series.metric if is_gpu else HOST_PREFIX + series.metric,
    }


def to_json(answer: SeriesAnswer) -> bytes:
    """Return the answer as JSON; a bucket is [start, average, maximum], a gap [start, null, null]."""
    result = answer.result
    body = {
        "step_seconds": result.step_seconds,
        "level": result.level,
        "from": answer.start.astimezone(UTC),
        "to": answer.end.astimezone(UTC),
        "series": [
            _identity(one) | {"points": points} for one, points in zip(result.series, _points(result), strict=True)
        ],
    }
    return _encoder.encode(body)


def _points(result: SeriesResult) -> Iterator[msgspec.Raw]:
    """Yield the points of each series as JSON, rounded to what its unit can mean.

    Each series by itself: tens of thousands of points held as objects at once would be searched by the garbage collector
    again and again, which costs as much as encoding them.
    """
    starts_ms = result.from_ms + np.arange(result.points) * result.step_seconds * 1000
    starts = [f"{moment}Z" for moment in np.datetime_as_string(starts_ms.astype("datetime64[ms]"), unit="s")]
    for one in result.series:
        decimals = _DECIMALS[_UNITS[one.kind][one.metric]] if one.kind in _UNITS else _ANY_DECIMALS
        average, maximum = np.round(np.array([one.average, one.maximum], dtype=np.float64), decimals).tolist()
        points = list(zip(starts, average, maximum, strict=True))
        yield msgspec.Raw(_encoder.encode(points))  # which writes NaN as null


def to_frame(answer: SeriesAnswer) -> bytes:
    """Return the answer as a frame of floats."""
    result = answer.result
    header = _encoder.encode(
        {
            "step_seconds": result.step_seconds,
            "level": result.level,
            "from_ms": result.from_ms,
            "points": result.points,
            "series": [_identity(one) for one in result.series],
        }
    )
    header += b" " * (-len(header) % 4)
    parts = [MAGIC, len(header).to_bytes(4, "little"), header]
    for one in result.series:
        parts += [one.average.astype("<f4").tobytes(), one.maximum.astype("<f4").tobytes()]
    return b"".join(parts)
