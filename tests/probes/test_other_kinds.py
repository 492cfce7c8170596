"""KServe, gRPC health, DNS and ICMP."""

import asyncio
import json
import os
import socket
import subprocess
import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.agent.probes import dns_message, icmp
from fleet.agent.probes.addresses import Rules
from fleet.agent.probes.prober import Prober
from fleet.agent.probes.resolver import Resolver
from fleet.agent.probes.result import ProbeResult
from tests.probes.conftest import PRIVATE, names, target
from tests.probes.servers import Server, dns_answer, grpc_server, health, name_server, raw_server

# ---- KServe


async def kserve(prober, answer, **options):
    async def handler(_asked, peer):
        await peer.answer(*answer)

    async with Server(handler) as server:
        found = await prober.run(target(port=server.port, model="resnet 50", **options))
    return found, server.asked[0]


async def test_a_model_that_is_ready_says_so_by_its_status(prober):
    found, asked = await kserve(prober, (200, b""), kind="kserve_ready")
    assert (found.outcome, asked.method, asked.path) == ("ok", "GET", "/v2/models/resnet%2050/ready")
    found, _ = await kserve(prober, (400, b'{"error": "model is loading"}'), kind="kserve_ready")
    assert (found.outcome, found.detail) == ("http", "status 400: model is loading")


@pytest.mark.parametrize(
    ("answer", "outcome", "reason"),
    [
        (b'{"outputs": [{"name": "y", "shape": [1], "datatype": "FP32", "data": [1]}]}', "ok", ""),
        (b'{"outputs": []}', "empty", "no_outputs"),
        (b'{"error": "shape mismatch"}', "body", "error_answer"),
        (b"[1]", "body", "error_answer"),
        (b"<html>", "body", "not_json"),
    ],
)
async def test_an_inference_is_good_with_outputs(prober, answer, outcome, reason):
    body = {"inputs": [{"name": "x", "shape": [1], "datatype": "BYTES", "data": ["{nonce}"]}]}
    found, asked = await kserve(prober, (200, answer), kind="kserve_infer", body=body)
    assert (found.outcome, found.reason) == (outcome, reason)
    assert (asked.method, asked.path) == ("POST", "/v2/models/resnet%2050/infer")
    assert asked.json["inputs"][0]["data"] != ["{nonce}"]


async def test_binary_outputs_behind_the_json_are_no_broken_json(prober):
    said = json.dumps({"outputs": [{"name": "y"}]}).encode()
    answer = (200, said + b"\x00\xff", [f"Inference-Header-Content-Length: {len(said)}"])
    found, _ = await kserve(prober, answer, kind="kserve_infer")
    assert found.outcome == "ok"


# ---- gRPC health


@pytest.mark.parametrize("is_tls", [False, True])
async def test_a_service_that_serves_is_ok(prober, certificates, is_tls):
    context = certificates.server(protocols=["h2"]) if is_tls else None
    async with grpc_server(health(wait=0.05), context) as (port, requests):
        found = await prober.run(target("grpc_health", port, is_tls=is_tls, service="my.Model"))
    assert (found.outcome, found.status, found.phase_reached) == ("ok", 200, "done")
    assert found.wait_ms >= 50
    assert (found.tls_ms is not None) == is_tls
    headers, body = requests[0]
    assert (headers[":path"], headers["te"], headers["x-fleetdeck-probe"]) == (
        "/grpc.health.v1.Health/Check",
        "trailers",
        "here",
    )
    assert body == b"\0\0\0\0\x0a\x0a\x08my.Model"


@pytest.mark.parametrize(
    ("reply", "outcome", "reason"),
    [
        (health(2), "body", "not_serving"),
        (health(0), "body", "not_serving"),
        (health(code="12"), "http", "no_health_service"),
        (health(code="5"), "http", "unknown_service"),
        (health(framed=b"\0\0\0\0\x02\x10\x01"), "body", "unreadable"),
        (health(framed=b"\1\0\0\0\x02\x08\x01"), "body", "unreadable"),
        (health(framed=b"x" * 10_000), "body", "too_large"),
    ],
)
async def test_a_service_that_does_not_serve_is_a_failure_with_its_reason(prober, reply, outcome, reason):
    async with grpc_server(reply) as (port, _):
        found = await prober.run(target("grpc_health", port))
    assert (found.outcome, found.reason) == (outcome, reason)


