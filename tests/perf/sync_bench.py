"""Sync: 200 accounts of 50 machines each, all compared with their provider within its minute, on two processes.

The provider is the stateful fake of the contract suite, in the process, so no network is in the figures; the limit is the
minute after which every account is due again. First the round in which every machine is taken on, then quiet ones.
"""

import itertools
import json
import multiprocessing
import os
import statistics
import time

from tests.perf.harness import Row
from tests.perf.store_bench import database

ACCOUNTS = 200
MACHINES = 50
PROCESSES = 2  # as many as the machine that the goal is for has cores
ROUNDS = 3
LIMIT_SECONDS = 60.0


def make_accounts():
    """Write the accounts down; returns their ids."""
    from fleet.models import ProviderAccount
    from panel.core.clock import now
    from tests.fakes.runpod import FakeRunPod

    at = now()
    rows = [
        ProviderAccount(
            name=f"account {number}",
            kind="runpod",
            credentials=json.dumps(FakeRunPod.credentials),
            currency="USD",
            is_adopting=True,
            next_sync_at=at,
            created_at=at,
        )
        for number in range(ACCOUNTS)
    ]
    return [row.pk for row in ProviderAccount.objects.bulk_create(rows)]


def worker(ids, turns, answers):
    """Sync these accounts once for every turn that is asked for; tell when done and the CPU used."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "panel.settings")
    import django

    django.setup()
    from fleet.models import ProviderAccount
    from fleet.providers import registry
    from fleet.services.sync import account_sync
    from tests.fakes.runpod import FakeRunPod

    vendors, asked = {}, []
    for pk in ids:
        vendors[pk] = FakeRunPod()
        # A machine of one id in two accounts would be one login met twice, and not taken on.
        vendors[pk]._ids = itertools.count(pk * 1000)
        for number in range(MACHINES):
            vendors[pk].add(f"box-{number}")
    registry.transport_for = lambda _kind: vendors[asked[-1]].transport
    answers.put(0.0)
    while turns.get():
        began = time.process_time()
        done = 0
        for pk in ids:
            asked.append(pk)
            done += account_sync(account_id=pk)
        assert done == len(ids), f"{done} of {len(ids)} accounts were synced"
        answers.put(time.process_time() - began)
    assert ProviderAccount.objects.filter(pk__in=ids, failures=0).count() == len(ids)


def rounds(ids):
    """Return (seconds, CPU seconds) of the first round and of each quiet one."""
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    queues = [context.Queue() for _ in range(PROCESSES)]
    processes = [
        context.Process(target=worker, args=(ids[number::PROCESSES], queue, answers), daemon=True)
        for number, queue in enumerate(queues)
    ]
    for process in processes:
        process.start()
    for _ in processes:
        answers.get(timeout=120)
    measured = []
    for _ in range(1 + ROUNDS):
        began = time.perf_counter()
        for queue in queues:
            queue.put(True)
        cpu = sum(answers.get(timeout=600) for _ in processes)
        measured.append((time.perf_counter() - began, cpu))
    for queue in queues:
        queue.put(False)
    for process in processes:
        process.join(30)
    return measured


def run(_out):
    """Measure; returns the rows."""
    with database():
        from django.db import connections

        from fleet.models import Lease

        ids = make_accounts()
        connections.close_all()
        (first, _), *quiet = rounds(ids)
        assert Lease.objects.filter(ended_at=None).count() == ACCOUNTS * MACHINES
        seconds = statistics.median(each for each, _ in quiet)
        cpu = statistics.median(each for _, each in quiet)
    peer = "the minute until all are due again"
    note = f"{ACCOUNTS} accounts of {MACHINES} machines, {PROCESSES} processes"
    return [
        Row("sync, quiet round", seconds, "s", peer, seconds / LIMIT_SECONDS, "<= 1", f"{note}; CPU {cpu:.1f} s"),
        Row("sync, every machine taken on", first, "s", peer, first / LIMIT_SECONDS, "", note),
    ]
