"""Probes in several states, for tests of their pages: results as agents and the panel tell them."""

from datetime import timedelta

from monitoring.probing.services import probe_create
from monitoring.probing.storing import results_store
from panel.core.clock import now
from tests.endpoints.world import Site
from tests.fleet.factories import OPERATOR
from tests.probing.test_storing import found

STREAM = {
    "kind": "chat", "host": "gateway.example", "port": 443, "is_tls": True, "path": "/chat/v1/chat/completions",
    "model": "qwen", "connections": ["cold", "warm"], "headers": {"X-Api-Key": "very-secret-key"}, "timeout_seconds": 12.5,
}  # fmt: skip


def stream_result(probe, at, **changes):
    """One stream with every phase."""
    phases = {
        "kind": "chat", "dns_ms": 4.0, "tcp_ms": 11.0, "tls_ms": 23.0, "send_ms": 0.2, "wait_ms": 61.8, "transfer_ms": 300.0,
        "ttfb_ms": 100.0, "ttfe_ms": 101.0, "ttft_ms": 180.0, "tpot_ms": 7.5, "total_ms": 400.0, "elapsed_ms": 400.5,
        "address": "203.0.113.7", "family": 4, "status": 200, "completion_tokens": 30, "tokens": "usage",
        "certificate_days": 9.5, "tls_version": "TLSv1.3", "timeout_ms": 12_500.0, "loop_lag_ms": 1.25,
    }  # fmt: skip
    return found(probe, at, **{"e2e": 400.0, **phases, **changes})


def probing_world():
    """A stream probed from the panel and from an agent that has no network now, one that fails, one that is paused."""
    site = Site("vantage-1")
    at = now() - timedelta(seconds=20)
    stream = probe_create(
        actor=OPERATOR, name="chat through the gateway", target=STREAM, bearer="bearer-very-secret", metric="ttft",
        threshold_ms=500.0, vantages=["panel", f"server:{site.server.pk}"],
    )  # fmt: skip
    warm = {
        "connection": "warm",
        "dns_ms": None,
        "tcp_ms": None,
        "tls_ms": None,
        "certificate_days": None,
        "ttft_ms": 120.0,
    }
    rows = [stream_result(stream, at - timedelta(seconds=30 * number)) for number in range(70)]
    rows += [stream_result(stream, at - timedelta(seconds=30 * number), **warm) for number in range(5)]
    results_store(server_id=0, results=rows, known={stream.pk}, at=now())
    down = {"outcome": "vantage_down", "reason": "connect", "phase_reached": "tcp", "elapsed_ms": 3000.0}
    away = [found(stream, at - timedelta(seconds=30 * number), kind="chat", **down) for number in range(3)]
    away += [stream_result(stream, at - timedelta(seconds=300), is_suspect=True, loop_lag_ms=48.0)]
    results_store(server_id=site.server.pk, results=away, known={stream.pk}, at=now())
    broken = probe_create(
        actor=OPERATOR,
        name="api",
        target={"kind": "http", "host": "api.example", "path": "/health"},
        vantages=["panel"],
    )
    failed = {
        "outcome": "http", "reason": "status", "detail": "503 <b>overloaded</b>", "status": 503, "phase_reached": "wait",
        "dns_ms": 2.0, "tcp_ms": 9.0, "send_ms": 0.1, "wait_ms": 20.0, "ttfb_ms": 31.1, "elapsed_ms": 31.4,
    }  # fmt: skip
    results_store(
        server_id=0, results=[found(broken, at - timedelta(seconds=30 * number), **failed) for number in range(4)],
        known={broken.pk}, at=now(),
    )  # fmt: skip
    paused = probe_create(
        actor=OPERATOR,
        name="paused",
        target={"kind": "dns", "host": "example.com"},
        vantages=["agents"],
        is_enabled=False,
    )
    return {"stream": stream, "broken": broken, "paused": paused, "site": site}
