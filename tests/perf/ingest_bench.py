"""Ingest: reports per second over 16 connections, each answered after its commit.

Beside: one COPY a report on one connection (what the database does alone), and VictoriaMetrics' import of the same samples
over as many connections (which commits nothing before it answers). A report is 8 cards × 5 samples.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import time
import uuid
from contextlib import contextmanager

import msgspec
import numpy as np
import psycopg
import zstandard

from fleet.agent import wire
from tests.perf import peers
from tests.perf.harness import Row
from tests.perf.live_bench import free_port, until_listening
from tests.perf.store_bench import database

CONNECTIONS = 16
REPORTS = 400  # for each connection and round
ROUNDS = 3
CARDS = 8
SAMPLES = 5
GOAL_COPY = 2.2
GOAL_VICTORIA = 0.85
STEP_MS = 5_000  # of the cards' counters; the reports themselves are as punctual as an agent's


def readings(card, step):
    """Return the readings of one sample: the 16 values of a data-centre card."""
    return {
        "utilization_percent": 60 + (card * 7 + step * 3) % 40,
        "memory_busy_percent": 30 + step % 9,
        "memory_used_bytes": (60 << 30) + (card << 21),
        "power_milliwatts": 350_000 + (step * 7919 + card * 104_729) % 90_000,
        "energy_millijoules": 10**12 + step * 1_750_000 + card,
        "temperature_celsius": 61 + card % 5,
        "memory_temperature_celsius": 70 + card % 5,
        "sm_clock_mhz": 1980 - 15 * (step % 4),
        "memory_clock_mhz": 2619,
        "encoder_percent": 0,
        "decoder_percent": 0,
        "performance_state": 0,
        "clock_event_reasons": 4,
        "pcie_tx_bytes": 10**12 + step * 40_000_000,
        "pcie_rx_bytes": 10**12 + step * 70_000_000,
        "nvlink_tx_kib": 10**9 + step * 9_000_000,
        "thermal_violation_ns": 0,
        "power_violation_ns": step * 10_000_000,
    }


def report(boot_id, seq, name, start_ms):
    """Return one report of a run, as an agent sends it: `previous` with each card, compressed."""

    def sample(card, step):
        return wire.GpuSample(at_ms=start_ms + step, monotonic_ms=10**7 + step * STEP_MS, **readings(card, step))

    first = seq * SAMPLES
    gpus = [
        wire.Gpu(
            uuid=f"GPU-{name}-{card}",
            index=card,
            previous=sample(card, first - 1),
            samples=[sample(card, first + number) for number in range(SAMPLES)],
        )
        for card in range(CARDS)
    ]
    return wire.Report(
        protocol=wire.PROTOCOL,
        boot_id=boot_id,
        seq=seq,
        agent_version="bench",
        driver=wire.Driver(state="ok"),
        gpus=gpus,
    )


def request(port, path, headers, body):
    """Return one HTTP request as bytes."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: {len(body)}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return head.encode() + b"\r\n" + body


class Connection(asyncio.Protocol):
    """Sends one request after the other over one connection; costs the measured machine as little as it can."""

    def __init__(self, requests, done):
        self._requests = iter(requests)
        self._done = done
        self._buffer = b""
        self._sent_at = 0.0
        self.seconds = []

    def connection_made(self, transport):
        self._transport = transport
        self._next()

    def data_received(self, data):
        self._buffer += data
        head, found, body = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        length = next((line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), b":0")
        if len(body) < int(length.partition(b":")[2]):
            return
        self._buffer = b""
        self.seconds.append(time.perf_counter() - self._sent_at)
        if head[9:10] != b"2":
            self._done.set_exception(RuntimeError(f"{head[:60]!r} {body[:300]!r}"))
            self._transport.close()
            return
        self._next()

    def _next(self):
        following = next(self._requests, None)
        if following is None:
            self._transport.close()
            if not self._done.done():
                self._done.set_result(None)
            return
        self._sent_at = time.perf_counter()
        self._transport.write(following)


async def send_all(port, streams):
    """Send each stream over a connection of its own; returns requests per second and each one's seconds."""
    loop = asyncio.get_running_loop()
    done = [loop.create_future() for _ in streams]
    began = time.perf_counter()
    connections = [
        (await loop.create_connection(lambda s=stream, d=end: Connection(s, d), "127.0.0.1", port))[1]
        for stream, end in zip(streams, done, strict=True)
    ]
    await asyncio.gather(*done)
    elapsed = time.perf_counter() - began
    return sum(map(len, streams)) / elapsed, [one for connection in connections for one in connection.seconds]


def join_agents():
    """Make an agent for each connection; returns (name, token)."""
    from fleet.models import Agent, Server
    from panel.core import tokens
    from panel.core.clock import now

    agents = []
    for number in range(CONNECTIONS):
        issued = tokens.issue(tokens.AGENT_TOKEN)
        server = Server.objects.create(name=f"bench-{number}", state="ready", state_changed_at=now(), created_at=now())
        Agent.objects.create(server=server, token_prefix=issued.prefix, token_hash=issued.token_hash, joined_at=now())
        agents.append((f"{number}", issued.token))
    return agents