async def test_a_stream_that_is_reset_is_aborted(prober):
    async def resets(connection, stream_id, _headers, _body):
        connection.reset_stream(stream_id, 2)

    async with grpc_server(resets) as (port, _):
        found = await prober.run(target("grpc_health", port))
    assert (found.outcome, found.reason) == ("aborted", "reset")


async def test_a_warm_health_probe_uses_its_connection_again(prober):
    async with grpc_server(health()) as (port, requests):
        both = target("grpc_health", port, connections=("cold", "warm"))
        cold, warm = await prober.run(both), await prober.run(both, "warm")
    assert (cold.outcome, warm.outcome, warm.tcp_ms, len(requests)) == ("ok", "ok", None, 2)


async def test_a_name_of_a_service_may_be_long(prober):
    async with grpc_server(health()) as (port, requests):
        await prober.run(target("grpc_health", port, service="s" * 200))
    assert requests[0][1] == b"\0\0\0\0\xcb\x0a\xc8\x01" + b"s" * 200


# ---- DNS


async def ask(prober, reply, **options):
    async with name_server(reply) as (port, server):
        one = target("dns", None, host="model.example", server=f"127.0.0.1:{port}", timeout_seconds=0.5, **options)
        return await prober.run(one), server


async def test_a_name_servers_answer_is_timed_and_read(prober):
    found, _ = await ask(
        prober, lambda question: dns_answer(question, ["192.0.2.1", "192.0.2.2"]), expected=["192.0.2.2"]
    )
    assert (found.outcome, found.address) == ("ok", "127.0.0.1")
    assert found.dns_ms == found.total_ms
    assert found.dns_ms >= found.wait_ms
    assert found.tcp_ms is None


@pytest.mark.parametrize(
    ("reply", "outcome", "reason"),
    [
        (lambda question: dns_answer(question, code=3), "dns", "not_found"),
        (lambda question: dns_answer(question, code=2), "dns", "server_failure"),
        (dns_answer, "empty", "no_addresses"),
        (lambda question: dns_answer(question, ["192.0.2.9"]), "body", "other_addresses"),
        (lambda question: dns_answer(question, ["192.0.2.9"])[:-3], "dns", "unreadable"),
        (lambda question: b"x", "dns", "unreadable"),
        (lambda question: None, "timeout", "timeout"),
        (lambda question: b"zz" + dns_answer(question, ["192.0.2.1"])[2:], "timeout", "timeout"),
        (lambda question: dns_answer(question[:13] + b"x" + question[14:], ["192.0.2.1"]), "timeout", "timeout"),
    ],
)
async def test_other_answers_of_a_name_server(prober, reply, outcome, reason):
    found, _ = await ask(prober, reply, expected=["192.0.2.1"])
    assert (found.outcome, found.reason) == (outcome, reason)


async def test_ipv6_addresses_are_asked_for_by_their_own_type(prober):
    found, server = await ask(prober, lambda question: dns_answer(question, ["2001:db8::1"]), query="AAAA")
    assert found.outcome == "ok"
    assert server.asked[0].endswith(b"\0\x1c\0\1")


async def test_an_answer_too_long_for_a_datagram_is_asked_for_again_over_tcp(prober):
    async def over_tcp(reader, writer):
        question = await reader.readexactly(int.from_bytes(await reader.readexactly(2), "big"))
        answer = dns_answer(question, ["192.0.2.1"])
        writer.write(len(answer).to_bytes(2, "big") + answer)
        await writer.drain()

    async with raw_server(over_tcp) as port:
        loop = asyncio.get_running_loop()
        from tests.probes.servers import NameServer

        transport, _ = await loop.create_datagram_endpoint(
            lambda: NameServer(lambda question: dns_answer(question, is_cut=True)), local_addr=("127.0.0.1", port)
        )
        found = await prober.run(target("dns", None, host="model.example", server=f"127.0.0.1:{port}"))
        transport.close()
    assert found.outcome == "ok"


async def test_without_a_server_the_systems_resolver_is_asked():
    async with Prober("here", rules=Rules(), resolver=Resolver(lookup=names(model_example=["192.0.2.1"]))) as prober:
        found = await prober.run(target("dns", None, host="model.example"))
        missing = await prober.run(target("dns", None, host="other.example"))
    assert (found.outcome, missing.outcome, missing.reason) == ("ok", "dns", "not_found")
    assert found.dns_ms == found.total_ms


