"""What the live side of this process does, left in Valkey for the Self-health page (`fleetdeck:live:<host>:<pid>`)."""

import os
import socket
import weakref
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from redis import asyncio as aioredis

    from monitoring.live.hub import Hub

KEY_PREFIX: Final = "fleetdeck:live:"
TTL_SECONDS: Final = 30

sockets: "weakref.WeakSet[Any]" = weakref.WeakSet()


async def write(client: "aioredis.Redis", hub: "Hub") -> None:
    """Store the counters of this process: sockets, topics, frames delivered, merged for slow browsers, resyncs."""
    values = {
        "sockets": len(sockets),
        "topics": len(hub.subscriptions),
        "delivered": hub.delivered,
        "merged": sum(one.mailbox.merged for one in sockets),
        "resyncs": hub.resyncs,
    }
    key = f"{KEY_PREFIX}{socket.gethostname()}:{os.getpid()}"
    pipeline = client.pipeline()
    pipeline.hset(key, mapping={name: str(value) for name, value in values.items()})
    pipeline.expire(key, TTL_SECONDS)
    await pipeline.execute()
