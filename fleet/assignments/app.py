"""The ASGI application behind `GET /api/agent/v1/assignments/`: answers at once, or when something has changed.

`?wait=<seconds>&have=<version>` holds the request on the event loop while the version is the one that the agent has, for
25 s at most. It is released by what the commit of a change publishes; whoever waits holds neither a thread nor a connection
to the database. The answer is always the present state, and an agent that hears nothing new asks again.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qs

import msgspec
from django.db import Error as DatabaseError

from fleet.agent import wire
from fleet.assignments.waiters import FullError, Waiters
from fleet.services.agents import AgentIdentity, agent_identify, assignments_for
from panel.core.errors import FleetdeckError, InvalidInput, NotAuthenticated, RateLimited
from panel.core.threads import DjangoThreads

MAX_WAIT_SECONDS: Final = 25.0
RETRY_AFTER_SECONDS: Final = 5.0
MSGPACK: Final = "application/msgpack"
_MSGPACK_TYPES: Final = (MSGPACK, "application/x-msgpack", "application/vnd.msgpack", wire.CONTENT_TYPE)
_BEARER: Final = "bearer "

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class MethodError(FleetdeckError):
    """This address is only read."""

    status = 405
    code = "method_not_allowed"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks for: as whom, how long it waits, and which version it has (None: any answer is news)."""

    token: str
    wait_seconds: float
    have: int | None


class AssignmentsApplication:
    """ASGI 3, `http` only. Threads and waiters belong to the event loop that asks first."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self.waiters = Waiters()
        self._threads: DjangoThreads | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        is_msgpack = _wants_msgpack(headers)
        try:
            assignments = await self._answer(_read(scope, headers), receive)
        except FleetdeckError as error:
            await _send(
                send, error.status, wire.Refusal(error.code, error.message), _extra(error), is_msgpack=is_msgpack
            )
        except DatabaseError:
            refusal = wire.Refusal("unavailable", "The database is not available; ask again.")
            await _send(send, 503, refusal, [_retry_after(RETRY_AFTER_SECONDS)], is_msgpack=is_msgpack)
        else:
            await _send(send, 200, assignments, [], is_msgpack=is_msgpack)

    async def close(self) -> None:
        """Release who waits, and stop; the next request starts anew."""
        threads, self._threads = self._threads, None
        if threads is not None and self._loop is asyncio.get_running_loop():
            await self.waiters.close()
            await threads.close()

    def _started(self) -> DjangoThreads:
        loop = asyncio.get_running_loop()
        if self._threads is None or self._loop is not loop:
            self._loop, self._threads, self.waiters = loop, DjangoThreads("assignments"), Waiters()
        return self._threads

    async def _answer(self, asked: Asked, receive: Receive) -> wire.Assignments:
        """Return what is so when the answer is due. Raises NotAuthenticated or RateLimited."""
        identity = await self._changed(asked, receive)
        return await self._started().run(assignments_for, identity=identity)

    async def _changed(self, asked: Asked, receive: Receive) -> AgentIdentity:
        """Return the agent as it is when it changed or the wait is over."""
        identity = await self._identify(asked)
        if asked.wait_seconds <= 0 or identity.assignments_version != asked.have:
            return identity
        try:
            waiter = await self.waiters.add(identity.agent_id)
        except FullError:
            message = "As many agents wait here as may; ask again."
            raise RateLimited(message, retry_after_seconds=RETRY_AFTER_SECONDS) from None
        try:
            identity = await self._identify(asked)  # what changed while the first look was under way
            if identity.assignments_version == asked.have:
                await _first(waiter, _gone(receive), asked.wait_seconds)
                identity = await self._identify(asked)
        finally:
            self.waiters.remove(identity.agent_id, waiter)
        return identity

    async def _identify(self, asked: Asked) -> AgentIdentity:
        return await self._started().run(agent_identify, token=asked.token)


def _read(scope: Scope, headers: dict[str, str]) -> Asked:
    """Return what the request asks. Raises MethodError or InvalidInput."""
    if scope["method"] != "GET":
        raise MethodError("This address answers GET only.")
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
    try:
        wait_seconds = float(query.get("wait", ["0"])[0])
        have = int(query["have"][0]) if "have" in query else None
        if math.isnan(wait_seconds):
            raise ValueError
    except ValueError:
        raise InvalidInput("`wait` is a number of seconds, `have` a version.") from None
    authorization = headers.get("authorization", "")
    token = authorization[len(_BEARER) :].strip() if authorization[: len(_BEARER)].lower() == _BEARER else ""
    return Asked(token, min(wait_seconds, MAX_WAIT_SECONDS), have)


async def _gone(receive: Receive) -> None:
    """Return when the caller has hung up."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _first(waiter: asyncio.Future[None], gone: Awaitable[None], seconds: float) -> None:
    """Return when the waiter is released, the caller is gone, or the time is over."""
    watching = asyncio.ensure_future(gone)
    try:
        await asyncio.wait((waiter, watching), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


def _retry_after(seconds: float) -> tuple[bytes, bytes]:
    return b"retry-after", str(math.ceil(seconds)).encode()


def _extra(error: FleetdeckError) -> list[tuple[bytes, bytes]]:
    """Return the headers that belong to a refusal."""
    match error:
        case NotAuthenticated():
            return [(b"www-authenticate", b"Bearer")]
        case RateLimited():
            return [_retry_after(error.retry_after_seconds)]
        case MethodError():
            return [(b"allow", b"GET")]
    return []


def _wants_msgpack(headers: dict[str, str]) -> bool:
    accepted = [part.partition(";")[0].strip().lower() for part in headers.get("accept", "").split(",")]
    return any(part in _MSGPACK_TYPES for part in accepted)


async def _send(send: Send, status: int, content: Any, extra: list[tuple[bytes, bytes]], *, is_msgpack: bool) -> None:
    body = msgspec.msgpack.encode(content) if is_msgpack else msgspec.json.encode(content)
    kind = MSGPACK if is_msgpack else "application/json"
    headers = [
        (b"content-type", kind.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        *extra,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


application = AssignmentsApplication()