async def test_a_name_server_has_to_be_allowed_and_an_address():
    async with Prober("here", rules=Rules()) as prober:
        private = await prober.run(target("dns", None, host="model.example", server="10.0.0.1"))
        name = await prober.run(target("dns", None, host="model.example", server="ns.example:53"))
    assert (private.reason, name.reason) == ("address_refused", "not_an_address")


@given(st.binary(max_size=200))
def test_any_datagram_is_an_answer_another_ones_or_an_error(data):
    question = dns_message.encode("model.example", "A", 7)
    for candidate in (
        data,
        question[:2] + data,
        dns_answer(question, ["192.0.2.1"]) + data,
        dns_answer(question)[:6] + data,
    ):
        try:
            found = dns_message.decode(candidate, question)
        except ValueError:
            continue
        assert found is None or isinstance(found.rcode, int)


@pytest.mark.parametrize("name", ["", ".", "a..b", "x" * 64 + ".example", ".".join(["abcdefgh"] * 40)])
def test_what_is_no_name_is_refused(name):
    with pytest.raises(ValueError, match="name"):
        dns_message.encode(name, "A", 1)


# ---- ICMP


ECHO = """
import asyncio, sys
from tests.probes.conftest import PRIVATE, target
from fleet.agent.probes.prober import Prober
import msgspec

async def main():
    async with Prober("here", rules=PRIVATE) as prober:
        one = target("icmp", None, host=sys.argv[1], timeout_seconds=5)
        sys.stdout.buffer.write(msgspec.json.encode(await prober.run(one)))

asyncio.run(main())
"""
PERMITTED = "ip link set lo up && sysctl -qw net.ipv4.ping_group_range='0 2147483647'"


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_an_echo_comes_back_where_it_is_permitted(address):
    script = f'{PERMITTED} && exec "$0" -c "$1" "$2"'
    attempt = ["sh", "-c", f'unshare --net sh -c "{PERMITTED}"']
    if os.geteuid() != 0 or subprocess.run(attempt, check=False, capture_output=True).returncode:
        pytest.skip("no network namespace where ICMP is permitted: needs root, unshare, iproute2 and sysctl")
    command = ["unshare", "--net", "sh", "-c", script, sys.executable, ECHO, address]
    found = msgspec.json.decode(subprocess.run(command, check=True, capture_output=True).stdout, type=ProbeResult)
    assert (found.outcome, found.address) == ("ok", address)
    assert found.wait_ms <= found.total_ms
    assert found.tcp_ms is None


async def test_where_icmp_is_not_permitted_the_probe_is_skipped_and_says_why(prober, monkeypatch):
    real = socket.socket

    def refuse(family=-1, kind=-1, proto=-1, fileno=None):
        if proto == socket.IPPROTO_ICMP:
            raise PermissionError(1, "Operation not permitted")
        return real(family, kind, proto, fileno)

    monkeypatch.setattr(icmp.socket, "socket", refuse)
    found = await prober.run(target("icmp", None))
    assert (found.outcome, found.reason) == ("skipped", "not_permitted")
    assert "ping_group_range" in found.detail


def test_a_reply_is_ours_by_its_payload_with_an_ip_header_or_without():
    payload = b"0123456789abcdef"
    reply = bytes([0, 0, 0, 0, 0, 1, 0, 1]) + payload
    assert icmp._is_reply(reply, 4, payload)
    assert icmp._is_reply(b"\x45" + bytes(19) + reply, 4, payload)
    assert not icmp._is_reply(reply, 4, b"another payload!")
    assert not icmp._is_reply(bytes([8]) + reply[1:], 4, payload)
    assert not icmp._is_reply(b"", 4, payload)


async def test_a_kind_without_a_connection_is_never_warm(prober):
    found = await prober.run(target("tcp", 9, connections=("warm",)), "warm")
    assert (found.outcome, found.reason) == ("skipped", "never_warm")


async def test_rules_hold_for_icmp_too():
    async with Prober("here", rules=Rules()) as prober:
        found = await prober.run(target("icmp", None, host="10.0.0.1"))
    assert found.reason == "address_refused"
    assert PRIVATE.allow("10.0.0.1")
