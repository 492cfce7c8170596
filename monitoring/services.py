"""What keeps the time-series store in order: partitions, rollups, sealing, retention. Called by tasks, safe to repeat."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from django.conf import settings
from django.db import Error as DatabaseError
from django.db import transaction

from monitoring.store.closing import close_hours, fold_days, forget_sealed, redo_dirty
from monitoring.store.keeping import StoreBusy, empty_sealed_partitions, forget_rollups, forget_samples, sole_keeper
from monitoring.store.progress import progress_of
from monitoring.store.rolling import roll_open
from monitoring.store.tables import DAY_MS, FIVE_MINUTES, HOUR_MS, KINDS, MINUTE, SubjectKind
from panel.core.clock import now as clock_now
from panel.core.enums import Severity
from panel.core.events import event_write
from panel.core.models import Event
from panel.core.partitions import PartitionsBusy, partition_state, partitions_make

DAYS_AHEAD: Final = 7
ALERT_BELOW_DAYS: Final = 3
ALERT_EVERY: Final = timedelta(hours=12)
MINUTES_EVERY_MS: Final = 300_000  # rows of minutes are large; until then charts read the samples
PARTITIONS_LOW: Final = "store.partitions_low"

log = structlog.get_logger(__name__)


def _for_each_kind(name: str, work: Callable[[SubjectKind], Any]) -> dict[str, Any]:
    """Do the work for each kind by itself: what fails for one is logged and does not stop the others."""
    done: dict[str, Any] = {}
    for kind in KINDS:
        try:
            done[kind.name] = work(kind)
        except (StoreBusy, PartitionsBusy):
            done[kind.name] = "busy"
        except DatabaseError as error:
            log.exception("store.failed", step=name, kind=kind.name, error=str(error))
            done[kind.name] = "failed"
    return done


def store_tick(*, now: datetime) -> dict[str, Any]:
    """Close hours that are over, redo those with late samples, bring rollups up to now. Once a minute."""
    return _for_each_kind("tick", lambda kind: _tick(kind, _unix_ms(now)))


def _tick(kind: SubjectKind, now_ms: int) -> dict[str, int]:
    with sole_keeper(kind):
        done = {"closed": close_hours(kind, now_ms=now_ms), "redone": redo_dirty(kind)}
        with transaction.atomic():
            done["fives"] = roll_open(kind, FIVE_MINUTES, now_ms=now_ms)
        if now_ms - (progress_of(kind, str(MINUTE)) or 0) >= MINUTES_EVERY_MS:
            with transaction.atomic():
                done["minutes"] = roll_open(kind, MINUTE, now_ms=now_ms)
    return done


def store_fold(*, now: datetime) -> dict[str, Any]:
    """Fold closed days into blocks and empty their partitions of samples. Once an hour."""
    return _for_each_kind("fold", lambda kind: _fold(kind, _unix_ms(now)))


def _fold(kind: SubjectKind, now_ms: int) -> dict[str, int]:
    with sole_keeper(kind):
        return {"folded": fold_days(kind), "emptied": len(empty_sealed_partitions(kind, now_ms=now_ms))}


def store_forget(*, now: datetime) -> dict[str, Any]:
    """Drop partitions and delete sealed samples and rollups that are older than their retention. Once an hour."""
    return _for_each_kind("forget", lambda kind: _forget(kind, _unix_ms(now)))


def _forget(kind: SubjectKind, now_ms: int) -> dict[str, int]:
    with sole_keeper(kind):
        rows = _forget_rows(kind, now_ms)
    before_ms = now_ms - settings.RAW_RETENTION_HOURS * HOUR_MS
    return {"rows": rows, "partitions": len(forget_samples(kind, before_ms=before_ms))}


def _forget_rows(kind: SubjectKind, now_ms: int) -> int:
    return forget_sealed(kind, before_ms=now_ms - settings.RAW_RETENTION_HOURS * HOUR_MS) + forget_rollups(
        kind,
        minutes_before_ms=now_ms - settings.MINUTE_RETENTION_DAYS * DAY_MS,
        hours_before_ms=now_ms - settings.HOUR_RETENTION_DAYS * DAY_MS,
    )


def sample_partitions_make() -> dict[str, Any]:
    """Make the partitions that samples may fall on: the retention's days back, `DAYS_AHEAD` ahead. Alerts when few are."""
    return _for_each_kind("partitions", lambda kind: _make_partitions(kind, clock_now()))


def _make_partitions(kind: SubjectKind, now: datetime) -> int:
    first = (now - timedelta(hours=settings.RAW_RETENTION_HOURS)).date()
    try:
        return len(partitions_make(kind.samples, first=first, last=now.date() + timedelta(days=DAYS_AHEAD)))
    finally:
        _warn_of_few(kind, now)


def _warn_of_few(kind: SubjectKind, now: datetime) -> None:
    """Write an event when fewer than `ALERT_BELOW_DAYS` days have their partition ahead, at most every 12 hours."""
    state = partition_state(kind.samples, today=now.date())
    if state.ahead >= ALERT_BELOW_DAYS:
        return
    log.error("store.partitions_low", table=state.table, days_ahead=state.ahead)
    told = Event.objects.filter(kind=PARTITIONS_LOW, subject_name=state.table, at__gt=now - ALERT_EVERY)
    if not told.exists():
        event_write(
            kind=PARTITIONS_LOW,
            severity=Severity.WARNING if state.ahead else Severity.CRITICAL,
            subject_kind="table",
            subject_id=None,
            subject_name=state.table,
            data={"days_ahead": state.ahead, "days_wanted": DAYS_AHEAD},
        )


def _unix_ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
