"""Servers of known behaviour on loopback: HTTP by handlers that write what they like, name servers, a gRPC health service."""

import asyncio
import contextlib
import datetime as dt
import ipaddress
import json
import ssl
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass
class Asked:
    """One request as it came."""

    method: str
    path: str
    headers: dict
    body: bytes
    connection: int

    @property
    def json(self):
        return json.loads(self.body)


class Peer:
    """What a handler writes to."""

    def __init__(self, writer):
        self.writer = writer

    async def raw(self, data):
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, status=200, body=b"ok", headers=(), content_type="text/plain"):
        lines = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}", f"content-type: {content_type}", *headers]
        await self.raw("\r\n".join([*lines, "", ""]).encode() + body)

    async def chunks_begin(self, status=200, content_type="text/event-stream"):
        await self.raw(
            f"HTTP/1.1 {status} X\r\ntransfer-encoding: chunked\r\ncontent-type: {content_type}\r\n\r\n".encode()
        )

    async def chunk(self, data):
        await self.raw(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    async def chunks_end(self):
        await self.raw(b"0\r\n\r\n")

    async def event(self, said):
        text = said if isinstance(said, str) else json.dumps(said)
        await self.chunk(f"data: {text}\n\n".encode())

    def close(self):
        self.writer.transport.abort()


class Server:
    """Use as an async context manager. handler(asked, peer) answers each request; asked: all that came.

    accepted: connections so far.
    """

    def __init__(self, handler, context=None):
        self.handler, self.context = handler, context
        self.asked, self.accepted = [], 0
        self._tasks = set()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self.context)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader, writer):
        self._tasks.add(asyncio.current_task())
        self.accepted += 1
        number = self.accepted
        try:
            while True:
                asked = await read_request(reader, number)
                self.asked.append(asked)
                if await self.handler(asked, Peer(writer)) == "close":
                    return
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            return
        finally:
            writer.transport.abort()
            self._tasks.discard(asyncio.current_task())


async def read_request(reader, number=0):
    """Return the next request."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = head[0].split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Asked(method, path, headers, body, number)


async def fine(_asked, peer):
    """Answer 200."""
    await peer.answer()


def held(seconds, answer=fine):
    """Return a handler that waits before it answers."""

    async def handler(asked, peer):
        await asyncio.sleep(seconds)
        return await answer(asked, peer)

    return handler


@contextlib.asynccontextmanager
async def raw_server(serve):
    """Run a TCP server whose connections `serve(reader, writer)` handles; yields the port."""
    tasks = set()

    async def one(reader, writer):
        tasks.add(asyncio.current_task())
        try:
            await serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()
            tasks.discard(asyncio.current_task())

    server = await asyncio.start_server(one, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Certificates:
    """A certification authority of the test's own; files lie in a directory."""

    def __init__(self, directory):
        self.directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Test authority")])
        now = dt.datetime.now(dt.UTC)
        authority = x509.BasicConstraints(ca=True, path_length=None)
        usage = x509.KeyUsage(
            digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
            key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
        )  # fmt: skip
        self.certificate = (
            self._builder(self._name, self._key, now, 30)
            .add_extension(authority, critical=True)
            .add_extension(usage, critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.file = directory / "authority.pem"
        self.file.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))

    def _builder(self, subject, key, now, days):
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(days=40))
            .not_valid_after(now + dt.timedelta(days=days))
        )

    def server(self, *, days=10.0, names=("localhost", "model.example"), protocols=()):
        """Return a context for a server whose certificate is good for so many days."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Server")])
        others = [x509.DNSName(name) for name in names] + [x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        certificate = (
            self._builder(subject, key, dt.datetime.now(dt.UTC), days)
            .add_extension(x509.SubjectAlternativeName(others), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        path = self.directory / f"server-{certificate.serial_number}.pem"
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + private)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        if protocols:
            context.set_alpn_protocols(list(protocols))
        return context


# ---- streams


def chunk_of(delta=None, finish=None, **others):
    """Return an event of a chat stream."""
    return {
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}],
        **others,
    }


def usage_of(completion, prompt=9):
    """Return the event with the counts, which has no choices."""
    return {"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": completion}}


def stream(*steps, finishes=True):
    """Return a handler of a stream. A step is an event (dict or text), seconds to wait, or raw bytes."""

    async def handler(_asked, peer):
        await peer.chunks_begin()
        for step in steps:
            if isinstance(step, float):
                await asyncio.sleep(step)
            elif isinstance(step, bytes):
                await peer.chunk(step)
            else:
                await peer.event(step)
        if not finishes:
            peer.close()
            return "close"
        await peer.chunks_end()
        return None

    return handler


# ---- other protocols


class NameServer(asyncio.DatagramProtocol):
    """Answers each question with what `reply(question)` gives: bytes, or None for silence."""

    def __init__(self, reply):
        self.reply = reply
        self.asked = []

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, address):
        self.asked.append(data)
        answer = self.reply(data)
        if answer is not None:
            self.transport.sendto(answer, address)


@contextlib.asynccontextmanager
async def name_server(reply):
    """Run a name server; yields (port, server)."""
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.create_datagram_endpoint(lambda: NameServer(reply), local_addr=("127.0.0.1", 0))
    try:
        yield transport.get_extra_info("sockname")[1], protocol
    finally:
        transport.close()


def dns_answer(question, addresses=(), *, code=0, is_cut=False):
    """Return an answer whose records point to the question's name."""
    flags = 0x8180 | code | (0x0200 if is_cut else 0)
    head = question[:2] + flags.to_bytes(2, "big") + b"\0\1" + len(addresses).to_bytes(2, "big") + b"\0\0\0\0"
    records = b""
    for text in addresses:
        packed = ipaddress.ip_address(text).packed
        kind = 1 if len(packed) == 4 else 28
        records += b"\xc0\x0c" + kind.to_bytes(2, "big") + b"\0\1\0\0\0\x3c" + len(packed).to_bytes(2, "big") + packed
    return head + question[12:] + records