@contextmanager
def application(port):
    """Run the panel's web process as `make up` does."""
    command = [sys.executable, "-m", "uvicorn", "panel.asgi:application", "--port", str(port), "--no-access-log"]
    environment = os.environ | {
        "FLEETDECK_INGEST_REPORTS_PER_SECOND": "1000000",
        "FLEETDECK_INGEST_REPORTS_BURST": "1000000",
        "FLEETDECK_LOG_LEVEL": "WARNING",
    }
    process = subprocess.Popen([*command, "--log-level", "warning"], env=environment)
    try:
        asyncio.run(until_listening(port, process))
        yield process
    finally:
        process.terminate()
        process.wait(20)


def our_streams(port, agents, first_seq):
    """Return the requests of each agent for one round."""
    start_ms = int(time.time() * 1000) - (first_seq + REPORTS) * SAMPLES
    compress = zstandard.ZstdCompressor(level=3).compress
    streams = []
    for name, token in agents:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": wire.CONTENT_TYPE, "Content-Encoding": "zstd"}
        boot_id = str(uuid.uuid5(uuid.NAMESPACE_OID, name))
        reports = (report(boot_id, seq, name, start_ms) for seq in range(first_seq, first_seq + REPORTS))
        bodies = (compress(msgspec.msgpack.encode(one)) for one in reports)
        streams.append([request(port, "/api/agent/v1/report/", headers, body) for body in bodies])
    return streams


def copy_rate(count=1500):
    """Return reports per second of one COPY and commit a report over one connection, packed beforehand."""
    from monitoring.ingest.database import connection_parameters
    from monitoring.ingest.pack import pack
    from monitoring.ingest.statements import copy_statement
    from monitoring.store.tables import GPU

    rows = CARDS * SAMPLES
    values = np.random.default_rng(1).random((rows, len(GPU.columns)), dtype=np.float32)
    values[:, 16:] = np.nan
    at_ms = np.full(rows, int(time.time() * 1000), dtype=np.int64)
    stream = pack(np.arange(rows, dtype=np.int32), at_ms, values, np.zeros(rows, dtype=np.int32))
    statement = copy_statement(GPU)
    with psycopg.connect(**connection_parameters(), autocommit=True) as connection:
        began = time.perf_counter()
        for _ in range(count):
            with connection.cursor() as cursor, cursor.copy(statement) as copy:
                copy.write(stream)
        return count / (time.perf_counter() - began)


def victoria_streams(port, round_number):
    """Return the same samples as VictoriaMetrics' JSON lines, a request a report."""
    names = list(readings(0, 0))[:16]
    start_ms = int(time.time() * 1000) - (round_number + 1) * REPORTS * SAMPLES
    streams = []
    for agent in range(CONNECTIONS):
        requests = []
        for seq in range(REPORTS):
            lines = []
            steps = range(seq * SAMPLES, (seq + 1) * SAMPLES)
            for card in range(CARDS):
                rows = [readings(card, step) for step in steps]
                labels = {"server": str(agent), "gpu": f"GPU-{agent}-{card}"}
                lines += [
                    {
                        "metric": {"__name__": name, **labels},
                        "values": [row[name] for row in rows],
                        "timestamps": [start_ms + step for step in steps],
                    }
                    for name in names
                ]
            body = b"\n".join(map(msgspec.json.encode, lines))
            requests.append(request(port, "/api/v1/import", {}, body))
        streams.append(requests)
    return streams


def measure_ours():
    """Return reports per second of each round, the rates of the COPY beside them, and the delays of the last round."""
    agents = join_agents()
    port = free_port()
    rates, copies, delays = [], [], []
    with application(port):
        for number in range(ROUNDS + 1):  # the first one warms up
            streams = our_streams(port, agents, number * REPORTS + 1)
            rate, delays = asyncio.run(send_all(port, streams))
            copies.append(copy_rate())
            rates.append(rate)
    return rates[1:], copies[1:], delays


def measure_victoria():
    """Return VictoriaMetrics' imports per second, None when it is not installed."""
    with peers.victoria() as peer:
        if peer is None:
            return None
        port = peer.client.base_url.port
        rounds = [asyncio.run(send_all(port, victoria_streams(port, number)))[0] for number in range(ROUNDS + 1)]
        return statistics.median(rounds[1:])


def run(_out_dir):
    """Return the rows of the ingest benchmark."""
    with database():
        rates, copies, delays = measure_ours()
    ours, copy = statistics.median(rates), statistics.median(copies)
    victoria = measure_victoria()
    spread = statistics.quantiles([delay * 1000 for delay in delays], n=100)
    row = {"value": ours, "unit": "reports/s"}
    rows = [
        Row(
            "ingest",
            **row,
            peer="one COPY a report",
            ratio=ours / copy,
            goal=f">= {GOAL_COPY}",
            note=f"COPY: {copy:,.0f}",
        ),
    ]
    if victoria is None:
        note = peers.MISSING.format("VictoriaMetrics", "victoria-metrics")
        rows.append(Row("ingest", **row, peer="VictoriaMetrics import", goal=f">= {GOAL_VICTORIA}", note=note))
    else:
        note = f"import: {victoria:,.0f}, which answers before it commits"
        beside = {"peer": "VictoriaMetrics import", "ratio": ours / victoria, "goal": f">= {GOAL_VICTORIA}"}
        rows.append(Row("ingest", **row, **beside, note=note))
    rows.append(Row("ingest p50", spread[49], "ms", note=f"{CONNECTIONS} connections, committed"))
    rows.append(Row("ingest p99", spread[98], "ms", note=f"{CONNECTIONS} connections, committed"))
    return rows
