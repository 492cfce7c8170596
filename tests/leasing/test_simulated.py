"""The simulated provider through the panel's own rounds: what a person sees who tries the panel without an account."""

from datetime import timedelta

import pytest
import time_machine

from fleet.enums import LeaseState, OperationKind, OperationState
from fleet.models import Offer, Server
from fleet.providers.base import Billing
from fleet.services.accounts import account_create
from fleet.services.driving import lease_step, leases_due
from fleet.services.offers import offers_fetch
from fleet.services.ordering import order_place
from fleet.services.power import lease_act
from fleet.services.sync import account_sync, accounts_due
from panel.core.clock import now
from tests.leasing.conftest import ACTOR, START, fresh, only_lease


@pytest.fixture
def clock(db):
    with time_machine.travel(START, tick=False) as traveller:
        yield traveller


def work(clock, minutes):
    """Let the panel work."""
    for _ in range(int(minutes * 6)):
        for lease_id in leases_due(at=now()):
            lease_step(lease_id=lease_id)
        for account_id in accounts_due(at=now()):
            account_sync(account_id=account_id)
        clock.shift(timedelta(seconds=10))


def placed(account, **wanted):
    """Order the first offer that fits."""
    offers_fetch(account_id=account.pk)
    offer = Offer.objects.filter(account=account, **wanted).order_by("key").first()
    order = order_place(account_id=account.pk, offer_id=offer.pk, server_name="sim-box", actor=ACTOR)
    return order.operation


def test_an_order_starts_stops_starts_and_ends(clock):
    account = account_create(name="trial", kind="simulated", credentials={}, actor=ACTOR)
    operation = placed(account, billing=Billing.HOURLY, stock="high")
    work(clock, 1)
    assert fresh(operation).state == OperationState.SUCCEEDED
    lease = only_lease()
    assert lease.state == LeaseState.ACTIVE
    for kind, state in ((OperationKind.STOP, LeaseState.STOPPED), (OperationKind.START, LeaseState.ACTIVE)):
        act = lease_act(lease_id=lease.pk, kind=kind, actor=ACTOR).operation
        work(clock, 1)
        assert fresh(act).state == OperationState.SUCCEEDED
        assert only_lease().state == state
    lease_act(lease_id=lease.pk, kind=OperationKind.TERMINATE, actor=ACTOR)
    work(clock, 1)
    assert only_lease().state == LeaseState.TERMINATED
    assert only_lease().ended_at is not None


def test_a_spot_machine_is_taken_back(clock):
    account = account_create(name="trial", kind="simulated", credentials={}, options={"spot_minutes": "2"}, actor=ACTOR)
    placed(account, billing=Billing.SPOT)
    work(clock, 4)
    lease = only_lease()
    assert (lease.state, lease.state_reason) == (LeaseState.PREEMPTED, "preempted")


def test_an_account_without_capacity_refuses_and_leaves_no_server(clock):
    account = account_create(name="trial", kind="simulated", credentials={}, options={"capacity": "no"}, actor=ACTOR)
    operation = placed(account, billing=Billing.HOURLY, stock="high")
    work(clock, 0.5)
    assert (fresh(operation).state, fresh(operation).reason) == (OperationState.FAILED, "no_capacity")
    assert not Server.objects.exists()
