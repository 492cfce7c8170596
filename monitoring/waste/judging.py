"""Bringing the use of every card up to the minutes that are rolled up: once every few minutes, a batch of cards at a time.

Each batch is a transaction of its own that locks its rows, so two workers never count a minute twice. Minutes are judged one
by one and never again; what came too late for its minute stays unknown, which is what it was when somebody might have acted.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction

from fleet.models import Gpu
from monitoring.models import GpuUse, IdleInterval
from monitoring.store.progress import progress_of
from monitoring.store.tables import GPU, MINUTE
from monitoring.waste.enums import Use
from monitoring.waste.levels import Levels, learn
from monitoring.waste.minutes import Judged, Minute, judge
from monitoring.waste.reading import minutes_of
from monitoring.waste.runs import LEAST_MINUTES, Run, quiet_count, quiet_runs, read, written
from monitoring.waste.runs import MINUTE as ONE_MINUTE
from monitoring.waste.windows import QUIET, WINDOW_MINUTES, judge_window
from panel.core.clock import now

BATCH: Final = 500
# What a card draws while it waits is learned from so many of its newest quiet minutes of each kind.
LEARNED_FROM: Final = 120
# A panel that was away for longer begins anew: what was not judged then is not known.
LONGEST_PAUSE: Final = timedelta(hours=6)
_FIELDS: Final = (
    "use", "ground", "since", "judged_until", "recent", "quiet_minutes", "known_minutes", "worked_at",
    "bare_watts", "loaded_watts", "bare_powers", "loaded_powers",
)  # fmt: skip


def waste_judge(*, until: datetime | None = None) -> int:
    """Judge what every card did since it was last looked at; returns how many cards were.

    until: left out, up to where minutes are rolled up.
    """
    end = _whole_minute(until or _rolled_up_until() or now())
    cards = Gpu.objects.filter(removed_at=None, parent=None, server__retired_at=None).order_by("pk")
    ids = list(cards.values_list("pk", flat=True))
    for first in range(0, len(ids), BATCH):
        with transaction.atomic():
            _judge_batch(ids[first : first + BATCH], end)
    return len(ids)


def _rolled_up_until() -> datetime | None:
    until_ms = progress_of(GPU, str(MINUTE))
    return None if until_ms is None else datetime.fromtimestamp(until_ms / 1000, tz=now().tzinfo)


def _whole_minute(at: datetime) -> datetime:
    return at.replace(second=0, microsecond=0)


def _judge_batch(ids: Sequence[int], end: datetime) -> None:
    fresh = [GpuUse(gpu_id=pk, since=end - ONE_MINUTE, judged_until=end - ONE_MINUTE) for pk in ids]
    GpuUse.objects.bulk_create(fresh, ignore_conflicts=True)
    uses = {use.gpu_id: use for use in GpuUse.objects.select_for_update().filter(gpu__in=ids).order_by("gpu")}
    gpus = list(Gpu.objects.filter(pk__in=uses).select_related("server__agent"))
    for use in uses.values():
        _skip_pause(use, end)
    start = min((use.judged_until for use in uses.values()), default=end)
    if start >= end:
        return
    minutes = minutes_of(gpus, start=start, end=end)
    open_intervals = {row.gpu_id: row for row in IdleInterval.objects.filter(gpu__in=uses, is_open=True)}
    changes = _Changes([], [])
    for gpu in gpus:
        use = uses[gpu.pk]
        new = minutes[gpu.pk][(use.judged_until - start) // ONE_MINUTE :]
        if new:
            _judge_card(gpu, use, new, open_intervals.get(gpu.pk), changes)
    GpuUse.objects.bulk_update(uses.values(), _FIELDS)
    IdleInterval.objects.bulk_update(changes.changed, ("ended_at", "is_open", "quiet_minutes", "evidence"))
    IdleInterval.objects.bulk_create(changes.made)


def _skip_pause(use: GpuUse, end: datetime) -> None:
    if end - use.judged_until > LONGEST_PAUSE:
        use.judged_until, use.recent = end - LONGEST_PAUSE, ""


@dataclass(frozen=True, slots=True)
class _Changes:
    made: list[IdleInterval]
    changed: list[IdleInterval]


def _judge_card(
    gpu: Gpu, use: GpuUse, new: Sequence[Minute], open_interval: IdleInterval | None, changes: _Changes
) -> None:
    levels = Levels(gpu.power_limit_watts, use.bare_watts, use.loaded_watts)
    judged = [judge(minute, levels) for minute in new]
    before = use.judged_until
    word = use.recent + written(judged)
    use.judged_until = before + len(new) * ONE_MINUTE
    _learn(use, new, judged, gpu.power_limit_watts)
    _tell_use(use, word, before, judged)
    seen = _Seen(word, use.judged_until - len(word) * ONE_MINUTE, before, _evidence(gpu, new, judged))
    _follow_intervals(use, open_interval, seen, changes)


def _tell_use(use: GpuUse, word: str, before: datetime, judged: Sequence[Judged]) -> None:
    use.recent = word[-WINDOW_MINUTES:]
    worked = [place for place, each in enumerate(judged) if each.use == Use.WORKING]
    if worked:
        use.worked_at = before + (worked[-1] + 1) * ONE_MINUTE
    verdict = judge_window(read(use.recent))
    if verdict.use != use.use:
        use.since = use.judged_until
    use.use, use.ground = verdict.use, verdict.ground
    use.quiet_minutes, use.known_minutes = verdict.quiet_minutes, verdict.known_minutes


def _learn(use: GpuUse, new: Sequence[Minute], judged: Sequence[Judged], limit_watts: float | None) -> None:
    """Add the powers of quiet minutes to what the levels are learned from."""
    for minute, each in zip(new, judged, strict=True):
        if each.use in QUIET and minute.power_watts is not None:
            (use.loaded_powers if minute.is_held else use.bare_powers).append(round(minute.power_watts, 1))
    use.bare_powers, use.loaded_powers = use.bare_powers[-LEARNED_FROM:], use.loaded_powers[-LEARNED_FROM:]
    use.bare_watts = learn(use.bare_powers, limit_watts=limit_watts)
    use.loaded_watts = learn(use.loaded_powers, limit_watts=limit_watts)


@dataclass(frozen=True, slots=True)
class _Seen:
    """Minutes of a card as a word from `first_at` on, of which those since `since` are new, and the evidence of the new."""

    word: str
    first_at: datetime
    since: datetime
    evidence: dict[str, Any]


def _evidence(gpu: Gpu, new: Sequence[Minute], judged: Sequence[Judged]) -> dict[str, Any]:
    quiet = [minute for minute, each in zip(new, judged, strict=True) if each.use in QUIET]
    return {
        "work_percent": _most(minute.work_percent for minute in quiet),
        "memory_share": _most(minute.memory_share for minute in quiet),
        "power_watts": next((minute.power_watts for minute in reversed(quiet) if minute.power_watts is not None), None),
        "power_limit_watts": gpu.power_limit_watts,
        "processes": quiet[-1].processes if quiet else None,
    }


def _most(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _follow_intervals(use: GpuUse, open_interval: IdleInterval | None, seen: _Seen, changes: _Changes) -> None:
    """Carry on the open interval with the run that continues it, and begin one for each other run that is long enough."""
    runs = quiet_runs(seen.word, seen.first_at)
    if open_interval is not None:
        carried = next((run for run in runs if run.use == open_interval.use and _continues(run, open_interval)), None)
        _carry_on(open_interval, carried, seen)
        changes.changed.append(open_interval)
        runs = [run for run in runs if run is not carried]
    changes.made.extend(
        IdleInterval(
            gpu_id=use.gpu_id,
            use=run.use,
            started_at=run.started_at,
            ended_at=run.ended_at,
            is_open=run.is_open,
            quiet_minutes=run.quiet_minutes,
            evidence=seen.evidence,
        )
        for run in runs
        if run.quiet_minutes >= LEAST_MINUTES and (run.is_open or run.ended_at > seen.since)
    )


def _continues(run: Run, interval: IdleInterval) -> bool:
    return run.started_at <= interval.ended_at <= run.ended_at


def _carry_on(interval: IdleInterval, run: Run | None, seen: _Seen) -> None:
    interval.is_open = run is not None and run.is_open
    if run is not None and run.ended_at > interval.ended_at:
        interval.quiet_minutes += quiet_count(seen.word, seen.first_at, start=interval.ended_at, end=run.ended_at)
        interval.ended_at = run.ended_at
        interval.evidence = _joined(interval.evidence, seen.evidence)


def _joined(before: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    most = {name: _most((before.get(name), new.get(name))) for name in ("work_percent", "memory_share")}
    return {**before, **{name: value for name, value in new.items() if value is not None}, **most}
