"""The one ASGI application: agents' reports, live sockets, and Django for everything else."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any, Final

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "panel.settings")

from django.core.asgi import get_asgi_application

_django = get_asgi_application()  # first: what follows needs the apps to be ready

from channels.routing import URLRouter  # noqa: E402
from channels.security.websocket import AllowedHostsOriginValidator  # noqa: E402
from channels.sessions import CookieMiddleware  # noqa: E402
from django.db import connection  # noqa: E402
from django.urls import path  # noqa: E402

from fleet.assignments.app import application as _assignments  # noqa: E402
from monitoring.ingest.app import application as _ingest  # noqa: E402
from monitoring.live.consumer import LiveConsumer  # noqa: E402
from monitoring.live.hub import hub  # noqa: E402

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[Any], Awaitable[None]]

REPORT_PATH: Final = "/api/agent/v1/report/"
ASSIGNMENTS_PATH: Final = "/api/agent/v1/assignments/"

# Four times what any request needs (an agent measures its way here with 4 MiB).
MAX_BODY_BYTES: Final = 16 * 1024 * 1024

_sockets = AllowedHostsOriginValidator(CookieMiddleware(URLRouter([path("ws/live/", LiveConsumer.as_asgi())])))


def _bounded(receive: Receive) -> Receive:
    """Return what hears no more of a body than may be: Django writes it to a file before anybody asks who sent it."""
    taken = 0

    async def limited() -> dict[str, Any]:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        return message if taken <= MAX_BODY_BYTES else {"type": "http.disconnect"}

    return limited


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Route by kind and path. Reports skip Django, whose middleware costs more than storing them; so do waiting agents,
    each of which would hold a thread there.
    """
    kind = scope["type"]
    if kind == "lifespan" or (kind == "http" and scope["path"] == REPORT_PATH):
        await _ingest(scope, receive, send)
        if kind == "lifespan":
            await _assignments.close()
            await hub().stop()
            await asyncio.to_thread(connection.close_pool)  # type: ignore[attr-defined]  # Postgres has it
    elif kind == "websocket":
        await _sockets(scope, receive, send)
    elif kind == "http" and scope["path"] == ASSIGNMENTS_PATH:
        await _assignments(scope, receive, send)
    elif kind == "http":
        await _django(scope, _bounded(receive), send)
