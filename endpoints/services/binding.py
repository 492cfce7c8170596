"""Where engines listen: on loopback alone while no gateway is on another machine.

That is settled when a replica is placed, by the gateways that there are then, and stays so for as long as it runs.
"""

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Final

from endpoints.models import Gateway, Replica

LOOPBACK: Final = "127.0.0.1"
ANYWHERE: Final = "0.0.0.0"  # noqa: S104  # gateways of other machines must reach it
# Of a gateway: its server, and since when it is one.
Place = tuple[int, datetime]


def gateway_places() -> list[Place]:
    """Return where gateways are, and since when."""
    return list(Gateway.objects.values_list("server_id", "created_at"))


def listens_on(replica: Replica, gateways: Iterable[Place]) -> str:
    """Return the address that a replica was told to listen on."""
    was_elsewhere = any(server_id != replica.server_id and since <= replica.created_at for server_id, since in gateways)
    return ANYWHERE if was_elsewhere else LOOPBACK


def unreached(replica: Replica, gateways: Collection[Place]) -> list[Place]:
    """Return the gateways that cannot reach a replica."""
    if listens_on(replica, gateways) == ANYWHERE:
        return []
    return [place for place in gateways if place[0] != replica.server_id]
