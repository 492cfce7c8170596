"""A small OpenAI-compatible engine whose speed, room and faults are options: a program of the standard library alone.

    python tests/engines/fake_engine.py --port 18000 --ms-per-token 20 --slots 4

Tokens are words that count up (" t0 t1 t2 …"), so a lost or repeated piece of a stream is visible. What an option sets, `POST
/control` with JSON of the same names (`{"frozen": true}`) changes while it runs. SIGTERM: no new connections, what runs is
finished, exit status 0.

GET /health, /v1/models, /metrics (vLLM's names); POST /v1/chat/completions, /v1/completions (with and without `stream`).
Like ComfyUI, POST /prompt is answered at once and worked off afterwards, one after another; GET /queue lists what is left.
"""

import argparse
import asyncio
import itertools
import json
import os
import signal
import sys
import time

SECOND = 1000.0
REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}
REASONS |= {500: "Internal Server Error", 503: "Service Unavailable"}


def parse(arguments=None):
    """Return the options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--host", default="127.0.0.1")
    add("--port", type=int, default=0, help="0: any free one; the line 'listening on HOST:PORT' names it")
    add("--model", default="fake")
    add("--api-key", default="", help="the bearer that requests must bring")
    add("--ms-per-token", type=float, default=5.0)
    add("--prompt-ms-per-token", type=float, default=0.0, help="time to the first token, by words of the prompt")
    add("--slots", type=int, default=4, help="requests worked on at once; others wait")
    add("--queue-limit", type=int, default=1_000_000, help="more waiting ones are answered 429, and /health says 503")
    add("--max-tokens", type=int, default=16, help="of requests that name none")
    add("--prompt-seconds", type=float, default=0.5, help="how long each piece of work of POST /prompt takes")
    add("--memory-mb", type=int, default=0, help="kept in memory")
    add("--memory-mb-per-request", type=float, default=0.0, help="never given back")
    add("--start-seconds", type=float, default=0.0, help="before it listens")
    add("--load-seconds", type=float, default=0.0, help="listening, everything answered 503")
    add("--crash-at-start", type=int, default=None, metavar="STATUS", help="end with this status instead of listening")
    add("--never-ready", action="store_true", help="listens, /health is 200, no request is answered")
    add("--frozen", action="store_true", help="no token comes any more; /health and /metrics answer")
    add("--freeze-after-tokens", type=int, default=None)
    add("--health-ms", type=float, default=0.0, help="how long /health takes")
    add("--metrics-ms", type=float, default=0.0)
    add("--health-status", type=int, default=200)
    add("--errors", action="store_true", help="every completion is answered 500")
    add("--error-every", type=int, default=0, metavar="N", help="every Nth completion is answered 500")
    add("--drop-after-tokens", type=int, default=None, help="streams break off after so many")
    add("--exit-after-requests", type=int, default=None, metavar="N")
    add("--exit-status", type=int, default=3)
    add("--no-metrics", action="store_true")
    add("--asleep", action="store_true", help="says in /metrics that it sleeps; a request wakes it")
    add("--ignore-sigterm", action="store_true")
    add("--drain-seconds", type=float, default=60.0, help="how long SIGTERM waits for running requests")
    add("--say", action="append", default=[], help="a line for its log, at its start")
    add("--say-environment", action="append", default=[], metavar="NAME", help="log this variable")
    return parser.parse_args(arguments)


class Engine:
    """State and answers of one engine. options: what `parse` gives."""

    def __init__(self, options):
        self.options = options
        self.slots = asyncio.Semaphore(options.slots)
        self.running = self.waiting = self.requests = self.failures = 0
        self.prompt_tokens = self.generation_tokens = self.iterations = 0
        self.hoard = [bytearray(b"x" * (options.memory_mb << 20))]
        self.loaded_at = time.monotonic() + options.load_seconds
        self.is_stopping = asyncio.Event()
        self.connections = {}
        self.queued, self.worked_off = [], asyncio.Lock()
        self.work = set()

    # ---- HTTP

    async def serve(self, reader, writer):
        """Answer one connection's requests until it closes."""
        self.connections[writer] = reader
        try:
            while not self.is_stopping.is_set():
                request = await self.read(reader)
                if request is None:
                    break
                await self.answer(request, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass
        finally:
            del self.connections[writer]
            writer.close()

    def is_gone(self, writer):
        """Say whether the caller hung up."""
        return writer.is_closing() or self.connections[writer].at_eof()

    async def read(self, reader):
        """Return (method, path, headers, body), None at the end."""
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _version = lines[0].split(" ", 2)
        headers = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)
        }
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        return method, path.split("?")[0], headers, body

    async def answer(self, request, writer):
        method, path, headers, body = request
        options = self.options
        if path == "/control" and method == "POST":
            vars(options).update(json.loads(body))
            await self.send(writer, 200, {"options": vars(options)})
        elif path == "/health":
            await asyncio.sleep(options.health_ms / SECOND)
            is_well = not self.is_loading() and self.waiting <= options.queue_limit - 1
            await self.send(writer, options.health_status if is_well else 503, b"")
        elif path == "/metrics" and not options.no_metrics:
            await asyncio.sleep(options.metrics_ms / SECOND)
            await self.send(writer, 200, self.metrics().encode(), kind="text/plain; version=0.0.4")
        elif path == "/prompt" and method == "POST":
            self.work.add(asyncio.get_running_loop().create_task(self.work_off(number := len(self.work))))
            await self.send(writer, 200, {"prompt_id": str(number)})
        elif path == "/queue":
            listed = [[number, str(number), {}] for number in self.queued]
            await self.send(writer, 200, {"queue_running": listed[:1], "queue_pending": listed[1:]})
        elif path in {"/v1/models", "/v1/chat/completions", "/v1/completions"}:
            await self.answer_api(method, path, headers, body, writer)
        else:
            await self.fail(writer, 404, f"no such address: {path}")

    async def work_off(self, number):
        """Do one piece of work that nobody waits for, when it is its turn."""
        self.queued.append(number)
        async with self.worked_off:
            await asyncio.sleep(self.options.prompt_seconds)
            _log(f"prompt {number} executed")
            self.queued.remove(number)

    async def answer_api(self, method, path, headers, body, writer):
        if self.options.api_key and headers.get("authorization") != f"Bearer {self.options.api_key}":
            await self.fail(writer, 401, "a bearer is needed")
        elif self.is_loading():
            await self.fail(writer, 503, "the model is being loaded")
        elif method == "GET" and path == "/v1/models":
            models = [{"id": self.options.model, "object": "model", "created": 0, "owned_by": "tests"}]
            await self.send(writer, 200, {"object": "list", "data": models})
        else:
            try:
                asked = json.loads(body)
                assert isinstance(asked, dict)
            except (ValueError, AssertionError):
                await self.fail(writer, 400, "the body is no JSON object")
            else:
                await self.complete(asked, writer, is_chat="chat" in path)

    async def send(self, writer, status, body, *, kind="application/json", extra=""):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        head = f"HTTP/1.1 {status} {REASONS.get(status, '')}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        writer.write(f"{head}{extra}\r\n".encode() + body)
        await writer.drain()

    async def fail(self, writer, status, message, extra=""):
        await self.send(writer, status, {"error": {"message": message, "type": "error", "code": status}}, extra=extra)

    # ---- completions

    async def complete(self, asked, writer, *, is_chat):
        options = self.options
        self.requests += 1
        number = self.requests
        if options.exit_after_requests is not None and number > options.exit_after_requests:
            _log(f"fatal: this engine ends after {options.exit_after_requests} requests")
            os._exit(options.exit_status)
        if options.errors or (options.error_every and number % options.error_every == 0):
            self.failures += 1
            await self.fail(writer, 500, "the engine failed as it was told to")
        elif self.waiting >= options.queue_limit:
            await self.fail(writer, 429, "the queue is full", extra="Retry-After: 1\r\n")
        else:
            options.asleep = False
            if options.memory_mb_per_request:
                self.hoard.append(bytearray(b"x" * int(options.memory_mb_per_request * (1 << 20))))
            await self.in_turn(asked, writer, is_chat=is_chat)

    async def in_turn(self, asked, writer, *, is_chat):
        """Wait for a slot, then generate; the slot is free again when the caller goes away."""
        self.waiting += 1
        try:
            await self.slots.acquire()
        finally:
            self.waiting -= 1
        self.running += 1
        try:
            prompt = json.dumps(asked.get("messages") or asked.get("prompt") or "")
            words = len(prompt.split())
            await asyncio.sleep(words * self.options.prompt_ms_per_token / SECOND)
            self.prompt_tokens += words
            count = int(asked.get("max_tokens") or asked.get("max_completion_tokens") or self.options.max_tokens)
            if asked.get("stream"):
                wants_usage = bool((asked.get("stream_options") or {}).get("include_usage"))
                await self.stream(writer, count, words, is_chat=is_chat, wants_usage=wants_usage)
            else:
                text = "".join([token async for token in self.tokens(count, writer)])
                await self.send(writer, 200, self.whole(text, count, words, is_chat=is_chat))
        finally:
            self.running -= 1
            self.slots.release()

    async def tokens(self, count, writer):
        for number in range(count):
            await asyncio.sleep(self.options.ms_per_token / SECOND)
            while self.is_frozen():
                if self.is_gone(writer):
                    raise ConnectionResetError
                await asyncio.sleep(0.02)
            self.generation_tokens += 1
            self.iterations += 1
            yield f" t{number}"

    async def stream(self, writer, count, words, *, is_chat, wants_usage):
        kind = "chat.completion.chunk" if is_chat else "text_completion"
        base = {"id": f"fake-{self.requests}", "object": kind, "created": int(time.time()), "model": self.options.model}
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        if is_chat:
            await self.event(writer, {**base, "choices": [_choice({"role": "assistant", "content": ""}, None)]})
        position = itertools.count(1)
        async for token in self.tokens(count, writer):
            choice = (
                _choice({"content": token}, None) if is_chat else {"index": 0, "text": token, "finish_reason": None}
            )
            await self.event(writer, {**base, "choices": [choice]})
            if next(position) == self.options.drop_after_tokens:
                writer.transport.abort()
                raise ConnectionResetError
        last = _choice({}, "length") if is_chat else {"index": 0, "text": "", "finish_reason": "length"}
        await self.event(writer, {**base, "choices": [last]})
        if wants_usage:
            await self.event(writer, {**base, "choices": [], "usage": _usage(words, count)})
        await self.event(writer, b"[DONE]")
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    async def event(self, writer, data):
        if self.is_gone(writer):
            raise ConnectionResetError
        body = b"data: " + (data if isinstance(data, bytes) else json.dumps(data).encode()) + b"\n\n"
        writer.write(f"{len(body):x}\r\n".encode() + body + b"\r\n")
        await writer.drain()

    def whole(self, text, count, words, *, is_chat):
        base = {"id": f"fake-{self.requests}", "created": int(time.time()), "model": self.options.model}
        if is_chat:
            choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "length"}
            return {**base, "object": "chat.completion", "choices": [choice], "usage": _usage(words, count)}
        choice = {"index": 0, "text": text, "finish_reason": "length"}
        return {**base, "object": "text_completion", "choices": [choice], "usage": _usage(words, count)}

    # ---- how it is

    def is_loading(self):
        return time.monotonic() < self.loaded_at

    def is_frozen(self):
        after = self.options.freeze_after_tokens
        return (
            self.options.frozen or self.options.never_ready or (after is not None and self.generation_tokens >= after)
        )

    def metrics(self):
        labels = f'{{engine="0",model_name="{self.options.model}"}}'
        used = min(self.running / max(self.options.slots, 1), 1.0)
        values = [
            ("gauge", "vllm:num_requests_running", self.running),
            ("gauge", "vllm:num_requests_waiting", self.waiting),
            ("gauge", "vllm:kv_cache_usage_perc", used),
            ("counter", "vllm:prompt_tokens_total", self.prompt_tokens),
            ("counter", "vllm:generation_tokens_total", self.generation_tokens),
            ("counter", "vllm:request_success_total", self.requests - self.failures - self.running - self.waiting),
            ("counter", "vllm:iteration_tokens_total_count", self.iterations),
        ]
        lines = [f"# TYPE {name} {kind}\n{name}{labels} {value}\n" for kind, name, value in values]
        for state in ("awake", "weights_offloaded"):
            is_it = (state != "awake") == bool(self.options.asleep)
            lines.append(f'vllm:engine_sleep_state{{engine="0",sleep_state="{state}"}} {float(is_it)}\n')
        return "".join(lines)

    async def drain(self):
        """Wait for what runs, as long as the options allow."""
        deadline = time.monotonic() + self.options.drain_seconds
        while (self.running or self.waiting) and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


def _log(line):
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _choice(delta, finish_reason):
    return {"index": 0, "delta": delta, "finish_reason": finish_reason}


def _usage(prompt, completion):
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


async def run(options):
    """Serve until SIGTERM."""
    for line in options.say:
        _log(line)
    for name in options.say_environment:
        _log(f"{name}={os.environ.get(name)}")
    if options.crash_at_start is not None:
        _log("RuntimeError: this engine cannot start, as it was told")
        return options.crash_at_start
    await asyncio.sleep(options.start_seconds)
    engine = Engine(options)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, lambda: options.ignore_sigterm or engine.is_stopping.set())
    server = await asyncio.start_server(engine.serve, options.host, options.port, backlog=1024)
    host, port = server.sockets[0].getsockname()[:2]
    _log(f"listening on {host}:{port}")
    await engine.is_stopping.wait()
    server.close()
    await engine.drain()
    for writer in list(engine.connections):
        writer.close()
    _log("stopped")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(run(parse())))
