"""`python -m panel.up.alive worker|beat|prober`: whether this container's process told of itself lately; for health checks.

Without Django, because a container engine asks this every half minute.
"""

import os
import socket
import sys
import time
from typing import Final

import redis

# The keys and the patience of panel/core/liveness.py, which needs Django's settings.
KEYS: Final = {
    "worker": "fleetdeck:alive:workers",
    "beat": "fleetdeck:alive:beats",
    "prober": "fleetdeck:alive:probers",
}
SILENT_SECONDS: Final = 30.0


def is_mine(kind: str, name: str, host: str) -> bool:
    """Whether a process of that name runs on this host: workers are `celery@host`, the others `host:pid`."""
    return name.partition("@")[2] == host if kind == "worker" else name.rpartition(":")[0] == host


def main(arguments: list[str]) -> int:
    """Return 0 when alive, 1 when silent or when Valkey does not answer, 2 for a question that cannot be understood."""
    if len(arguments) != 1 or arguments[0] not in KEYS:
        print(__doc__, file=sys.stderr)
        return 2
    kind, host = arguments[0], socket.gethostname()
    client = redis.Redis.from_url(
        os.environ["REDIS_URL"], socket_timeout=5.0, socket_connect_timeout=5.0, decode_responses=True
    )
    try:
        told = client.hgetall(KEYS[kind])
    except redis.RedisError as error:
        print(f"Valkey does not answer: {error}", file=sys.stderr)
        return 1
    ages = [time.time() - float(at) for name, at in told.items() if is_mine(kind, str(name), host)]
    return 0 if any(age <= SILENT_SECONDS for age in ages) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
