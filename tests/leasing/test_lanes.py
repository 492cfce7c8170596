"""One provider that does not answer holds up its own machines, and nobody else's."""

import queue
import threading
from datetime import timedelta

import httpx
import pytest
from django.db import connection

from fleet import tasks
from fleet.enums import AccountHealth, LeaseOrigin, LeaseState
from fleet.models import Lease, ProviderAccount
from fleet.services.accounts import account_create
from fleet.services.lanes import SENT_AT_ONCE, account_place, leases_to_send, places_in_trouble, places_of_account
from panel.core.clock import now
from panel.core.places import places_taken
from tests.fakes.runpod import FakeRunPod
from tests.leasing.conftest import ACTOR
from tests.waiting import eventually

WORKERS = 3  # as a worker has tasks at once by default
MANY = 40


class DeadProvider:
    """Answers nothing until it is let go; counts the calls that wait for it."""

    def __init__(self):
        self.released = threading.Event()
        self.lock = threading.Lock()
        self.waiting = self.most = 0

    def answer(self, request):
        with self.lock:
            self.waiting += 1
            self.most = max(self.most, self.waiting)
        self.released.wait(60)
        with self.lock:
            self.waiting -= 1
        raise httpx.ConnectTimeout("no answer", request=request)


def add_leases(account, count):
    """Put machines there that something is to be done about now."""
    at = now() - timedelta(minutes=1)
    facts = {
        "origin": LeaseOrigin.FOUND,
        "state": LeaseState.PROVISIONING,
        "state_changed_at": at,
        "billing": "hourly",
        "requested_at": at,
        "next_step_at": at,
    }
    rows = (Lease(account=account, name=f"m{n}", external_id=f"{account.pk}-{n}", **facts) for n in range(count))
    Lease.objects.bulk_create(rows)


@pytest.fixture
def dead():
    provider = DeadProvider()
    yield provider
    provider.released.set()


@pytest.fixture
def vendor(monkeypatch, dead):
    """A vendor of two keys; the one is not answered once the provider is dead to it."""
    fake, is_dead = FakeRunPod(), threading.Event()
    monkeypatch.setattr(FakeRunPod, "is_authorised", lambda self, request: True)

    def route(request):
        if is_dead.is_set() and "DEAD" in request.headers["authorization"]:
            return dead.answer(request)
        return fake._handle(request)

    monkeypatch.setattr("fleet.providers.registry.transport_for", lambda kind: httpx.MockTransport(route))
    monkeypatch.setattr("fleet.providers.http.Spacing.wait_for_turn", lambda *_: None)
    fake.is_dead = is_dead
    return fake


@pytest.fixture
def workers(monkeypatch):
    """So many workers that take what the tick sends, in its order."""
    waiting: queue.Queue = queue.Queue()
    for task in (tasks.account_sync_task, tasks.lease_step_task, tasks.offers_fetch_task):
        monkeypatch.setattr(task, "apply_async", lambda args, task=task, **_: waiting.put((task, args)))

    def work():
        while (job := waiting.get()) is not None:
            job[0].run(*job[1])
        connection.close()

    threads = [threading.Thread(target=work, daemon=True) for _ in range(WORKERS)]
    for thread in threads:
        thread.start()
    yield waiting
    for _ in threads:
        waiting.put(None)


@pytest.fixture
def accounts(vendor):
    """One whose provider dies, with many machines, and one that is well."""
    bad, good = (
        account_create(name=name, kind="runpod", credentials={"api_key": f"rpa_0123456789{name}"}, actor=ACTOR)
        for name in ("DEAD", "GOOD")
    )
    ProviderAccount.objects.update(next_offers_at=None)
    add_leases(bad, MANY)
    add_leases(good, 2)
    vendor.is_dead.set()
    return bad, good


@pytest.mark.django_db(transaction=True)
def test_a_dead_provider_with_many_machines_leaves_a_worker_to_the_others(accounts, dead, workers):
    bad, good = accounts
    tasks.leasing_tick.run()
    eventually(lambda: dead.waiting, lambda waiting: waiting == places_of_account())
    eventually(lambda: ProviderAccount.objects.get(pk=good.pk).last_sync_at)
    eventually(lambda: Lease.objects.filter(account=good, misses=0, next_step_at__lt=now()).count() == 0)
    tasks.leasing_tick.run()
    eventually(workers.empty)
    assert dead.most == places_of_account() < WORKERS
    dead.released.set()
    eventually(lambda: ProviderAccount.objects.get(pk=bad.pk).health == AccountHealth.FAILING)
    eventually(lambda: dead.waiting == 0)
    eventually(lambda: places_taken(f"account-{bad.pk}") == 0)


@pytest.mark.django_db
def test_accounts_in_trouble_share_less_than_a_worker(accounts):
    bad, good = accounts
    ProviderAccount.objects.update(failures=1)
    with account_place(bad.pk, seconds=60) as first, account_place(good.pk, seconds=60) as second:
        assert (first, second) == (True, places_in_trouble() > 1)
    ProviderAccount.objects.filter(pk=good.pk).update(failures=0)
    with account_place(bad.pk, seconds=60) as first, account_place(good.pk, seconds=60) as second:
        assert (first, second) == (True, True)


@pytest.mark.django_db
def test_a_place_of_a_process_that_died_runs_out(accounts, time_machine):
    bad, _good = accounts
    time_machine.move_to(now(), tick=False)
    with (
        account_place(bad.pk, seconds=60),
        account_place(bad.pk, seconds=60),
        account_place(bad.pk, seconds=60) as third,
    ):
        assert not third
        time_machine.shift(timedelta(seconds=61))
        with account_place(bad.pk, seconds=60) as fourth:
            assert fourth


@pytest.mark.django_db
def test_a_tick_sends_a_share_of_each_account_longest_waiting_first(accounts):
    bad, good = accounts
    first = Lease.objects.filter(account=bad).order_by("-pk").first()
    Lease.objects.filter(pk=first.pk).update(next_step_at=now() - timedelta(hours=1))
    sent = leases_to_send(at=now())
    assert sent[0] == first.pk
    assert Lease.objects.filter(pk__in=sent, account=bad).count() == SENT_AT_ONCE
    assert Lease.objects.filter(pk__in=sent, account=good).count() == 2
