"""HTTP, TCP and TLS probes: phases by what happened, connections kept apart, answers judged, redirects named."""

import asyncio
import socket

import pytest

from fleet.agent.probes.prober import Prober
from fleet.agent.probes.resolver import Resolver
from tests.probes.conftest import PRIVATE, names, target
from tests.probes.servers import Server, fine, held, raw_server

HOLD = 0.05


async def test_the_time_a_server_takes_is_in_wait_and_nowhere_else(prober):
    async with Server(held(HOLD)) as server:
        found = await prober.run(target(port=server.port))
    assert (found.outcome, found.status, found.phase_reached) == ("ok", 200, "done")
    assert found.wait_ms >= HOLD * 1000
    assert found.total_ms >= found.ttfb_ms >= found.wait_ms
    assert max(found.tcp_ms, found.send_ms, found.transfer_ms, found.other_ms) < found.wait_ms
    assert (found.address, found.family, found.tried, found.bytes) == ("127.0.0.1", 4, 1, 2)


async def test_phases_that_did_not_happen_are_null(prober):
    async with Server(fine) as server:
        found = await prober.run(target(port=server.port))
    assert (found.dns_ms, found.tls_ms, found.ttft_ms, found.ttfe_ms, found.tpot_ms) == (None,) * 5
    assert found.certificate_days is None
    assert None not in (found.tcp_ms, found.send_ms, found.wait_ms, found.transfer_ms, found.total_ms, found.e2e_ms)


async def test_phases_add_up_to_the_total(prober, certificates):
    async with Server(held(HOLD), certificates.server()) as server:
        found = await prober.run(target(port=server.port, host="model.example", is_tls=True))
    parts = [found.dns_ms, found.tcp_ms, found.tls_ms, found.send_ms, found.wait_ms, found.transfer_ms, found.other_ms]
    assert sum(parts) == pytest.approx(found.total_ms, abs=0.05)


async def test_a_slow_body_is_transfer_and_not_wait(prober):
    async def slow_body(_asked, peer):
        await peer.chunks_begin(content_type="text/plain")
        await peer.chunk(b"first")
        await asyncio.sleep(HOLD)
        await peer.chunk(b"second")
        await peer.chunks_end()

    async with Server(slow_body) as server:
        found = await prober.run(target(port=server.port))
    assert found.transfer_ms >= HOLD * 1000 > found.wait_ms
    assert found.bytes == 11


async def test_a_request_is_marked_as_a_probe_and_carries_what_the_target_says(prober):
    async with Server(fine) as server:
        one = target(
            port=server.port,
            method="POST",
            body={"text": "say {nonce}"},
            bearer="secret",
            headers={"x-own": "1"},
            path="/a?b=c",
        )
        await prober.run(one)
        await prober.run(one)
    first, second = server.asked
    assert (first.method, first.path, first.headers["x-fleetdeck-probe"]) == ("POST", "/a?b=c", "here")
    assert (first.headers["authorization"], first.headers["x-own"]) == ("Bearer secret", "1")
    assert first.headers["host"] == f"127.0.0.1:{server.port}"
    assert "{nonce}" not in first.json["text"]
    assert first.json != second.json


async def test_the_mark_of_a_probe_cannot_be_overwritten_by_a_targets_headers(prober):
    async with Server(fine) as server:
        await prober.run(target(port=server.port, headers={"X-fleetdeck-probe": "", "User-Agent": "me"}))
    assert server.asked[0].headers["x-fleetdeck-probe"] == "here"
    assert server.asked[0].headers["user-agent"] == "me"


# ---- cold and warm


async def test_a_warm_probe_uses_the_connection_of_the_cold_one_and_has_no_phases_of_connecting(prober):
    async with Server(fine) as server:
        both = target(port=server.port, connections=("cold", "warm"))
        cold = await prober.run(both, "cold")
        warm = await prober.run(both, "warm")
        again = await prober.run(both, "warm")
    assert (cold.connection, warm.connection, again.outcome) == ("cold", "warm", "ok")
    assert cold.tcp_ms is not None
    assert (warm.dns_ms, warm.tcp_ms, warm.tls_ms, again.tcp_ms) == (None,) * 4
    assert warm.address == "127.0.0.1"
    assert [asked.connection for asked in server.asked] == [1, 1, 1]


async def test_each_cold_probe_has_a_connection_of_its_own(prober):
    async with Server(fine) as server:
        for _ in range(3):
            await prober.run(target(port=server.port))
    assert [asked.connection for asked in server.asked] == [1, 2, 3]


async def test_a_warm_probe_without_an_open_connection_opens_one_unmeasured(prober):
    async with Server(held(HOLD)) as server:
        warm = await prober.run(target(port=server.port, connections=("warm",), warm_path="/light"), "warm")
    assert [asked.path for asked in server.asked] == ["/light", "/"]
    assert (warm.outcome, warm.tcp_ms) == ("ok", None)
    assert warm.total_ms < 2 * HOLD * 1000


