"""A replica for tests, run as a process of its own: streams words, answers in one piece, echoes headers, fails when told.

`python -m tests.agent.gateway.upstream PORT NAME`; everything it does is asked for in the request's path and JSON body.
"""

import asyncio
import json
import sys


def piece(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


def event(value):
    return b"data: " + (value if isinstance(value, bytes) else json.dumps(value).encode()) + b"\n\n"


class Replica:
    def __init__(self, name):
        self.name = name
        self.open = 0
        self.seen = set()

    def head(self, status, kind, extra=""):
        return f"HTTP/1.1 {status} x\r\ncontent-type: {kind}\r\nserved-by: {self.name}\r\n{extra}".encode()

    def whole(self, status, value, kind="application/json"):
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        return self.head(status, kind, f"content-length: {len(body)}\r\n\r\n") + body

    async def serve(self, reader, writer):
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                first, *lines = head.strip().split("\r\n")
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
                body = await self.body(reader, headers)
                self.open += 1
                try:
                    await self.answer(first.split(" ")[1], headers, body, writer)
                finally:
                    self.open -= 1
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def body(self, reader, headers):
        if headers.get("transfer-encoding") == "chunked":
            whole = b""
            while size := int(await reader.readline(), 16):
                whole += await reader.readexactly(size)
                await reader.readline()
            await reader.readline()
            return whole
        return await reader.readexactly(int(headers.get("content-length", 0)))

    async def answer(self, path, headers, body, writer):
        if path == "/health":
            writer.write(self.whole(200, b"ok", "text/plain"))
        elif path.startswith("/echo") or (path.startswith("/close-once/") and not self.closes(path)):
            writer.write(self.whole(200, {"path": path, "headers": headers, "bytes": len(body), "name": self.name}))
        elif path.startswith("/status/"):
            writer.write(self.whole(int(path.split("/")[2]), {"error": "as told"}))
        elif path.startswith("/close-once/"):
            self.seen.add(path)
            writer.close()
        elif path == "/open":
            writer.write(self.whole(200, {"open": self.open - 1}))
        else:
            await self.complete(json.loads(body or b"{}"), writer)
        await writer.drain()

    def closes(self, path):
        """Whether to hang up on this request: once for each path, and only the replica that `?of=` names."""
        return path not in self.seen and path.partition("?of=")[2] in {"", self.name}

    async def complete(self, asked, writer):
        count, gap = asked.get("n", 5), asked.get("gap", 0.0)
        usage = {"prompt_tokens": 3, "total_tokens": 3 + count, "completion_tokens": count}
        if not asked.get("stream"):
            await asyncio.sleep(gap * count)
            writer.write(self.whole(200, {"choices": [{"text": 'a "usage": {"total_tokens": 999}'}], "usage": usage}))
            return
        await asyncio.sleep(asked.get("before", 0.0))
        writer.write(self.head(200, "text/event-stream", "transfer-encoding: chunked\r\n\r\n"))
        for number in range(count):
            writer.write(piece(event({"choices": [{"delta": {"content": f"w{number} "}}], "usage": None})))
            await writer.drain()
            await asyncio.sleep(gap)
        if asked.get("stream_options", {}).get("include_usage"):
            told = event({"choices": [], "usage": usage})
            for half in (told[:40], told[40:]):  # engines and networks cut where they like
                writer.write(piece(half))
                await writer.drain()
        writer.write(piece(event(b"[DONE]")) + b"0\r\n\r\n")


async def main(port, name):
    replica = Replica(name)
    server = await asyncio.start_server(replica.serve, "127.0.0.1", port, backlog=1024)
    sys.stdout.write("listening\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
