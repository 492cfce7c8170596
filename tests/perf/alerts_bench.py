"""Alerts: a round over 5,000 subjects with ten rules each, on one core; and the simulated week over many endpoints.

2,500 cards are watched by ten threshold rules from the table of newest samples, 2,500 probes by the count rules from chunks of
six hours. A round is measured cold (all chunks read) and warm (only what is new), with 2 % of everything over its limit.
"""

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from statistics import mean, median

import numpy as np

from tests.perf.harness import Row
from tests.perf.store_bench import database

CARDS = 2_500
PROBES = 2_500
HOURS = 6
WEEKS = 12
ROUNDS = 5
GOAL_SECONDS = 5.0
# share over: mails per endpoint-week of the design's table
TABLE = {0.002: 0.0, 0.005: 0.02, 0.01: 1.0, 0.02: 11.7, 0.05: 1.8}


def fill(at):
    """Make cards with newest samples, threshold rules, probes and their chunks."""
    from django.db import connection

    from fleet.models import Gpu, Server
    from monitoring.alerts.models import Rule
    from monitoring.alerts.services import rules_ensure
    from monitoring.models import LatestSample, Probe
    from monitoring.probing.tables import CHUNKS, MARK
    from monitoring.store.tables import GPU
    from panel.core.partitions import partitions_make

    random = np.random.default_rng(1)
    server = Server.objects.create(name="bench", state="ready", state_changed_at=at, created_at=at)
    shared = {"server": server, "name": "H200", "state": "ok", "state_changed_at": at, "first_seen_at": at}
    cards = Gpu.objects.bulk_create(Gpu(uuid=f"GPU-{n}", index=n % 8, **shared) for n in range(CARDS))
    values = random.uniform(0, 100, (CARDS, len(GPU.columns))).astype("<f4")
    LatestSample.objects.bulk_create(
        LatestSample(kind=GPU.code, subject_id=card.pk, at=at, received_at=at, values=row.tobytes())
        for card, row in zip(cards, values, strict=True)
    )
    rules_ensure(at=at)
    Rule.objects.exclude(kind__in=("count", "down", "silent")).delete()
    for number in range(10):
        settings = {"series": f"gpu.{GPU.columns[number]}", "operator": "above", "limit": 98, "for_seconds": 60}
        Rule.objects.create(key=f"own-{number}", kind="threshold", severity="warning", settings=settings, created_at=at)
    target = {"kind": "tcp", "host": "127.0.0.1", "port": 9}
    probes = Probe.objects.bulk_create(
        Probe(
            name=f"p{n}", target=target, vantages=["panel"], threshold_ms=1000, created_at=at - timedelta(hours=HOURS)
        )
        for n in range(PROBES)
    )
    partitions_make(CHUNKS, first=(at - timedelta(hours=HOURS)).date(), last=at.date())
    marks = np.array([(30_000 * k // 5, 0) for k in range(10)], dtype=MARK).tobytes()
    first = int(at.timestamp()) // 300 * 300
    with (
        connection.cursor() as cursor,
        cursor.copy(
            "COPY probe_chunk (probe_id, server_id, connection, metric, at, durations, marks) FROM STDIN WITH (FORMAT BINARY)"
        ) as copy,
    ):
        copy.set_types(["int8", "int4", "int2", "int2", "timestamptz", "bytea", "bytea"])
        for back in range(HOURS * 12, -1, -1):
            slot = datetime.fromtimestamp(first - 300 * back, UTC)
            durations = np.where(random.random((PROBES, 10)) < 0.02, 1500, 200).astype("<f4")
            for probe, row in zip(probes, durations, strict=True):
                copy.write_row((probe.pk, 0, 0, 0, slot, row.tobytes(), marks))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def rounds(at):
    """Return the seconds of a cold round and of warm ones."""
    from monitoring.alerts.evaluator import Evaluator

    evaluator = Evaluator()
    taken = []
    for number in range(ROUNDS + 1):
        began = time.perf_counter()
        found = evaluator.evaluate(at=at + timedelta(seconds=20 * number))
        taken.append(time.perf_counter() - began)
        assert found is not None
    return taken[0], median(taken[1:])


def weeks():
    """Return rows of the simulated week, and of how soon a step is seen."""
    from monitoring.alerts.conditions.counting import P99_FAST, P99_SLOW
    from monitoring.alerts.incident import LATENCY, Kind
    from panel.core.enums import Severity
    from tests.alerts.worlds import replay, world

    rules = ((P99_FAST, Severity.CRITICAL), (P99_SLOW, Severity.WARNING))
    policy = replace(LATENCY, reminders=())
    rows = []
    for share, table in TABLE.items():
        found = mean(replay(world(share, seed=seed), rules, policy=policy).mails for seed in range(WEEKS))
        rows.append(Row(f"mails per endpoint-week, {share:.1%} over", found, "mails", goal=f"about {table}"))
    for share, minutes in ((0.05, 68), (0.2, 12.5), (1.0, 4)):
        seen = []
        for seed in range(8 * WEEKS):
            over = np.concatenate([world(0.002, seed=seed, probes=800), world(share, seed=seed + 1000, probes=1200)])
            seen.append(replay(over, rules, policy=policy).first(Kind.OPENING, after=400) or 600.0)
        rows.append(Row(f"a step to {share:.0%} is told after (median)", median(seen), "min", goal=f"about {minutes}"))
    return rows


def run(_out):
    """Measure."""
    with database():
        at = datetime.now(UTC)
        fill(at)
        cold, warm = rounds(at)
    note = f"{CARDS} cards × 10 rules, {PROBES} probes × 8 rules"
    return [
        Row("a round, all chunks read", cold, "s", goal=f"<= {GOAL_SECONDS}", note=note),
        Row("a round, only what is new", warm, "s", goal=f"<= {GOAL_SECONDS}", note=note),
        *weeks(),
    ]