async def test_a_server_that_closed_an_idle_connection_costs_no_result(prober):
    async def closes_after_two(asked, peer):
        await peer.answer()
        return "close" if len(server.asked) == 2 else None

    async with Server(closes_after_two) as server:
        warm = target(port=server.port, connections=("warm",))
        first = await prober.run(warm, "warm")
        second = await prober.run(warm, "warm")
    assert (first.outcome, second.outcome) == ("ok", "ok")
    assert [asked.connection for asked in server.asked] == [1, 1, 2, 2]


async def test_a_server_that_closes_while_a_warm_request_is_under_way_is_asked_once_more(prober):
    async def closes_on_the_third(_asked, peer):
        if len(server.asked) == 3:
            peer.close()
            return "close"
        return await peer.answer()

    async with Server(closes_on_the_third) as server:
        warm = target(port=server.port, connections=("warm",))
        await prober.run(warm, "warm")
        second = await prober.run(warm, "warm")
    assert second.outcome == "ok"


async def test_a_server_without_keep_alive_is_named_and_not_measured_as_warm(prober):
    async def closing(_asked, peer):
        await peer.answer(headers=["connection: close"])
        return "close"

    async with Server(closing) as server:
        found = await prober.run(target(port=server.port, connections=("warm",)), "warm")
    assert (found.outcome, found.reason, found.total_ms) == ("skipped", "no_keep_alive", None)


async def test_a_warm_probe_of_a_dead_server_has_its_outcome_but_no_phase(prober):
    async with Server(fine) as server:
        port = server.port
    found = await prober.run(target(port=port, connections=("warm",)), "warm")
    assert (found.outcome, found.reason, found.phase_reached, found.tcp_ms) == ("connect", "refused", "tcp", None)


# ---- answers


@pytest.mark.parametrize(
    ("options", "outcome", "reason"),
    [
        ({"must_contain": "alive"}, "ok", ""),
        ({"must_contain": "dead"}, "body", "text_missing"),
        ({"must_not_contain": "alive"}, "body", "text_found"),
        ({"statuses": [204]}, "http", "status"),
        ({"max_body_bytes": 3}, "body", "too_large"),
    ],
)
async def test_an_answer_is_judged(prober, options, outcome, reason):
    async def alive(_asked, peer):
        await peer.answer(body=b"I am alive")

    async with Server(alive) as server:
        found = await prober.run(target(port=server.port, **options))
    assert (found.outcome, found.reason) == (outcome, reason)
    assert (found.total_ms is None) == (outcome != "ok")
    assert found.elapsed_ms > 0


async def test_what_an_engine_says_of_its_error_is_told_as_one_line(prober):
    async def unwell(_asked, peer):
        await peer.answer(503, b'{"error": {"message": "model is\\nloading\\u202e"}}')

    async with Server(unwell) as server:
        found = await prober.run(target(port=server.port))
    assert (found.outcome, found.status, found.detail) == ("http", 503, "status 503: model is loading")
    assert found.ttfb_ms is not None


async def test_a_redirect_is_named_and_not_followed(prober):
    async def moved(_asked, peer):
        await peer.answer(301, headers=["location: /elsewhere?token=secret"])

    async with Server(moved) as server:
        found = await prober.run(target(port=server.port))
    assert (found.outcome, found.reason) == ("http", "redirect")
    assert found.detail == f"301 to http://127.0.0.1:{server.port}/elsewhere"
    assert len(server.asked) == 1


async def test_followed_redirects_are_recorded_one_by_one_and_secrets_stay_behind(prober):
    async def away(_asked, peer):
        await peer.answer(302, headers=[f"location: http://127.0.0.1:{second.port}/there"])

    async with Server(fine) as second, Server(away) as first:
        found = await prober.run(target(port=first.port, follow=1, bearer="secret", mark="m1", headers={"x-key": "k"}))
    assert (found.outcome, [hop.status for hop in found.hops]) == ("ok", [302])
    assert found.hops[0].tcp_ms is not None
    assert {"authorization", "x-fleetdeck-probe-mark"} <= set(first.asked[0].headers)
    assert not {"authorization", "x-key", "x-fleetdeck-probe-mark"} & set(second.asked[0].headers)


async def test_no_more_redirects_are_followed_than_allowed(prober):
    async def round_and_round(_asked, peer):
        await peer.answer(302, headers=["location: /again"])

    async with Server(round_and_round) as server:
        found = await prober.run(target(port=server.port, follow=2))
    assert (found.outcome, found.reason, len(server.asked)) == ("http", "redirect", 3)


@pytest.mark.parametrize("location", ["ftp://x/", "http://user@127.0.0.1/", "http://[", "", "http://127.0.0.1:99999/"])
async def test_a_redirect_to_no_proper_place_is_no_surprise(prober, location):
    async def moved(_asked, peer):
        await peer.answer(302, headers=[f"location: {location}"])

    async with Server(moved) as server:
        found = await prober.run(target(port=server.port, follow=3))
    assert (found.outcome, found.reason) == ("http", "redirect")


# ---- time


