"""The Celery app of workers and beat: JSON only, late acknowledgement, time limits, one task in hand at a time."""

import os
import time
import warnings
from typing import Any, Final

from celery import Celery, bootsteps
from celery.beat import PersistentScheduler
from celery.exceptions import SecurityWarning
from celery.signals import before_task_publish, setup_logging

from panel.schedule import BEAT_SCHEDULE

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "panel.settings")

HEARTBEAT_SECONDS: Final = 5.0

# Celery warns of workers that run as root because of pickled messages; ours accept JSON alone.
warnings.filterwarnings("ignore", category=SecurityWarning)

app = Celery("fleetdeck")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.beat_schedule = BEAT_SCHEDULE
app.autodiscover_tasks()
app.autodiscover_tasks(["monitoring.delivery", "monitoring.diagnosing"])


class Heartbeat(bootsteps.StartStopStep):
    """Tells Valkey every few seconds that this worker's event loop turns; /readyz and Self-health read it."""

    requires = ("celery.worker.components:Timer",)

    def start(self, worker: Any) -> None:
        """Begin when the worker begins."""
        from panel.core.liveness import worker_alive

        worker_alive(worker.hostname)
        self.timer = worker.timer.call_repeatedly(HEARTBEAT_SECONDS, worker_alive, (worker.hostname,))

    def stop(self, worker: Any) -> None:
        """Say good-bye, so that a worker that was stopped on purpose does not look like one that died."""
        from panel.core.liveness import worker_gone

        self.timer.cancel()
        worker_gone(worker.hostname)


app.steps["worker"].add(Heartbeat)


class Scheduler(PersistentScheduler):
    """Celery's scheduler that tells Valkey of every tick."""

    _told_at = float("-inf")

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Send what is due, then tell; at most once in HEARTBEAT_SECONDS. Returns the seconds until the next tick."""
        from panel.core.liveness import beat_alive

        wait: float = super().tick(*args, **kwargs)
        if time.monotonic() - self._told_at >= HEARTBEAT_SECONDS:
            self._told_at = time.monotonic()
            beat_alive()
        return min(wait, HEARTBEAT_SECONDS)


@setup_logging.connect
def keep_logging(**_: Any) -> None:
    """Being connected is enough: Celery then leaves logging to Django's settings."""


@before_task_publish.connect
def stamp_published_at(headers: dict[str, Any] | None = None, **_: Any) -> None:
    """Write into every message when it was sent, so that Self-health can tell the age of the oldest one that waits."""
    if headers is not None:
        headers["published_at"] = time.time()
