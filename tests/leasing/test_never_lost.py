"""For any sequence of answers, lost replies and crashes: no created machine stays unknown, none is created twice."""

import itertools

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from fleet.enums import OperationKind
from fleet.models import Drift, Lease, Operation, ProviderAccount
from fleet.services.driving import lease_step, leases_due
from fleet.services.power import lease_act
from fleet.services.sync import account_sync
from panel.core.clock import now
from tests.fakes.runpod import FakeRunPod
from tests.leasing.conftest import ACTOR

MISHAPS = ("none", "lost", "broken", "crash_before", "crash_after", "down", "throttled", "full", "hidden", "expired")
moves = st.lists(
    st.tuples(st.sampled_from(("step", "sync", "advance", "end", "vanish")), st.sampled_from(MISHAPS)), max_size=10
)
names = itertools.count()


class Crash(BaseException):
    """The worker's process dies here."""


def crashing(vendor, when):
    """Make the next create kill the process, before or after the provider did it."""
    answer = vendor.answer

    def answer_and_die(request):
        if not vendor.is_create(request):
            return answer(request)
        vendor.answer = answer
        if when == "before":
            raise Crash
        known = len(vendor.machines)
        answer(request)
        vendor.creates += len(vendor.machines) - known
        raise Crash

    vendor.answer = answer_and_die


def arrange(vendor, mishap):
    """Let the provider misbehave in one way, for the next move."""
    vendor.lost_replies = int(mishap == "lost")
    vendor.broken_after_write = int(mishap == "broken")
    vendor.down = int(mishap == "down")
    vendor.throttled = int(mishap == "throttled")
    vendor.has_capacity = mishap != "full"
    vendor.hidden = 2 * (mishap == "hidden")
    vendor.is_key_valid = mishap != "expired"
    if mishap.startswith("crash"):
        crashing(vendor, mishap.removeprefix("crash_"))


def play(rounds, account, lease, move):
    """Make one move."""
    vendor = rounds.vendor
    if move == "step":
        for lease_id in leases_due(at=now()):
            lease_step(lease_id=lease_id)
    elif move == "sync":
        account_sync(account_id=account.pk)
    elif move == "end":
        if Lease.objects.get(pk=lease.pk).ended_at is None:
            lease_act(lease_id=lease.pk, kind=OperationKind.TERMINATE, actor=ACTOR)
    elif move == "vanish" and vendor.machines:
        vendor.vanish(next(iter(vendor.machines)))
    else:
        vendor.advance()


@pytest.mark.django_db
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=moves)
def test_no_machine_is_forgotten_or_made_twice(rounds, monkeypatch, moves):
    for model in (Drift, Operation, Lease, ProviderAccount):
        model.objects.all().delete()  # of the example before
    vendor = FakeRunPod()
    monkeypatch.setattr("fleet.providers.registry.transport_for", lambda kind: vendor.transport)
    rounds.vendor = vendor
    account = rounds.account(name=f"account {next(names)}")
    operation = rounds.order(account, name=f"box {next(names)}")
    lease = Lease.objects.get(pk=operation.lease_id)
    for move, mishap in moves:
        arrange(vendor, mishap)
        try:
            play(rounds, account, lease, move)
        except Crash:
            rounds.pass_time(200)  # the claims of the dead process run out
        rounds.pass_time(15)
    arrange(vendor, "none")
    vendor.answer = type(vendor).answer.__get__(vendor)
    rounds.pass_time(200)
    rounds.run(minutes=16, every=60)

    assert vendor.creates <= 1
    lease = Lease.objects.get(pk=lease.pk)
    known = {lease.external_id} if lease.ended_at is None else set()
    known |= set(Drift.objects.filter(account=account, resolved_at=None).values_list("external_id", flat=True))
    assert set(vendor.machines) <= known
    if lease.wanted == "ended":
        assert vendor.machines == {}
        assert lease.ended_at is not None
