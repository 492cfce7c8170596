"""Checks of the panel's own processes: beat, workers, and the queue between them."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from panel.core import liveness
from panel.core.clock import now
from panel.core.health import Check, CheckStatus
from panel.core.valkey import valkey
from panel.health.words import phrases, seconds, things

QUEUE_WARNING: Final = 100
QUEUE_CRITICAL: Final = 1_000
WAIT_WARNING_SECONDS: Final = 30.0
WAIT_CRITICAL_SECONDS: Final = 120.0
PROBE_SILENT_SECONDS: Final = 60.0


def beat_checks() -> Iterable[Check]:
    """Beat ticks, and there is exactly one of it."""
    beats = liveness.beats()
    alive = [one for one in beats if one.is_alive]
    name = _("Scheduler (beat)")
    limit = _("one, silent for at most %(limit)s") % {"limit": seconds(liveness.SILENT_SECONDS)}
    if not alive:
        value = _("silent for %(age)s") % {"age": seconds(beats[0].age_seconds)} if beats else _("never seen")
        advice = _("Start beat: without it nothing is rolled up, cleaned or noticed as silent.")
        age = beats[0].age_seconds if beats else None
        yield Check("beat_age_seconds", name, CheckStatus.CRITICAL, value, limit, advice, age)
        return
    value = _("last tick %(age)s ago") % {"age": seconds(alive[0].age_seconds)}
    if len(alive) > 1:
        names = things(one.name for one in alive)
        advice = _("Stop all but one, or every job runs several times: %(names)s") % {"names": names}
        yield Check("beat_age_seconds", name, CheckStatus.WARNING, value, limit, advice, alive[0].age_seconds)
    else:
        yield Check("beat_age_seconds", name, CheckStatus.OK, value, limit, number=alive[0].age_seconds)


def prober_checks() -> Iterable[Check]:
    """The panel probes what is to be probed from it."""
    alive = [one for one in liveness.probers() if one.is_alive]
    name, limit = _("Prober"), _("one, silent for at most %(limit)s") % {"limit": seconds(liveness.SILENT_SECONDS)}
    if alive:
        value = _("last sign of life %(age)s ago") % {"age": seconds(alive[0].age_seconds)}
        yield Check("probers", name, CheckStatus.OK, value, limit, number=len(alive))
    else:
        advice = _("Start `manage.py prober`: without it nothing is probed from the panel.")
        yield Check("probers", name, CheckStatus.WARNING, _("never seen"), limit, advice, 0)


def worker_checks() -> Iterable[Check]:
    """At least one worker's loop turns; those that died without a word are named."""
    workers = liveness.workers()
    alive = [one for one in workers if one.is_alive]
    silent = [one.name for one in workers if not one.is_alive]
    name = _("Workers")
    limit = _("at least one, silent for at most %(limit)s") % {"limit": seconds(liveness.SILENT_SECONDS)}
    if not alive:
        value = _("silent for %(age)s") % {"age": seconds(workers[0].age_seconds)} if workers else _("never seen")
        yield Check(
            "workers", name, CheckStatus.CRITICAL, value, limit, _("Start a worker; its log says why it ended."), 0
        )
        return
    value = ngettext("%(count)s alive", "%(count)s alive", len(alive)) % {"count": len(alive)}
    value = phrases(value, _("last sign of life %(age)s ago") % {"age": seconds(alive[0].age_seconds)})
    advice = _("Silent within the last hour: %(names)s") % {"names": things(silent)} if silent else ""
    status = CheckStatus.WARNING if silent else CheckStatus.OK
    yield Check("workers", name, status, value, limit, advice, len(alive))


@dataclass(frozen=True, slots=True)
class Queue:
    """What waits in the broker. oldest_seconds: how long the oldest has waited, None when none waits or none can tell."""

    depth: int
    oldest_seconds: float | None


def read_queue() -> Queue:
    """Ask the broker. Raises RedisError, or OSError and kombu's errors for other brokers."""
    if settings.BROKER_URL != settings.REDIS_URL:
        return _read_foreign_queue()
    key = f"{settings.CELERY_BROKER_TRANSPORT_OPTIONS['global_keyprefix']}{settings.CELERY_TASK_DEFAULT_QUEUE}"
    depth = int(valkey().llen(key))
    oldest = valkey().lindex(key, -1)  # sent to the left, taken from the right
    return Queue(depth, _waited(oldest) if oldest else None)


def _waited(message: Any) -> float | None:
    try:
        published_at = float(json.loads(message)["headers"]["published_at"])
    except (ValueError, KeyError, TypeError):
        return None
    return max(0.0, now().timestamp() - published_at)


def _read_foreign_queue() -> Queue:
    """Ask a broker of another kind how much waits; it does not show the messages."""
    from celery import current_app

    with current_app.connection_for_read(connect_timeout=2.0) as connection:
        channel: Any = connection.default_channel
        declared = channel.queue_declare(settings.CELERY_TASK_DEFAULT_QUEUE, passive=True)
        return Queue(int(declared.message_count), None)


def _grade(value: float, warning: float, critical: float) -> CheckStatus:
    if value >= critical:
        return CheckStatus.CRITICAL
    return CheckStatus.WARNING if value >= warning else CheckStatus.OK


def queue_checks() -> Iterable[Check]:
    """How much waits, for how long, and whether a task still comes through from beat to a worker."""
    from kombu.exceptions import OperationalError

    more_workers = _(
        "Tasks come faster than they are done: start more workers, or see the worker's log for slow tasks."
    )
    try:
        queue = read_queue()
    except (OSError, OperationalError):
        yield Check(
            "queue_depth",
            _("Queue"),
            CheckStatus.UNKNOWN,
            _("unknown"),
            advice=_("The broker of BROKER_URL does not answer."),
        )
    else:
        status = _grade(queue.depth, QUEUE_WARNING, QUEUE_CRITICAL)
        advice = more_workers if status != CheckStatus.OK else ""
        limit = _("below %(limit)s") % {"limit": QUEUE_WARNING}
        yield Check("queue_depth", _("Tasks waiting"), status, str(queue.depth), limit, advice, queue.depth)
        if queue.oldest_seconds is not None:
            status = _grade(queue.oldest_seconds, WAIT_WARNING_SECONDS, WAIT_CRITICAL_SECONDS)
            advice = more_workers if status != CheckStatus.OK else ""
            limit = _("below %(limit)s") % {"limit": seconds(WAIT_WARNING_SECONDS)}
            age = queue.oldest_seconds
            yield Check("queue_oldest_seconds", _("Oldest task waiting"), status, seconds(age), limit, advice, age)
    yield _probe_check()


def _probe_check() -> Check:
    name = _("From scheduler to worker")
    probe = liveness.queue_probe_last()
    limit = _("a task came through within %(limit)s") % {"limit": seconds(PROBE_SILENT_SECONDS)}
    if probe is None or probe.age_seconds > PROBE_SILENT_SECONDS:
        value = _("none for %(age)s") % {"age": seconds(probe.age_seconds)} if probe else _("none yet")
        advice = _("Beat, broker or worker is stuck; the lines above say which.")
        return Check("queue_wait_seconds", name, CheckStatus.CRITICAL, value, limit, advice)
    value = _("waited %(wait)s, %(age)s ago") % {
        "wait": seconds(probe.waited_seconds),
        "age": seconds(probe.age_seconds),
    }
    status = _grade(probe.waited_seconds, WAIT_WARNING_SECONDS, WAIT_CRITICAL_SECONDS)
    return Check("queue_wait_seconds", name, status, value, limit, number=probe.waited_seconds)
