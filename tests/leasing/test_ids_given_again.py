"""Providers that number machines anew: an id of a machine that is over, on one made later, is a machine that nobody knows."""

import pytest

from fleet.enums import DriftKind, LeaseState, OperationKind
from fleet.models import BilledInterval, Drift, Lease
from fleet.services.power import lease_act
from fleet.services.sync import account_sync
from panel.core.clock import now
from tests.fakes.vendor import FakeMachine
from tests.leasing.conftest import ACTOR, fresh, only_lease


@pytest.fixture
def ended(rounds, account, vendor):
    """A lease whose machine was ended here."""
    rounds.order(account)
    rounds.step()
    vendor.advance()
    rounds.run(minutes=1)
    lease_act(lease_id=only_lease().pk, kind=OperationKind.TERMINATE, actor=ACTOR)
    rounds.run(minutes=1)
    assert only_lease().state == LeaseState.TERMINATED
    return only_lease()


def given_again(rounds, vendor, lease, **facts):
    """Let the provider give the lease's id to a machine that it makes now."""
    rounds.pass_time(3600)
    machine = FakeMachine(
        id=lease.external_id,
        name="somebody else's",
        status="running",
        created_at=now(),
        **vendor.default_facts(),
        **facts,
    )
    vendor.machines[machine.id] = machine
    rounds.run(minutes=3)
    return machine


def test_a_machine_made_later_is_unknown_and_never_ended_for_the_old_lease(rounds, account, vendor, ended):
    machine = given_again(rounds, vendor, ended)
    assert (fresh(ended).state, fresh(ended).ended_at) == (LeaseState.TERMINATED, ended.ended_at)
    drift = Drift.objects.get(resolved_at=None)
    assert (drift.kind, drift.external_id) == (DriftKind.UNKNOWN_AT_PROVIDER, machine.id)
    assert machine.id in vendor.machines
    assert not BilledInterval.objects.filter(ended_at=None).exists()


def test_it_can_be_taken_on_as_a_lease_of_its_own(rounds, account, vendor, ended):
    type(account).objects.update(is_adopting=True)
    machine = given_again(rounds, vendor, ended)
    lease = Lease.objects.get(external_id=machine.id, ended_at=None)
    assert lease.pk != ended.pk
    rounds.run(minutes=3)
    assert fresh(lease).state == LeaseState.ACTIVE
    assert fresh(ended).ended_at == ended.ended_at
    assert Lease.objects.count() == 2
    vendor.vanish(machine.id)
    rounds.run(minutes=4)
    assert fresh(lease).state == LeaseState.LOST


def test_an_order_may_get_an_id_that_was_another_machines(rounds, account, vendor, ended, monkeypatch):
    monkeypatch.setattr(vendor, "next_id", lambda: ended.external_id)
    rounds.order(account, name="second")
    vendor.lost_replies = 1  # so that it is found by its name
    rounds.pass_time(10)
    rounds.step()
    next(iter(vendor.machines.values())).created_at = now()
    vendor.advance()
    rounds.run(minutes=2)
    second = Lease.objects.get(ended_at=None)
    assert (second.external_id, second.pk != ended.pk) == (ended.external_id, True)
    assert vendor.creates == 2
    assert not Drift.objects.filter(resolved_at=None).exists()


def test_the_same_machine_that_is_there_again_is_still_the_same_lease(rounds, account, vendor, ended):
    machine = FakeMachine(
        id=ended.external_id, name=ended.name, status="running", created_at=ended.requested_at, **vendor.default_facts()
    )
    vendor.machines[machine.id] = machine
    rounds.pass_time(60)
    account_sync(account_id=account.pk)
    assert fresh(ended).ended_at is None
