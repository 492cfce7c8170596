"""Closed hours and days in the database: one compressed value for each (subject, hour), then each (subject, day, metric).

A day's blocks hold what its hours held; an hour row that stands beside its day's blocks came later and replaces that hour.
"""

from collections import defaultdict
from collections.abc import Collection
from typing import Final

import numpy as np

from monitoring.models import SealedDay, SealedHour
from monitoring.store import codec
from monitoring.store.codec import Block
from monitoring.store.tables import DAY_MS, HOUR_MS, HOURS_PER_DAY, SubjectKind

# Places beside the metrics of the catalogue, in SealedDay.metric.
TIMES: Final = -1
REASONS: Final = -2


def nothing(kind: SubjectKind) -> Block:
    """Return a block without samples."""
    width = len(kind.metrics)
    return Block(np.empty(0, dtype=np.int64), np.empty((0, width), dtype=np.float32), np.empty(0, dtype=np.int32))


def sealed_hours(
    kind: SubjectKind, *, subject_ids: Collection[int], first_hour: int, end_hour: int
) -> dict[tuple[int, int], Block]:
    """Return the hour rows of [first, end) by (subject, hour). One query."""
    rows = SealedHour.objects.filter(
        kind=kind.code, subject_id__in=subject_ids, hour__gte=first_hour, hour__lt=end_hour
    ).values_list("subject_id", "hour", "data")
    return {(subject, hour): codec.decode_block(bytes(data), metrics=len(kind.metrics)) for subject, hour, data in rows}


def hours_save(kind: SubjectKind, *, hour: int, blocks: dict[int, Block]) -> None:
    """Write the hour row of each subject, over what was there."""
    SealedHour.objects.bulk_create(
        [
            SealedHour(
                kind=kind.code, subject_id=subject, hour=hour, samples=len(block.at_ms), data=codec.encode_block(block)
            )
            for subject, block in blocks.items()
        ],
        update_conflicts=True,
        unique_fields=["kind", "subject_id", "hour"],
        update_fields=["samples", "data"],
        batch_size=500,
    )


def sealed_days(
    kind: SubjectKind, *, subject_ids: Collection[int], first_day: int, end_day: int, metrics: Collection[int]
) -> dict[tuple[int, int], Block]:
    """Return the day blocks of [first, end) by (subject, day); metrics that were not asked for are NaN. One query."""
    rows = SealedDay.objects.filter(
        kind=kind.code,
        subject_id__in=subject_ids,
        day__gte=first_day,
        day__lt=end_day,
        metric__in=[TIMES, REASONS, *metrics],
    ).values_list("subject_id", "day", "metric", "data")
    parts: defaultdict[tuple[int, int], dict[int, bytes]] = defaultdict(dict)
    for subject, day, metric, data in rows:
        parts[subject, day][metric] = bytes(data)
    return {key: _day_block(kind, of_day) for key, of_day in parts.items()}


def _day_block(kind: SubjectKind, parts: dict[int, bytes]) -> Block:
    at_ms = codec.decode_times(codec.decompress(parts[TIMES]))
    values = np.full((len(at_ms), len(kind.metrics)), np.nan, dtype=np.float32)
    for metric, data in parts.items():
        if metric >= 0:
            values[:, metric] = codec.decode_column(codec.decompress(data), len(at_ms))
    return Block(at_ms, values, codec.decode_reasons(codec.decompress(parts[REASONS]), len(at_ms)))


def day_save(kind: SubjectKind, *, subject_id: int, day: int, block: Block) -> None:
    """Write the blocks of one day; a metric without any value that day gets none."""
    has_value = np.flatnonzero(~np.isnan(block.values).all(axis=0)).tolist()
    columns = {metric: codec.encode_column(np.ascontiguousarray(block.values[:, metric])) for metric in has_value}
    plain = {TIMES: codec.encode_times(block.at_ms), REASONS: codec.encode_reasons(block.reasons), **columns}
    SealedDay.objects.filter(kind=kind.code, subject_id=subject_id, day=day).delete()
    SealedDay.objects.bulk_create(
        SealedDay(kind=kind.code, subject_id=subject_id, day=day, metric=metric, data=codec.compress(part))
        for metric, part in plain.items()
    )


def samples_between(
    kind: SubjectKind, *, subject_ids: Collection[int], start_ms: int, end_ms: int, metrics: Collection[int]
) -> dict[int, Block]:
    """Return what is sealed of these subjects in [start, end), in order of time. Two queries."""
    hours = sealed_hours(kind, subject_ids=subject_ids, first_hour=start_ms // HOUR_MS, end_hour=-(-end_ms // HOUR_MS))
    days = sealed_days(
        kind, subject_ids=subject_ids, first_day=start_ms // DAY_MS, end_day=-(-end_ms // DAY_MS), metrics=metrics
    )
    found: defaultdict[int, Block] = defaultdict(lambda: nothing(kind))
    for (subject, day), block in sorted(days.items(), key=lambda item: item[0]):
        replaced = {hour for of, hour in hours if of == subject and hour // HOURS_PER_DAY == day}
        found[subject] = codec.merge_blocks(found[subject], without_hours(block, replaced))
    for (subject, _hour), block in hours.items():
        found[subject] = codec.merge_blocks(found[subject], block)
    return {subject: between(block, start_ms, end_ms) for subject, block in found.items()}


def without_hours(block: Block, hours: set[int]) -> Block:
    """Return the block without the samples of these hours."""
    keep = ~np.isin(block.at_ms // HOUR_MS, list(hours))
    return Block(block.at_ms[keep], block.values[keep], block.reasons[keep])


def between(block: Block, start_ms: int, end_ms: int) -> Block:
    """Return the samples of [start, end)."""
    first, end = np.searchsorted(block.at_ms, [start_ms, end_ms])
    return Block(block.at_ms[first:end], block.values[first:end], block.reasons[first:end])
