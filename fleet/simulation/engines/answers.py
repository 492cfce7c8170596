"""What a simulated engine answers over HTTP: OpenAI's API, pages of health and metrics, Triton's and ComfyUI's requests."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from fleet.simulation.engines import pages
from fleet.simulation.engines.engine import Engine

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
MOST_TOKENS: Final = 4096
USUAL_TOKENS: Final = 64
INFERENCE_SECONDS: Final = 0.05
PROMPT_SECONDS: Final = 5.0


class Answers:
    """An ASGI application. key: the bearer that completions have to bring, "" for none."""

    def __init__(self, engine: Engine, key: str) -> None:
        self._engine = engine
        self._key = key
        self._tasks: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        engine, path, method = self._engine, scope["path"], scope["method"]
        if path == engine.facts.metrics_path:
            page = pages.metrics_page(engine.facts.engine, engine.facts.model, engine.work, engine.facts.slots)
            await reply(send, 200, page.encode(), kind="text/plain; version=0.0.4")
        elif path == "/queue":
            listed = [[number, str(number), {}] for number in engine.queue]
            await reply(send, 200, {"queue_running": listed[:1], "queue_pending": listed[1:]})
        elif not engine.is_loaded:
            await fail(send, 503, "The model is being loaded.")
        elif method == "GET" and path in {"/health", *engine.facts.pages}:
            await reply(send, 200, {"status": "ok", "is_simulated": True})
        elif self._key and not self._is_known(scope):
            await fail(send, 401, "This engine asks for its bearer.")
        elif method == "GET" and path == "/v1/models":
            await reply(send, 200, {"object": "list", "data": [{"id": engine.facts.model, "object": "model"}]})
        elif method == "POST":
            await self._post(path, await body_of(receive), send)
        else:
            await fail(send, 404, f"There is nothing at {path}.")

    def _is_known(self, scope: Message) -> bool:
        return (b"authorization", f"Bearer {self._key}".encode()) in [tuple(pair) for pair in scope["headers"]]

    async def _post(self, path: str, body: bytes, send: Send) -> None:
        try:
            asked = json.loads(body or b"{}")
        except ValueError:
            asked = None
        if not isinstance(asked, dict):
            await fail(send, 400, "The body is no JSON object.")
        elif path.endswith("/completions"):
            await self._complete(asked, send, is_chat="chat" in path)
        elif path == "/prompt":
            number = self._engine.work.requests + len(self._engine.queue)
            task = asyncio.get_running_loop().create_task(self._engine.work_off(number, PROMPT_SECONDS))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            await reply(send, 200, {"prompt_id": str(number), "number": number, "node_errors": {}})
        else:
            async with self._engine.turn():
                await asyncio.sleep(INFERENCE_SECONDS)
            await reply(send, 200, {"model_name": self._engine.facts.model, "outputs": []})

    async def _complete(self, asked: dict[str, Any], send: Send, *, is_chat: bool) -> None:
        wanted = asked.get("max_completion_tokens") or asked.get("max_tokens") or USUAL_TOKENS
        count = min(max(int(wanted), 1), MOST_TOKENS) if isinstance(wanted, int | float) else USUAL_TOKENS
        prompt = len(json.dumps(asked.get("messages") or asked.get("prompt") or "").split())
        usage = {"prompt_tokens": prompt, "completion_tokens": count, "total_tokens": prompt + count}
        shape = Shape(self._engine.facts.model, is_chat=is_chat)
        async with self._engine.turn():
            if asked.get("stream"):
                is_usage_wanted = bool((asked.get("stream_options") or {}).get("include_usage"))
                await self._stream(count, shape, usage if is_usage_wanted else None, send)
            else:
                text = "".join([word async for word in self._engine.words(count)])
                await reply(send, 200, shape.whole(text, usage))

    async def _stream(self, count: int, shape: "Shape", usage: dict[str, int] | None, send: Send) -> None:
        await begin(send, 200, "text/event-stream")
        async for word in self._engine.words(count):
            await event(send, shape.piece(word))
        await event(send, shape.piece("", "length"))
        if usage is not None:
            await event(send, {**shape.base("chunk"), "choices": [], "usage": usage})
        await send({"type": "http.response.body", "body": b"data: [DONE]\n\n"})


class Shape:
    """OpenAI's two shapes of a completion."""

    def __init__(self, model: str, *, is_chat: bool) -> None:
        self.model, self.is_chat = model, is_chat
        self.id = f"simulated-{time.monotonic_ns()}"

    def base(self, suffix: str = "") -> dict[str, Any]:
        """Return what all objects hold."""
        kind = ("chat.completion" + (f".{suffix}" if suffix else "")) if self.is_chat else "text_completion"
        return {"id": self.id, "object": kind, "created": int(time.time()), "model": self.model}

    def piece(self, text: str, reason: str | None = None) -> dict[str, Any]:
        """Return one event of a stream."""
        part = {"delta": {"content": text} if text else {}} if self.is_chat else {"text": text}
        return {**self.base("chunk"), "choices": [{"index": 0, **part, "finish_reason": reason}]}

    def whole(self, text: str, usage: dict[str, int]) -> dict[str, Any]:
        """Return an answer in one piece."""
        part = {"message": {"role": "assistant", "content": text}} if self.is_chat else {"text": text}
        return {**self.base(), "choices": [{"index": 0, **part, "finish_reason": "length"}], "usage": usage}


async def body_of(receive: Receive) -> bytes:
    """Return a request's body. Raises ConnectionError when its caller went away."""
    pieces = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionError
        pieces.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(pieces)


async def begin(send: Send, status: int, kind: str, length: int | None = None) -> None:
    """Send the headers."""
    headers = [(b"content-type", kind.encode())]
    headers += [(b"content-length", str(length).encode())] if length is not None else []
    await send({"type": "http.response.start", "status": status, "headers": headers})


async def event(send: Send, told: dict[str, Any]) -> None:
    """Send one event of a stream."""
    await send({"type": "http.response.body", "body": f"data: {json.dumps(told)}\n\n".encode(), "more_body": True})


async def reply(send: Send, status: int, told: dict[str, Any] | bytes, *, kind: str = "application/json") -> None:
    """Send an answer in one piece."""
    body = told if isinstance(told, bytes) else json.dumps(told).encode()
    await begin(send, status, kind, len(body))
    await send({"type": "http.response.body", "body": body})


async def fail(send: Send, status: int, message: str) -> None:
    """Send an error in OpenAI's shape."""
    await reply(send, status, {"error": {"message": message, "type": "error", "param": None, "code": status}})
