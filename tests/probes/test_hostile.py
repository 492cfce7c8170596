"""Servers that mean harm: every probe ends in its time, with bounded memory, and the next one works."""

import asyncio
import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleet.agent.probes.prober import Prober
from tests.probes.conftest import PRIVATE, target
from tests.probes.servers import Server, fine, raw_server, read_request
from tests.waiting import eventually_here

HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


async def slow_headers(writer):
    writer.write(HEAD)
    for _ in itertools.count():
        writer.write(b"x")
        await asyncio.sleep(0.01)


async def endless_headers(writer):
    writer.write(HEAD)
    for number in itertools.count():
        writer.write(b"x-%d: %s\r\n" % (number, b"a" * 500))
        await writer.drain()


async def one_endless_header(writer):
    writer.write(HEAD + b"x: ")
    while True:
        writer.write(b"a" * 4096)
        await writer.drain()


async def endless_informational(writer):
    while True:
        writer.write(b"HTTP/1.1 103 Early\r\n\r\n")
        await writer.drain()


async def endless_tiny_chunks(writer):
    writer.write(CHUNKED)
    while True:
        writer.write(b"1\r\n:\r\n" * 4000)
        await writer.drain()


async def endless_huge_chunks(writer):
    writer.write(CHUNKED)
    while True:
        writer.write(b"100000\r\n" + b":" * 0x100000 + b"\r\n")
        await writer.drain()


async def a_chunk_of_absurd_size(writer):
    writer.write(CHUNKED + b"f" * 200 + b"\r\n")
    await asyncio.sleep(60)


async def endless_events(writer):
    writer.write(CHUNKED)
    while True:
        writer.write(b'20\r\ndata: {"choices":[{"delta":{}}]}\n\r\n2\r\n\n\n\r\n' * 500)
        await writer.drain()


async def garbage(writer):
    writer.write(bytes(range(256)) * 40)
    await writer.drain()


async def a_huge_promise(writer):
    writer.write(HEAD + b"content-length: 99999999999\r\n\r\nabc")
    await asyncio.sleep(60)


async def two_lengths(writer):
    writer.write(HEAD + b"content-length: 3\r\ncontent-length: 4\r\n\r\nabcd")
    await writer.drain()


async def nothing(writer):
    await asyncio.sleep(60)


async def goes_away(_writer):
    return


async def another_protocol(writer):
    writer.write(HEAD.replace(b"200 OK", b"101 Switching") + b"upgrade: x\r\nconnection: upgrade\r\n\r\n" + b"z" * 4096)
    await asyncio.sleep(60)


BAD = [
    slow_headers, endless_headers, one_endless_header, endless_informational, endless_tiny_chunks, endless_huge_chunks,
    a_chunk_of_absurd_size, endless_events, garbage, a_huge_promise, two_lengths, nothing, goes_away, another_protocol,
]  # fmt: skip


@pytest.mark.parametrize("kind", ["http", "chat", "kserve_infer", "grpc_health"])
@pytest.mark.parametrize("behaviour", BAD, ids=lambda behaviour: behaviour.__name__)
async def test_a_hostile_server_ends_within_the_timeout(prober, kind, behaviour):
    async def serve(reader, writer):
        if kind != "grpc_health":
            await read_request(reader)
        await behaviour(writer)

    async with raw_server(serve) as port:
        bad = target(kind, port, timeout_seconds=0.4, max_body_bytes=4 * 1024 * 1024, connections=("cold", "warm"))
        found = await prober.run(bad)
    assert found.outcome in {"timeout", "http", "body", "stream_error", "aborted"}, found
    assert found.reason != "prober_error"
    assert found.elapsed_ms < 3_000
    assert found.bytes < 8 * 1024 * 1024
    assert found.total_ms is None
    assert not prober._kept


async def test_a_flood_holds_up_no_other_probe(prober):
    async def serve(reader, writer):
        await read_request(reader)
        await endless_tiny_chunks(writer)

    async with raw_server(serve) as port, Server(fine) as server:
        flooded = asyncio.create_task(prober.run(target("chat", port, timeout_seconds=1.0)))
        await asyncio.sleep(0.2)
        beside = await prober.run(target(port=server.port, id=2))
        assert (await flooded).outcome in {"timeout", "stream_error", "body"}
    assert beside.outcome == "ok"
    assert beside.total_ms < 500


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=400), st.sampled_from(["http", "chat", "grpc_health"]))
def test_any_answer_at_all_gives_a_result(answer, kind):
    async def serve(reader, writer):
        await reader.read(1)
        writer.write(answer)
        await writer.drain()
        writer.write_eof()
        await reader.read()

    async def once():
        async with raw_server(serve) as port, Prober("here", rules=PRIVATE) as prober:
            return await prober.run(target(kind, port, timeout_seconds=0.5))

    found = asyncio.run(once())
    assert found.reason != "prober_error", found


async def test_a_flood_of_a_body_nobody_reads_makes_the_server_wait_and_fills_no_memory():
    from fleet.agent.probes.link import HIGH_BYTES, Link

    sent = 0

    async def serve(_reader, writer):
        nonlocal sent
        while True:
            writer.write(b"x" * 65_536)
            sent += 65_536
            await writer.drain()

    async with raw_server(serve) as port:
        loop = asyncio.get_running_loop()
        _, link = await loop.create_connection(Link, "127.0.0.1", port)
        await eventually_here(lambda: link._is_paused)
        seen = itertools.pairwise(iter(lambda: sent, None))
        await eventually_here(lambda: next(seen), lambda pair: pair[0] == pair[1] > 0)
        assert 0 < link._waiting <= HIGH_BYTES + 262_144
        while link._waiting > HIGH_BYTES // 4:
            await link.read()
        link.abort()
