"""What beat sends and how often: one static table. Every entry expires before the next one is due."""

from typing import Any, Final

SECOND: Final = 1.0
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE


def every(seconds: float, task: str, *, expires: float | None = None) -> dict[str, Any]:
    """Return one entry: run `task` every `seconds`; one that waited `expires` seconds (default: as long) is dropped."""
    return {"task": task, "schedule": seconds, "options": {"expires": expires or seconds}}


BEAT_SCHEDULE: Final[dict[str, dict[str, Any]]] = {
    "queue probe": every(15 * SECOND, "panel.core.tasks.queue_probe"),
    "dead-man ping": every(MINUTE, "panel.tasks.deadman_ping"),
    "silent servers": every(5 * SECOND, "fleet.tasks.servers_watch"),
    "overdue jobs": every(30 * SECOND, "fleet.tasks.jobs_expire"),
    "leasing tick": every(5 * SECOND, "fleet.tasks.leasing_tick"),
    "renewals": every(HOUR, "fleet.tasks.renewals_remind"),
    "endpoints tick": every(5 * SECOND, "endpoints.tasks.tick"),
    "keys over their tokens": every(10 * SECOND, "endpoints.tasks.keys_settle"),
    "old notifications": every(HOUR, "monitoring.delivery.tasks.forget"),
    "outbox": every(5 * SECOND, "monitoring.delivery.tasks.dispatch"),
    "old traffic": every(HOUR, "endpoints.tasks.traffic_forget"),
    "store tick": every(MINUTE, "monitoring.tasks.store_tick"),
    "store fold": every(HOUR, "monitoring.tasks.store_fold"),
    "store forget": every(HOUR, "monitoring.tasks.store_forget"),
    "go-live tests": every(10 * SECOND, "monitoring.tasks.golive_tick"),
    "probes kept": every(HOUR, "monitoring.tasks.probes_keep"),
    "engines kept": every(HOUR, "monitoring.tasks.engines_keep"),
    "diagnoses": every(3 * SECOND, "monitoring.diagnosing.tasks.follow"),
    "diagnoses of missed objectives": every(5 * MINUTE, "monitoring.diagnosing.tasks.watch"),
    "alerts": every(20 * SECOND, "monitoring.tasks.alerts_evaluate"),
    "old alerts": every(HOUR, "monitoring.tasks.alerts_forget"),
    "what cards do": every(2 * MINUTE, "monitoring.tasks.waste_judge"),
    "partitions": every(30 * MINUTE, "monitoring.tasks.partitions_make"),
    "ended sessions and tokens": every(6 * HOUR, "panel.accounts.tasks.clean", expires=HOUR),
    "old sightings": every(6 * HOUR, "fleet.tasks.sightings_clear", expires=HOUR),
}