async def test_a_probe_ends_at_its_timeout_and_says_how_far_it_came(prober):
    async with Server(held(30)) as server:
        found = await prober.run(target(port=server.port, timeout_seconds=0.2))
    assert (found.outcome, found.phase_reached, found.timeout_ms) == ("timeout", "wait", 200)
    assert found.tcp_ms is not None
    assert (found.wait_ms, found.total_ms) == (None, None)
    assert 200 <= found.elapsed_ms < 5_000


async def test_the_effective_timeout_is_the_one_that_is_shown(prober):
    async with Server(fine) as server:
        found = await prober.run(target(port=server.port, timeout_seconds=86_400.0))
    assert found.timeout_ms == 600_000


async def test_a_loop_that_is_blocked_makes_the_result_suspect(prober):
    import time

    async with Server(held(0.2)) as server:
        clean = asyncio.get_running_loop().create_task(prober.run(target(port=server.port)))
        await asyncio.sleep(0.1)
        time.sleep(0.08)  # noqa: ASYNC251  # what must never happen in a prober, on purpose
        found = await clean
    assert found.is_suspect
    assert found.loop_lag_ms > 20


async def test_a_probe_that_begins_late_is_suspect(prober):
    import time

    async with Server(fine) as server:
        found = await prober.run(target(port=server.port), scheduled=time.time() - 5)
    assert found.is_suspect
    assert found.sched_lag_ms >= 5_000
    assert found.outcome == "ok"


# ---- TCP and TLS


async def test_a_tcp_probe_ends_with_the_connection(prober):
    async with raw_server(lambda reader, _writer: reader.read()) as port:
        found = await prober.run(target("tcp", port))
    assert (found.outcome, found.send_ms, found.ttfb_ms, found.status) == ("ok", None, None, None)
    assert found.tcp_ms <= found.total_ms


async def test_a_port_where_nobody_listens_is_refused(prober):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        found = await prober.run(target("tcp", free.getsockname()[1]))
    assert (found.outcome, found.reason, found.phase_reached) == ("connect", "refused", "tcp")


async def test_a_tls_probe_tells_how_long_the_certificate_is_good_for(prober, certificates):
    async with Server(fine, certificates.server(days=10)) as server:
        found = await prober.run(target("tls", server.port))
    assert found.outcome == "ok"
    assert found.certificate_days == pytest.approx(10, abs=0.1)
    assert found.tls_version.startswith("TLS")
    assert found.tls_ms > 0


@pytest.mark.parametrize(("days", "host"), [(-1, "127.0.0.1"), (10, "other.example")])
async def test_a_certificate_that_is_not_good_is_a_failure_of_tls(certificates, prober, days, host):
    lookup = Resolver(lookup=names(other_example=["127.0.0.1"]))
    async with Server(fine, certificates.server(days=days)) as server:
        contexts = prober._way.contexts
        async with Prober("here", rules=PRIVATE, resolver=lookup, contexts=contexts) as other:
            found = await other.run(target("tls", server.port, host=host))
    assert (found.outcome, found.reason, found.phase_reached) == ("tls", "certificate", "tls")
    assert found.tcp_ms is not None
    assert found.tls_ms is None


async def test_a_certificate_that_is_not_to_be_checked_is_not(prober, certificates):
    async with Server(fine, certificates.server(days=-1)) as server:
        found = await prober.run(target(port=server.port, is_tls=True, is_verified=False))
    assert (found.outcome, found.certificate_days) == ("ok", None)


async def test_a_handshake_that_never_ends_is_a_timeout_within_tls(prober):
    async with raw_server(lambda reader, _writer: reader.read()) as port:
        found = await prober.run(target("tls", port, timeout_seconds=0.2))
    assert (found.outcome, found.phase_reached) == ("timeout", "tls")


@pytest.mark.parametrize("reply", [b"HTTP/1.1 400 no\r\n\r\n", b""])
async def test_a_port_without_tls_is_a_failure_of_tls(prober, reply):
    async def answers(reader, writer):
        await reader.read(1)
        writer.write(reply)
        await writer.drain()

    async with raw_server(answers) as port:
        found = await prober.run(target("tls", port))
    assert (found.outcome, found.phase_reached) == ("tls", "tls")


async def test_contexts_are_made_once(prober, certificates):
    async with Server(fine, certificates.server()) as server:
        for _ in range(3):
            await prober.run(target(port=server.port, is_tls=True))
    assert len(prober._way.contexts._made) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"host": "http://x"}, {"port": 70_000}, {"path": "x"}, {"path": "/a b"}, {"path": "/ä"}, {"timeout_seconds": 0.0},
        {"timeout_seconds": float("nan")}, {"interval_seconds": 0.1}, {"headers": {"a": "b\r\nc: d"}}, {"bearer": "a\nb"},
        {"headers": {"a b": "c"}}, {"follow": 9}, {"connections": ()}, {"max_body_bytes": 0},
    ],
)  # fmt: skip
async def test_what_is_no_target_is_skipped_with_what_to_change(prober, wrong):
    found = await prober.run(target(**{"port": 9, **wrong}))
    assert (found.outcome, found.reason) == ("skipped", "not_a_target")
    assert found.detail
