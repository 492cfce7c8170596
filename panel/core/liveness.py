"""Who of the panel's own processes is alive: workers, beat, probers, and the way from beat through the queue to a worker.

Each writes the time into a hash in Valkey; whoever is silent for `SILENT_SECONDS` counts as dead. Writing is best
effort: a worker does not stop because Valkey is away, and a reader then learns that Valkey is away anyway.
"""

import os
import socket
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import structlog
from redis.exceptions import RedisError

from panel.core.clock import now
from panel.core.valkey import valkey

WORKERS_KEY: Final = "fleetdeck:alive:workers"
BEATS_KEY: Final = "fleetdeck:alive:beats"
PROBERS_KEY: Final = "fleetdeck:alive:probers"
QUEUE_KEY: Final = "fleetdeck:alive:queue"
SILENT_SECONDS: Final = 30.0
FORGOTTEN_SECONDS: Final = 3600.0

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Alive:
    """One process that told of itself: when, and how many seconds ago that was."""

    name: str
    at: datetime
    age_seconds: float

    @property
    def is_alive(self) -> bool:
        """Whether it spoke within SILENT_SECONDS."""
        return self.age_seconds <= SILENT_SECONDS


@dataclass(frozen=True, slots=True)
class QueueProbe:
    """The last task that went from beat through the broker to a worker: when it ran and how long it waited."""

    at: datetime
    age_seconds: float
    waited_seconds: float


def _write(key: str, field: str, value: str) -> None:
    try:
        valkey().hset(key, field, value)
    except (RedisError, OSError) as error:
        log.warning("liveness.write_failed", key=key, error=str(error))


def worker_alive(name: str) -> None:
    """Say that this worker runs."""
    _write(WORKERS_KEY, name, str(now().timestamp()))


def worker_gone(name: str) -> None:
    """Say that this worker was stopped on purpose."""
    try:
        valkey().hdel(WORKERS_KEY, name)
    except (RedisError, OSError) as error:
        log.warning("liveness.write_failed", key=WORKERS_KEY, error=str(error))


def beat_alive() -> None:
    """Say that this process's beat ticks."""
    _write(BEATS_KEY, f"{socket.gethostname()}:{os.getpid()}", str(now().timestamp()))


def prober_alive() -> None:
    """Say that this process probes, or stands by to."""
    _write(PROBERS_KEY, f"{socket.gethostname()}:{os.getpid()}", str(now().timestamp()))


def queue_probed(*, waited_seconds: float) -> None:
    """Say that a task came through the queue, and how long it waited there."""
    _write(QUEUE_KEY, "last", f"{now().timestamp()} {waited_seconds}")


def _read(key: str) -> list[Alive]:
    """Return who told of itself, newest first, and forget those silent for an hour. Raises RedisError."""
    moment = now()
    found: list[Alive] = []
    for name, value in valkey().hgetall(key).items():
        at = datetime.fromtimestamp(float(value), tz=UTC)
        age = (moment - at).total_seconds()
        if age > FORGOTTEN_SECONDS:
            valkey().hdel(key, name)
        else:
            found.append(Alive(name=str(name), at=at, age_seconds=age))
    return sorted(found, key=lambda alive: alive.age_seconds)


def workers() -> list[Alive]:
    """Return the workers of the last hour, newest sign of life first. Raises RedisError."""
    return _read(WORKERS_KEY)


def beats() -> list[Alive]:
    """Return the beats of the last hour, newest sign of life first. Raises RedisError."""
    return _read(BEATS_KEY)


def probers() -> list[Alive]:
    """Return the probers of the last hour, newest sign of life first. Raises RedisError."""
    return _read(PROBERS_KEY)


def queue_probe_last() -> QueueProbe | None:
    """Return the last probe that came through the queue, or None. Raises RedisError."""
    value = valkey().hget(QUEUE_KEY, "last")
    if value is None:
        return None
    ran_at, waited = (float(part) for part in value.split())
    at = datetime.fromtimestamp(ran_at, tz=UTC)
    return QueueProbe(at=at, age_seconds=(now() - at).total_seconds(), waited_seconds=waited)