@contextlib.asynccontextmanager
async def grpc_server(reply, context=None):
    """Run an HTTP/2 server; reply(connection, stream, headers, body) answers each request. Yields (port, requests)."""
    from h2.config import H2Configuration
    from h2.connection import H2Connection
    from h2.events import DataReceived, RequestReceived, StreamEnded

    requests, tasks = [], set()

    async def serve(reader, writer):
        tasks.add(asyncio.current_task())
        connection = H2Connection(config=H2Configuration(client_side=False, header_encoding="utf-8"))
        connection.initiate_connection()
        headers, body = {}, {}
        try:
            writer.write(connection.data_to_send())
            while data := await reader.read(65_536):
                for event in connection.receive_data(data):
                    if isinstance(event, RequestReceived):
                        headers[event.stream_id], body[event.stream_id] = dict(event.headers), b""
                    elif isinstance(event, DataReceived):
                        body[event.stream_id] += event.data
                    elif isinstance(event, StreamEnded):
                        stream_id = event.stream_id
                        requests.append((headers[stream_id], body[stream_id]))
                        await reply(connection, stream_id, headers[stream_id], body[stream_id])
                writer.write(connection.data_to_send())
                await writer.drain()
        except (ConnectionError, asyncio.CancelledError):
            return
        finally:
            writer.transport.abort()
            tasks.discard(asyncio.current_task())

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1], requests
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def health(status=1, *, code="0", framed=None, wait=0.0):
    """Return a reply of a gRPC health service."""

    async def reply(connection, stream_id, _headers, _body):
        await asyncio.sleep(wait)
        connection.send_headers(stream_id, [(":status", "200"), ("content-type", "application/grpc")])
        message = b"\x08" + bytes([status]) if status else b""
        data = framed if framed is not None else b"\0" + len(message).to_bytes(4, "big") + message
        connection.send_data(stream_id, data)
        connection.send_headers(stream_id, [("grpc-status", code)], end_stream=True)

    return reply
