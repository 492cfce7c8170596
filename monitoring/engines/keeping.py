"""What is kept of engines' histograms: minutes for a week, hours for two years."""

import hashlib
import json
from collections import defaultdict
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connection

from monitoring.engines.histograms import Bucketed
from monitoring.engines.models import EngineHour
from monitoring.engines.tables import HISTOGRAMS, KEPT_DAYS
from panel.core.partitions import PartitionsBusy, partitions_drop, partitions_make

DAYS_AHEAD: Final = 7
# Hours are summed up again for this long, in case an agent was away.
LATE: Final = timedelta(hours=26)


def hours_sum_up(*, at: datetime) -> int:
    """Keep the closed hours of the last day, each as one histogram for each set of buckets; returns how many. Repeatable."""
    end = at.replace(minute=0, second=0, microsecond=0)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT subject_id, name, date_trunc('hour', at), bounds, counts, sum_seconds FROM engine_histogram"
            " WHERE at >= %s AND at < %s",
            [end - LATE, end],
        )
        found: defaultdict[tuple[int, int, datetime, str], Bucketed] = defaultdict(Bucketed)
        for subject, name, hour, bounds, counts, seconds in cursor:
            key = (subject, name, hour, json.dumps(bounds))
            found[key] = found[key].merged(Bucketed.of(bounds, counts, seconds))
    rows = [
        EngineHour(
            subject_id=subject, name=name, hour_at=hour, bounds=list(whole.bounds),
            bounds_digest=hashlib.md5(bounds.encode(), usedforsecurity=False).hexdigest(),
            counts=list(whole.counts) if whole.bounds else [whole.unplaced], sum_seconds=whole.sum_seconds,
        )
        for (subject, name, hour, bounds), whole in found.items()
    ]  # fmt: skip
    EngineHour.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["subject_id", "name", "hour_at", "bounds_digest"],
        update_fields=["counts", "sum_seconds"],
        batch_size=1_000,
    )
    return len(rows)


def histogram_partitions_make(*, at: datetime) -> None:
    """Have room for histograms of two days back to a week ahead."""
    first = (at - timedelta(hours=settings.RAW_RETENTION_HOURS)).date()
    try:
        partitions_make(HISTOGRAMS, first=first, last=(at + timedelta(days=DAYS_AHEAD)).date())
    except PartitionsBusy:
        return


def histograms_forget(*, at: datetime) -> None:
    """Drop the minutes and hours that are older than they are kept."""
    try:
        partitions_drop(HISTOGRAMS, before=(at - timedelta(days=KEPT_DAYS)).date())
    except (PartitionsBusy, DatabaseError):
        return
    EngineHour.objects.filter(hour_at__lt=at - timedelta(days=settings.HOUR_RETENTION_DAYS)).delete()
