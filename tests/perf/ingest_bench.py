"""Ingest: reports per second over 16 connections, each answered after its commit.

Beside: one COPY a report on one connection (what the database does alone), and VictoriaMetrics' import of the same samples
over as many connections (which commits nothing before it answers). A report is 8 cards × 5 samples. All three in turn,
round by round, so that what else the machine does hits all alike; the figure is the middle one of the rounds' ratios.
"""

import asyncio
import os
import re
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil
import psycopg

from panel.up.plan import web_command
from tests.perf import peers
from tests.perf.harness import Row
from tests.perf.ingest_reports import CARDS, SAMPLES, VALUES, our_streams, victoria_streams
from tests.perf.live_bench import free_port, until_listening
from tests.perf.load import send_all
from tests.perf.store_bench import database

CONNECTIONS = 16
REPORTS = 100  # for each connection and round
ROUNDS = 7
COPIES = 500  # for each round
GOAL_COPY = 2.2
GOAL_VICTORIA = 0.85


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
    environment = os.environ | {
        "FLEETDECK_INGEST_REPORTS_PER_SECOND": "1000000",
        "FLEETDECK_INGEST_REPORTS_BURST": "1000000",
        "FLEETDECK_LOG_LEVEL": "WARNING",
    }
    process = subprocess.Popen([sys.executable, "-m", *web_command("127.0.0.1", port)], env=environment)
    try:
        asyncio.run(until_listening(port, process))
        yield process
    finally:
        process.terminate()
        process.wait(20)


def copy_statement_and_stream():
    """Return the COPY of one report, packed beforehand."""
    from monitoring.ingest.pack import pack
    from monitoring.ingest.statements import copy_statement
    from monitoring.store.tables import GPU

    rows = CARDS * SAMPLES
    values = np.random.default_rng(1).random((rows, len(GPU.columns)), dtype=np.float32)
    values[:, VALUES:] = np.nan
    at_ms = np.full(rows, int(time.time() * 1000), dtype=np.int64)
    return copy_statement(GPU), pack(np.arange(rows, dtype=np.int32), at_ms, values, np.zeros(rows, dtype=np.int32))


def copy_rate():
    """Return reports per second of one COPY and commit a report over one connection."""
    from monitoring.ingest.database import connection_parameters

    statement, stream = copy_statement_and_stream()
    with psycopg.connect(**connection_parameters(), autocommit=True) as connection:
        began = time.perf_counter()
        for _ in range(COPIES):
            with connection.cursor() as cursor, cursor.copy(statement) as copy:
                copy.write(stream)
        return COPIES / (time.perf_counter() - began)


def postmaster():
    """Return the benchmark's Postgres; its directory is where its socket is."""
    from monitoring.ingest.database import connection_parameters

    folder = Path(re.sub("%2F", "/", connection_parameters()["host"]))
    return psutil.Process(int((folder / "postmaster.pid").read_text().split()[0]))


def cpu_seconds(process):
    """Return what a process and its children used so far."""
    total = 0.0
    for one in [process, *process.children(recursive=True)]:
        try:
            times = one.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total


@dataclass
class Measured:
    """One server under load: each round's requests per second, CPU µs a request of each process and load, and all delays."""

    processes: list
    rates: list = field(default_factory=list)
    process_us: list = field(default_factory=list)
    load_us: list = field(default_factory=list)
    delays: list = field(default_factory=list)

    def round(self, port, streams, *, is_warm_up):
        """Send one round."""
        count = sum(map(len, streams))
        before, load_before = [cpu_seconds(one) for one in self.processes], time.process_time()
        rate, delays = send_all(port, streams)
        if is_warm_up:
            return
        self.rates.append(rate)
        self.delays += delays
        after = [cpu_seconds(one) for one in self.processes]
        self.process_us.append([(end - start) / count * 1e6 for start, end in zip(before, after, strict=True)])
        self.load_us.append((time.process_time() - load_before) / count * 1e6)

    def each_us(self):
        """Return the CPU µs a request of each process, of the middle round."""
        return [statistics.median(rounds) for rounds in zip(*self.process_us, strict=True)]

    def server_us(self):
        """Return the CPU µs a request of all of them."""
        return statistics.median(map(sum, self.process_us))

    def cpu(self):
        """Return the CPU as a note."""
        return f"CPU {self.server_us():.0f} µs + load {statistics.median(self.load_us):.0f} µs a report"


def measure(victoria):
    """Return ours, VictoriaMetrics' (None when it is not installed) and the COPY rates, round by round."""
    agents = join_agents()
    port = free_port()
    copies = []
    with application(port) as web:
        ours = Measured([psutil.Process(web.pid), postmaster()])
        theirs = Measured([psutil.Process(victoria.process.pid)]) if victoria else None
        for number in range(ROUNDS + 1):  # the first one warms up
            first = number * REPORTS + 1
            ours.round(port, our_streams(port, agents, first, REPORTS), is_warm_up=number == 0)
            if victoria:
                streams = victoria_streams(victoria.port, CONNECTIONS, first, REPORTS)
                theirs.round(victoria.port, streams, is_warm_up=number == 0)
            copies.append(copy_rate())
    return ours, theirs, copies[1:]


def beside(ours, rates, peer, goal, note):
    """Return the row of our rate beside a peer's, measured in the same rounds."""
    ratios = [one / other for one, other in zip(ours.rates, rates, strict=True)]
    return Row(
        "ingest",
        statistics.median(ours.rates),
        "reports/s",
        peer=peer,
        ratio=statistics.median(ratios),
        goal=f">= {goal}",
        note=f"{note} {statistics.median(rates):,.0f}/s; rounds {min(ratios):.2f} to {max(ratios):.2f}",
    )


def run(_out_dir):
    """Return the rows of the ingest benchmark."""
    with database(), peers.victoria() as victoria:
        ours, theirs, copies = measure(victoria)
    spread = statistics.quantiles([delay * 1000 for delay in ours.delays], n=100)
    rows = [beside(ours, copies, "one COPY a report", GOAL_COPY, f"{ours.cpu()}; COPY")]
    if theirs is None:
        note = peers.MISSING.format("VictoriaMetrics", "victoria-metrics")
        rows.append(Row("ingest", None, "reports/s", "VictoriaMetrics import", goal=f">= {GOAL_VICTORIA}", note=note))
    else:
        note = f"its {theirs.cpu()}; import, which answers before it commits,"
        rows.append(beside(ours, theirs.rates, "VictoriaMetrics import", GOAL_VICTORIA, note))
        cpu, their_cpu = ours.server_us(), theirs.server_us()
        note = "web {:.0f} and Postgres {:.0f}".format(*ours.each_us())
        rows.append(Row("ingest CPU", cpu, "µs/report", "VictoriaMetrics import", cpu / their_cpu, note=note))
    rows.append(Row("ingest p50", spread[49], "ms", note=f"{CONNECTIONS} connections, committed"))
    rows.append(Row("ingest p99", spread[98], "ms", note=f"{CONNECTIONS} connections, committed"))
    return rows
