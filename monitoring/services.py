"""What keeps the time-series store in order: partitions, rollups, sealing, retention. Called by tasks."""

from datetime import timedelta
from typing import Final

import structlog
from django.conf import settings
from django.db import Error as DatabaseError

from monitoring.store.tables import KINDS
from panel.core.clock import now
from panel.core.partitions import PartitionsBusy, partitions_make

DAYS_AHEAD: Final = 7
ALERT_BELOW_DAYS: Final = 3

log = structlog.get_logger(__name__)


def sample_partitions_make() -> dict[str, int]:
    """Make the partitions of the days that samples may fall on: the retention's days back, `DAYS_AHEAD` ahead.

    Returns how many were made by table; -1 for a table that failed (logged; the others are still made).
    """
    today = now().date()
    first = (now() - timedelta(hours=settings.RAW_RETENTION_HOURS)).date()
    made = {}
    for kind in KINDS:
        try:
            made[kind.samples.name] = len(
                partitions_make(kind.samples, first=first, last=today + timedelta(days=DAYS_AHEAD))
            )
        except PartitionsBusy:
            made[kind.samples.name] = 0
        except DatabaseError as error:
            log.warning("partitions.make_failed", table=kind.samples.name, error=str(error))
            made[kind.samples.name] = -1
    return made
