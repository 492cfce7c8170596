"""One browser's WebSocket: subscribes to topics, sends snapshots, deltas and heartbeats, ends with its session."""

import asyncio
import contextlib
from typing import Any, ClassVar, Final

import msgspec
import structlog
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings

from monitoring.live import counters, sessions
from monitoring.live.hub import hub
from monitoring.live.mailbox import Frame, Mailbox
from monitoring.live.topics import resolve
from panel.core.clock import now
from panel.core.errors import FleetdeckError, InvalidInput, PermissionRefused

HEARTBEAT_SECONDS: Final = 20.0
MAX_TOPICS: Final = 64
MAX_MESSAGE_BYTES: Final = 16_384
CLOSE_LOGGED_OUT: Final = 4401
CLOSE_BAD_MESSAGE: Final = 4400

log = structlog.get_logger(__name__)


class Request(msgspec.Struct):
    """What a browser says: `subscribe` or `unsubscribe`, with the names of topics."""

    type: str
    topics: list[str] = []


class LiveConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]  # Channels has no types
    """See the package's docstring. The socket itself takes no part in the channel layer: its process's hub does."""

    channel_layer_alias: ClassVar[str] = "none: the hub listens for all sockets of a process"

    async def connect(self) -> None:
        """Accept people who are logged in; tell the others why not."""
        self.mailbox = Mailbox()
        self.topics: set[str] = set()
        self.wake = asyncio.Event()
        self.tasks: set[asyncio.Task[None]] = set()
        self.is_closing = False
        session_key = self.scope["cookies"].get(settings.SESSION_COOKIE_NAME)
        viewer = await database_sync_to_async(sessions.viewer_of)(session_key)
        await self.accept()
        if viewer is None:
            await self.end("logged_out", CLOSE_LOGGED_OUT)
            return
        self.viewer = viewer
        counters.sockets.add(self)
        self.run(self.write())
        self.run(self.beat())
        sessions.guard().add(self)

    async def disconnect(self, code: int) -> None:  # noqa: ARG002  (Channels names it)
        """Leave every topic and stop the socket's tasks."""
        self.is_closing = True
        counters.sockets.discard(self)
        sessions.guard().discard(self)
        for task in self.tasks:
            task.cancel()
        for name in list(self.topics):
            await hub().leave(name, self)
        self.topics.clear()

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:  # noqa: ARG002
        """Act on one message; one that cannot be understood (binary, too long, not ours) ends the socket."""
        if self.is_closing:
            return
        try:
            if text_data is None or len(text_data) > MAX_MESSAGE_BYTES:
                raise InvalidInput("Send JSON text of at most 16 KiB.")
            request = msgspec.json.decode(text_data, type=Request)
        except (msgspec.MsgspecError, InvalidInput) as error:
            await self.end(str(error), CLOSE_BAD_MESSAGE)
            return
        names = list(dict.fromkeys(request.topics[:MAX_TOPICS]))
        if request.type == "subscribe":
            await self.subscribe(names)
        elif request.type == "unsubscribe":
            for name in names:
                await self.unsubscribe(name)

    async def subscribe(self, names: list[str]) -> None:
        """Join the topics that this person may see, and send their snapshots; say of the others why not."""
        refusals = await database_sync_to_async(self.refusals)(names)
        for name in names:
            if name in refusals:
                await self.refuse(name, refusals[name])
                continue
            self.mailbox.hold(name)
            self.topics.add(name)
            await hub().join(name, self)
            await self.send_snapshot(name)

    def refusals(self, names: list[str]) -> dict[str, FleetdeckError]:
        """Return why some of these topics are not for this person (synchronous: asks the database)."""
        user = self.viewer.user()
        found: dict[str, FleetdeckError] = {}
        for name in names:
            try:
                topic, identifier = resolve(name)
            except FleetdeckError as error:
                found[name] = error
                continue
            if user is None or not topic.authorize(user, identifier):
                found[name] = PermissionRefused("You may not see this topic, or it does not exist.")
            elif len(self.topics | {name}) > MAX_TOPICS:
                found[name] = InvalidInput("Too many topics on one socket.", code="too_many_topics")
        return found

    async def unsubscribe(self, name: str) -> None:
        """Leave a topic."""
        self.topics.discard(name)
        self.mailbox.forget(name)
        await hub().leave(name, self)

    async def send_snapshot(self, name: str) -> None:
        """Read what the topic shows now and send it; what is published meanwhile follows it."""
        topic, identifier = resolve(name)
        subscription = hub().subscriptions.get(name)
        seq = subscription.sent_seq if subscription is not None else 0
        try:
            data = await database_sync_to_async(topic.snapshot)(identifier)
        except FleetdeckError as error:
            await self.unsubscribe(name)
            await self.refuse(name, error)
            return
        if name in self.topics:
            self.offer(Frame("snapshot", name, seq, seq, data))

    def offer(self, frame: Frame) -> None:
        """Take a frame for sending (called by the hub)."""
        if self.mailbox.put(frame):
            self.wake.set()

    def resync(self, topic: str) -> None:
        """Send a fresh snapshot: messages may have been lost (called by the hub)."""
        self.run(self.send_snapshot(topic))

    async def write(self) -> None:
        """Send what the mailbox holds; waits for a slow browser here, and only here."""
        while not self.is_closing:
            await self.wake.wait()
            self.wake.clear()
            for frame in self.mailbox.take():
                await self.base_send({"type": "websocket.send", "text": frame.text})

    async def beat(self) -> None:
        """Show the browser, and every proxy on the way, that the socket lives."""
        while not self.is_closing:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            await self.say({"type": "heartbeat", "at": now().isoformat()})

    async def recheck(self) -> None:
        """The person's rights changed: leave the topics that they may not see any more (called by the guard)."""
        for name, error in (await database_sync_to_async(self.refusals)(sorted(self.topics))).items():
            await self.unsubscribe(name)
            await self.refuse(name, error)

    async def end(self, reason: str, code: int) -> None:
        """Say why, then close."""
        self.is_closing = True
        with contextlib.suppress(Exception):  # the browser may be gone already; there is nobody to tell then
            await self.say({"type": "closing", "reason": reason})
            await self.close(code)

    async def refuse(self, name: str, error: FleetdeckError) -> None:
        """Tell the browser that a topic is not for it."""
        await self.say({"type": "refused", "topic": str(name)[:64], "code": error.code, "reason": error.message})

    async def say(self, message: dict[str, Any]) -> None:
        """Send one message that is not a frame."""
        await self.base_send({"type": "websocket.send", "text": msgspec.json.encode(message).decode()})

    def run(self, coroutine: Any) -> None:
        """Run a task that ends with the socket; an error in it ends the socket."""
        task = asyncio.ensure_future(coroutine)
        self.tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: "asyncio.Task[None]") -> None:
        self.tasks.discard(task)
        if task.cancelled() or task.exception() is None:
            return
        if not self.is_closing:
            if not isinstance(task.exception(), OSError):  # an OSError is a browser that went away
                log.error("live.socket_failed", exc_info=task.exception())
            self.run(self.end("error", 1011))
