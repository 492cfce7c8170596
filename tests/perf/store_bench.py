"""Size: bytes a value on disk, of samples, sealed hours, sealed days and rollups, beside VictoriaMetrics and Prometheus."""

import os
import time
from contextlib import contextmanager

import numpy as np

from tests.perf import fleet_data, peers
from tests.perf.harness import Row
from tests.services import running_services

CARDS = 16
STEP_MS = 10_000
DAY_MS = 86_400_000
COUNT = DAY_MS // STEP_MS
VALUES = CARDS * COUNT * len(fleet_data.METRICS)
GOAL_VICTORIA = 1.2
GOAL_PROMETHEUS = 0.5


@contextmanager
def database():
    """Run the services with a migrated database."""
    with running_services():
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "panel.settings")
        import django

        django.setup()
        from django.core.management import call_command
        from django.db import connections

        call_command("migrate", verbosity=0)
        try:
            yield
        finally:
            connections.close_all()


def put_cards(start_ms, numbers, count, step_ms=STEP_MS):
    """Insert samples of these cards into the store, in order of time as they arrive."""
    from django.db import connection

    from monitoring.ingest.pack import pack
    from monitoring.ingest.statements import copy_statement
    from monitoring.store.tables import GPU

    columns = [GPU.columns.index(name) for name in fleet_data.METRICS]
    at_ms = np.concatenate([fleet_data.times(start_ms, count, step_ms, number) for number in numbers])
    values = np.full((len(at_ms), len(GPU.columns)), np.nan, dtype=np.float32)
    values[:, columns] = np.concatenate([fleet_data.card(number, count).T for number in numbers])
    subjects = np.repeat(np.array(numbers, dtype=np.int32) + 1, count)
    order = np.argsort(at_ms, kind="stable")
    for some in np.array_split(order, max(1, len(order) // 20_000)):
        stream = pack(subjects[some], at_ms[some], values[some], np.full(len(some), 4, dtype=np.int32))
        with connection.cursor() as cursor, cursor.copy(copy_statement(GPU)) as copy:
            copy.write(stream)


def relation_bytes(*names):
    """Return the bytes of tables with their indexes and TOAST, after vacuum."""
    from django.db import connection

    with connection.cursor() as cursor:
        total = 0
        for name in names:
            cursor.execute(f"VACUUM {name}")
            cursor.execute("SELECT pg_total_relation_size(%s::regclass)", [name])
            total += cursor.fetchone()[0]
        return total


def measure_store(start_ms):
    """Return bytes a value by what they are of, and how long closing and folding took."""
    from monitoring.store.closing import close_hours, fold_days
    from monitoring.store.tables import GPU
    from panel.core.partitions import partitions_make

    day = time.gmtime(start_ms / 1000)
    from datetime import date

    partitions_make(GPU.samples, first=date(*day[:3]), last=date(*day[:3]))
    put_cards(start_ms, range(CARDS), COUNT)
    sizes = {"samples": relation_bytes(GPU.samples.partition(date(*day[:3])))}
    began = time.perf_counter()
    close_hours(GPU, now_ms=start_ms + DAY_MS + 3_600_000)
    closing = time.perf_counter() - began
    sizes["sealed hours"] = relation_bytes("sealed_hour")
    for seconds in (60, 300, 3600):
        sizes[f"rollups of {seconds} s"] = relation_bytes(f"gpu_rollup_{seconds}")
    began = time.perf_counter()
    fold_days(GPU)
    folding = time.perf_counter() - began
    sizes["sealed days"] = relation_bytes("sealed_day")
    return sizes, closing, folding


def series(start_ms):
    """Yield what the peers store: (name, labels, times, values)."""
    for number in range(CARDS):
        at_ms = fleet_data.times(start_ms, COUNT, STEP_MS, number)
        for name, values in zip(fleet_data.METRICS, fleet_data.card(number, COUNT), strict=True):
            # as decimals: written as 627.123, not as the float's 627.1229858398438, which costs a peer dear
            yield name, {"gpu": str(number)}, at_ms, np.round(values.astype(np.float64), 3)


def measure_victoria(start_ms):
    """Return VictoriaMetrics' bytes a value, None when it is not installed."""
    with peers.victoria() as peer:
        if peer is None:
            return None
        for one in series(start_ms):
            peer.fill(*one)
        peer.settle()
        return peer.size_bytes() / VALUES


def beside(value, peer, name, goal):
    """Return the row of the sealed days beside one peer."""
    row = {"name": "sealed days", "value": value, "unit": "bytes/value", "peer": name, "goal": f"<= {goal}"}
    if peer is None:
        return Row(**row, note=peers.MISSING.format(name, name.lower().replace("victoriametrics", "victoria-metrics")))
    return Row(**row, ratio=value / peer, note=f"{name}: {peer:.3g}")


def run(_out_dir):
    """Return the rows of the size benchmark."""
    start_ms = (int(time.time() * 1000) // DAY_MS - 2) * DAY_MS
    with database():
        sizes, closing, folding = measure_store(start_ms)
    victoria = measure_victoria(start_ms)
    prometheus = peers.prometheus_bytes(sorted(series(start_ms), key=lambda one: one[0]))
    rows = [Row(name, size / VALUES, "bytes/value") for name, size in sizes.items() if name != "sealed days"]
    days = sizes["sealed days"] / VALUES
    rows.append(beside(days, victoria, "VictoriaMetrics", GOAL_VICTORIA))
    rows.append(beside(days, prometheus and prometheus / VALUES, "Prometheus", GOAL_PROMETHEUS))
    hours = CARDS * 24
    rows.append(Row("closing an hour", closing / hours * 1000, "ms/GPU", note="sealed, rolled up on three levels"))
    rows.append(Row("folding a day", folding / CARDS * 1000, "ms/GPU"))
    return rows
