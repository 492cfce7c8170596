"""The simulated provider through the panel's own rounds: what a person sees who tries the panel without an account."""

from datetime import timedelta

import pytest
import time_machine
from django.db import connection

from fleet.enums import LeaseState, OperationKind, OperationState
from fleet.models import Offer, Server, SimulatedMachine
from fleet.providers.base import Billing
from fleet.providers.simulated.world import host_leave, host_note, machines_hosted
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


def test_machines_run_their_start_up_script_while_something_runs_the_machines(clock):
    account = account_create(name="trial", kind="simulated", credentials={}, actor=ACTOR)
    operation = placed(account, billing=Billing.HOURLY, stock="high")
    assert not operation.lease.expects_agent
    work(clock, 1)
    assert machines_hosted(at=now())[0].startup_script == ""

    host_note()
    try:
        offer = Offer.objects.filter(account=account, billing=Billing.HOURLY, stock="high").order_by("key").first()
        second = order_place(account_id=account.pk, offer_id=offer.pk, server_name="hosted", actor=ACTOR).operation
        assert second.lease.expects_agent
        work(clock, 1)
        assert fresh(second.lease).state == LeaseState.BOOTING
        hosted = machines_hosted(at=now())[1]
        assert (hosted.is_running, hosted.offer_key) == (True, offer.key)
        assert "fdj_" in hosted.startup_script
        with connection.cursor() as cursor:
            cursor.execute("SELECT startup_script FROM fleet_simulatedmachine ORDER BY id DESC LIMIT 1")
            assert "fdj_" not in cursor.fetchone()[0]
        lease_act(lease_id=second.lease_id, kind=OperationKind.TERMINATE, actor=ACTOR)
        work(clock, 1)
        assert hosted.id not in [each.id for each in machines_hosted(at=now())]
        assert SimulatedMachine.objects.get(pk=hosted.id.removeprefix("sim-")).startup_script == ""
    finally:
        host_leave()
