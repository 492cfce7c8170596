"""The store's tables with partitions for the days that tests use, in a transaction that is rolled back."""

from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from monitoring.store.tables import HOUR_MS, KINDS
from panel.core.partitions import partitions_make
from tests.ingest.conftest import store  # noqa: F401 - a fixture
from tests.monitoring.samples import BASE_HOUR


@pytest.fixture
def tables(db):
    """Partitions around BASE_HOUR."""
    day = datetime.fromtimestamp(BASE_HOUR * 3600, tz=UTC).date()
    for kind in KINDS:
        partitions_make(kind.samples, first=day - timedelta(days=3), last=day + timedelta(days=3))


@pytest.fixture
def at_hour():
    """Move the clock to so many hours after BASE_HOUR."""
    moved = []

    def move(hours):
        traveller = time_machine.travel(
            datetime.fromtimestamp((BASE_HOUR + hours) * HOUR_MS / 1000, tz=UTC), tick=False
        )
        traveller.start()
        moved.append(traveller)

    yield move
    for traveller in reversed(moved):
        traveller.stop()
