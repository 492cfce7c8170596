"""Snapshots of live topics over HTTP, for browsers whose sockets are blocked on the way: the same data, polled."""

from typing import Any, Final

from django.http import JsonResponse

from frontend.access import PageRequest, page
from monitoring.live.topics import resolve
from panel.accounts.capabilities import Capability
from panel.accounts.models import User
from panel.core.clock import now
from panel.core.errors import NotFound

MOST_TOPICS: Final = 16


def _frame(user: User, name: str, at: str) -> dict[str, Any] | None:
    """Return a topic's snapshot as the socket would send it; None when this person may not see it or it is gone."""
    try:
        topic, identifier = resolve(name)
        if not topic.authorize(user, identifier):
            return None
        data = topic.snapshot(identifier)
    except NotFound:
        return None
    return {"type": "snapshot", "topic": name, "seq": 0, "at": at, "data": data}


@page(Capability.FLEET_VIEW)
def snapshots(request: PageRequest) -> JsonResponse:
    """Answer the snapshots of the topics asked for, each authorised as on the socket."""
    at = now().isoformat()
    names = list(dict.fromkeys(request.GET.getlist("topic")))[:MOST_TOPICS]
    frames = [frame for name in names if (frame := _frame(request.user, name, at)) is not None]
    response = JsonResponse({"frames": frames})
    response["Cache-Control"] = "no-store"
    return response
