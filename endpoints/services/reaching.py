"""Replicas that a gateway made after them cannot reach are started anew, where that interrupts nobody."""

from collections.abc import Collection, Iterable
from typing import Final

from endpoints.enums import Wanted
from endpoints.models import Endpoint, Replica, Rollout
from endpoints.services.binding import Place, gateway_places, unreached
from endpoints.services.placing import room_for
from endpoints.services.rollouts import endpoint_restart
from panel.accounts.audit import Actor
from panel.core.errors import Conflict, NotFound

ACTOR: Final = "new gateway"


def endpoints_reach() -> list[int]:
    """Restart the endpoints that a gateway cannot reach, once for each gateway, where that interrupts nobody; return their ids.

    One whose only replica serves through an earlier gateway and has no card to move to is left to a person.
    """
    gateways = gateway_places()
    if not gateways:
        return []
    replicas = Replica.objects.filter(
        ended_at=None, wanted=Wanted.RUN, created_at__lt=max(since for _server, since in gateways),
        endpoint__deleting_at=None, endpoint__deleted_at=None, endpoint__active_revision__isnull=False,
    ).select_related("endpoint__active_revision")  # fmt: skip
    wanting: dict[int, list[tuple[Replica, list[Place]]]] = {}
    for replica in replicas:
        places = unreached(replica, gateways)
        if places:
            wanting.setdefault(replica.endpoint_id, []).append((replica, places))
    return [endpoint_id for endpoint_id, found in wanting.items() if _restarted(found, gateways)]


def _restarted(found: list[tuple[Replica, list[Place]]], gateways: Collection[Place]) -> bool:
    endpoint = found[0][0].endpoint
    newest = max(since for _replica, places in found for _server, since in places)
    begun = Rollout.objects.filter(endpoint=endpoint)
    if begun.filter(ended_at=None).exists() or begun.filter(started_at__gt=newest).exists():
        return False
    if not _is_harmless(endpoint, [replica for replica, _places in found], gateways):
        return False
    try:
        endpoint_restart(endpoint_id=endpoint.pk, actor=Actor.system(ACTOR))
    except (Conflict, NotFound):  # somebody was quicker
        return False
    return True


def _is_harmless(endpoint: Endpoint, replicas: Iterable[Replica], gateways: Collection[Place]) -> bool:
    """Say whether nobody's requests are interrupted: others serve meanwhile, there is room for one more, or nobody calls it."""
    is_called = any(server_id == replica.server_id for replica in replicas for server_id, _since in gateways)
    if endpoint.desired_replicas > 1 or not is_called:
        return True
    revision = endpoint.active_revision
    return revision is not None and room_for(endpoint, revision) > 0
