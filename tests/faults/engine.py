"""`python -m tests.faults.engine PORT '{…}'`: an engine of known behaviour over HTTP: plain answers, streams, vLLM's metrics.

A request waits for one of `slots`, then takes `base_ms` + `per_token_ms` n + `per_token2_ms` n² for its prompt and `token_ms` for
each token of the answer, all times `factor` and with a spread of `spread`. clients: callers of its own that ask again at once, in
the seconds from 0 to `load_seconds`, or until /quiet is asked for. In the first `cold_seconds` each request takes `cold_ms` more.
fail: share answered 503.
"""

import asyncio
import json
import random
import sys
import time

from tests.probes.servers import Peer, read_request

PLAIN_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


class Engine:
    """See the module."""

    def __init__(
        self, *, slots=64, base_ms=10.0, per_token_ms=0.0, per_token2_ms=0.0, token_ms=0.0, factor=1.0, spread=0.05,
        clients=0, client_ms=None, load_seconds=1e9, cold_seconds=0.0, cold_ms=0.0, fail=0.0, body_bytes=200, has_metrics=True,
        seed=0,
    ):  # fmt: skip
        self.limit = asyncio.Semaphore(slots)
        self.base, self.per_token, self.per_token2, self.token = base_ms, per_token_ms, per_token2_ms, token_ms
        self.factor, self.spread, self.fail = factor, spread, fail
        self.clients, self.client_ms, self.load_seconds = clients, client_ms, load_seconds
        self.cold_seconds, self.cold_ms = cold_seconds, cold_ms
        self.body = b"x" * body_bytes
        self.has_metrics = has_metrics
        self.drawn = random.Random(seed)
        self.running = self.waiting = self.count = 0
        self.queue = self.prefill = self.decode = 0.0
        self.began = time.monotonic()

    def seconds(self, ms):
        return max(ms * self.factor * self.drawn.lognormvariate(0.0, self.spread), 0.0) / 1000

    async def serve(self, reader, writer):
        peer = Peer(writer)
        try:
            while True:
                asked = await read_request(reader)
                await self.answer(asked, peer)
                if asked.headers.get("connection") == "close":
                    return
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            return
        finally:
            writer.close()

    async def answer(self, asked, peer):
        path = asked.path.partition("?")[0]
        if path == "/metrics":
            await self.metrics(peer)
        elif path == "/quiet":
            self.load_seconds = 0.0
            await peer.answer()
        elif path == "/v1/models":
            await peer.answer(body=b'{"data": []}', content_type="application/json")
        elif self.drawn.random() < self.fail:
            await peer.answer(503, b"busy")
        elif path.startswith("/v1/"):
            await self.stream(asked, peer)
        else:
            await self.held(0, 0)
            await peer.answer(body=self.body)

    async def held(self, prompt, tokens, each=None):
        """Wait for a slot, then compute; each: awaited per token of the answer."""
        self.waiting += 1
        began = time.monotonic()
        async with self.limit:
            self.waiting -= 1
            self.running += 1
            try:
                started = time.monotonic()
                await asyncio.sleep(
                    self.seconds(self.base + self.per_token * prompt + self.per_token2 * prompt**2) + self.cold()
                )
                read = time.monotonic()
                for number in range(tokens):
                    if number:
                        await asyncio.sleep(self.seconds(self.token))
                    if each is not None:
                        await each(number)
                ended = time.monotonic()
            finally:
                self.running -= 1
            self.count += 1
            self.queue += started - began
            self.prefill += read - started
            self.decode += ended - read

    def cold(self):
        return self.cold_ms / 1000 if time.monotonic() - self.began < self.cold_seconds else 0.0

    async def stream(self, asked, peer):
        """Answer with events; to HTTP/1.0 (which says that it closes) without chunks, as servers do."""
        is_chunked = asked.headers.get("connection") != "close"
        body = asked.json
        text = body.get("prompt") or body["messages"][0]["content"]
        prompt, tokens = len(text.split()) + 10, body["max_tokens"]

        async def say(told):
            data = b"data: " + (told if isinstance(told, str) else json.dumps(told)).encode() + b"\n\n"
            await (peer.chunk(data) if is_chunked else peer.raw(data))

        async def each(number):
            if not number:
                await (peer.chunks_begin() if is_chunked else peer.raw(PLAIN_HEAD))
            await say({"choices": [{"index": 0, "delta": {"content": " so"}}]})

        await self.held(prompt, tokens, each)
        await say({"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]})
        await say({"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": tokens}})
        await say("[DONE]")
        if is_chunked:
            await peer.chunks_end()

    async def metrics(self, peer):
        if not self.has_metrics:
            await peer.answer(404, b"")
            return
        told = {
            "num_requests_running": self.running, "num_requests_waiting": self.waiting,
            "request_queue_time_seconds_sum": self.queue, "request_queue_time_seconds_count": self.count,
            "request_prefill_time_seconds_sum": self.prefill, "request_prefill_time_seconds_count": self.count,
            "request_decode_time_seconds_sum": self.decode, "request_decode_time_seconds_count": self.count,
        }  # fmt: skip
        page = "".join(f'vllm:{name}{{model_name="m"}} {value}\n' for name, value in told.items())
        await peer.answer(body=page.encode())

    async def load(self):
        async def client():
            while time.monotonic() - self.began < self.load_seconds:
                await self.held(0, 0)
                await asyncio.sleep(self.drawn.uniform(0.0, 0.01))

        await asyncio.gather(*(client() for _ in range(self.clients)))


async def main(port, settings):
    engine = Engine(**json.loads(settings))
    server = await asyncio.start_server(engine.serve, "0.0.0.0", int(port))
    loading = asyncio.ensure_future(engine.load())
    print("ready", flush=True)  # noqa: T201  # who started this waits for it
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    loading.cancel()
    server.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
