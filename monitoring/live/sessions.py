"""Who sits behind a socket, and the guard that ends sockets within seconds of their session."""

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import structlog
from channels.db import database_sync_to_async
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.models import Session
from django.db import Error as DatabaseError
from django.utils.crypto import constant_time_compare

from panel.accounts.models import User
from panel.core.clock import now

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

CHECK_SECONDS: Final = 2.0

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Viewer:
    """A logged-in person as one session knows them."""

    user_id: int
    session_key: str

    def user(self) -> User | None:
        """Return the person as the database has them now; None when deactivated or deleted. One query."""
        return User.objects.filter(pk=self.user_id, is_active=True).first()


def _users_of(session_keys: "Collection[str]") -> dict[str, User]:
    """Return the person of each session that holds, by its key. Two queries for any number.

    A session ends by logging out, expiry, deactivation, or a changed password (its hash no longer matches).
    """
    rows = Session.objects.filter(pk__in=session_keys, expire_date__gt=now())
    sessions = {row.session_key: row.get_decoded() for row in rows}
    users = {str(user.pk): user for user in User.objects.filter(pk__in=_user_ids(sessions.values()), is_active=True)}
    holding: dict[str, User] = {}
    for key, session in sessions.items():
        user = users.get(str(session.get(SESSION_KEY)))
        if user and constant_time_compare(session.get(HASH_SESSION_KEY, ""), user.get_session_auth_hash()):
            holding[key] = user
    return holding


def _user_ids(sessions: "Iterable[dict[str, Any]]") -> set[int]:
    return {int(session[SESSION_KEY]) for session in sessions if str(session.get(SESSION_KEY, "")).isdecimal()}


def viewer_of(session_key: str | None) -> Viewer | None:
    """Return who this session belongs to, or None for a stranger."""
    user = _users_of([session_key]).get(session_key) if session_key else None
    return Viewer(user.pk, session_key) if user and session_key else None


def living(viewers: "Collection[Viewer]") -> dict[Viewer, str]:
    """Return the viewers whose session still holds, with their present role."""
    users = _users_of({viewer.session_key for viewer in viewers})
    held = {viewer: users[viewer.session_key] for viewer in viewers if viewer.session_key in users}
    return {viewer: user.role for viewer, user in held.items() if user.pk == viewer.user_id}


class Guarded(Protocol):
    """A socket as the guard sees it."""

    viewer: Viewer

    async def end(self, reason: str, code: int) -> None:
        """Say why, then close."""

    async def recheck(self) -> None:
        """Rights changed."""


class Guard:
    """Checks every two seconds, for all sockets of the process at once, that their sessions still hold."""

    def __init__(self) -> None:
        self._sockets: set[Guarded] = set()
        self._roles: dict[Viewer, str] = {}
        self._task: asyncio.Task[None] | None = None

    def add(self, socket: Guarded) -> None:
        """Watch over a socket until it is discarded."""
        self._sockets.add(socket)
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._run())

    def discard(self, socket: Guarded) -> None:
        """Forget a socket that closed."""
        self._sockets.discard(socket)

    async def _run(self) -> None:
        while self._sockets:
            await asyncio.sleep(CHECK_SECONDS)
            try:
                await self.check()
            except (DatabaseError, OSError) as error:
                log.warning("live.sessions_unknown", error=str(error))

    async def check(self) -> None:
        """End the sockets of ended sessions; let the others look again at their topics when a role changed."""
        sockets = list(self._sockets)
        alive = await database_sync_to_async(living)({socket.viewer for socket in sockets})
        for socket in sockets:
            if socket.viewer not in alive:
                self.discard(socket)
                await socket.end("logged_out", 4401)
            elif self._roles.get(socket.viewer, alive[socket.viewer]) != alive[socket.viewer]:
                with contextlib.suppress(DatabaseError):
                    await socket.recheck()
        self._roles = alive


_guards: dict[asyncio.AbstractEventLoop, Guard] = {}


def guard() -> Guard:
    """Return the guard of the running event loop."""
    loop = asyncio.get_running_loop()
    found = _guards.get(loop)
    if found is None:
        for closed in [known for known in _guards if known.is_closed()]:
            del _guards[closed]
        found = _guards[loop] = Guard()
    return found
