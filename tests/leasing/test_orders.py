"""Orders: placed once, carried out once, and nothing forgotten on the way."""

from decimal import Decimal

import pytest

from fleet.enums import LeaseState, OperationKind, OperationState
from fleet.models import BilledInterval, Lease, LeasePrice, Operation, Server
from fleet.reasons import Reason
from fleet.services.joining import server_join
from fleet.services.power import lease_act
from panel.core.errors import Conflict
from tests.leasing.conftest import ACTOR, fresh, only_lease


def join(vendor, server):
    """Let the machine's agent join, with the token from the start-up script that the provider got."""
    import base64
    import re

    from fleet.agent import wire

    [machine] = vendor.machines.values()
    script = base64.b64decode(machine.facts["env"]["STARTUP_SCRIPT"]).decode()
    token = re.search(r"fdj_\w+_[\w-]+", script)[0]
    request = wire.JoinRequest(token=token, hostname="box", agent_version="1", capabilities=[])
    return server_join(request=request, address="203.0.113.7")


def test_an_order_runs_through_its_steps_until_the_agent_has_joined(rounds, account, vendor):
    operation = rounds.order(account)
    assert [step["state"] for step in operation.steps] == ["waiting"] * 3
    rounds.step()
    assert only_lease().state == LeaseState.PROVISIONING
    vendor.advance()
    rounds.run(minutes=0.5)
    assert only_lease().state == LeaseState.BOOTING
    join(vendor, Server.objects.get())
    rounds.run(minutes=0.5)
    lease = only_lease()
    assert lease.state == LeaseState.ACTIVE
    assert lease.sealed_order == ""
    operation = fresh(operation)
    assert operation.state == OperationState.SUCCEEDED
    assert [step["state"] for step in operation.steps] == ["done"] * 3
    assert vendor.creates == 1


def test_the_price_is_copied_and_billing_runs_from_the_creation(rounds, account):
    rounds.order(account)
    rounds.step()
    price = LeasePrice.objects.get(component="compute")
    assert (price.amount, price.currency, price.unit) == (Decimal("0.44"), "USD", "hour")
    interval = BilledInterval.objects.get()
    assert (interval.mode, interval.ended_at) == ("full", None)


def test_the_same_key_orders_once(rounds, account):
    first = rounds.order(account, key="k-1")
    assert rounds.order(account, key="k-1").pk == first.pk
    assert Lease.objects.count() == 1
    with pytest.raises(Conflict) as reused:
        rounds.order(account, name="another", key="k-1")
    assert reused.value.code == "idempotency_key_reused"


def test_a_refusal_leaves_nothing_behind(rounds, account, vendor):
    operation = rounds.order(account)
    vendor.has_capacity = False
    rounds.step()
    lease, operation = only_lease(), fresh(operation)
    assert (lease.state, lease.state_reason) == (LeaseState.FAILED, Reason.NO_CAPACITY)
    assert lease.ended_at is not None
    assert (operation.state, operation.reason) == (OperationState.FAILED, Reason.NO_CAPACITY)
    assert (operation.attempts, operation.steps[0]["state"]) == (1, "failed")
    assert not BilledInterval.objects.exists()
    assert not Server.objects.exists()


@pytest.mark.parametrize("mishap", ["broken_after_write", "lost_replies"])
def test_a_lost_answer_is_searched_for_and_never_sent_again(rounds, account, vendor, mishap):
    rounds.order(account)
    setattr(vendor, mishap, 1)
    vendor.hidden = 3
    rounds.step()
    assert only_lease().state_reason == Reason.OUTCOME_UNKNOWN
    rounds.run(minutes=2)
    assert only_lease().external_id in vendor.machines
    assert vendor.creates == 1


def test_a_crash_between_sending_and_answer_is_as_a_lost_answer(rounds, account, vendor, monkeypatch):
    rounds.order(account)
    answer = vendor.answer

    def dies(request):
        response = answer(request)
        if vendor.is_create(request):
            raise KeyboardInterrupt
        return response

    monkeypatch.setattr(vendor, "answer", dies)
    with pytest.raises(KeyboardInterrupt):
        rounds.step()
    monkeypatch.setattr(vendor, "answer", answer)
    rounds.run(minutes=1)
    assert only_lease().external_id in vendor.machines
    assert len([request for request in vendor.requests if vendor.is_create(request)]) == 1


def test_a_machine_given_up_that_appears_after_all_is_known_and_ended(rounds, account, vendor, monkeypatch):
    rounds.order(account)
    monkeypatch.setattr(vendor, "listed", list)
    vendor.lost_replies = 1
    rounds.run(minutes=12)
    lease = only_lease()
    assert (lease.state, lease.state_reason) == (LeaseState.FAILED, Reason.OUTCOME_UNKNOWN)
    [machine] = vendor.machines.values()
    monkeypatch.undo()
    monkeypatch.setattr("fleet.providers.registry.transport_for", lambda kind: vendor.transport)
    rounds.run(minutes=2)
    lease = only_lease()
    assert lease.external_id == machine.id
    assert lease.state == LeaseState.TERMINATED
    assert vendor.machines == {}


def test_what_may_not_be_paid_is_not_ordered(rounds, vendor):
    account = rounds.account(max_price_per_hour=Decimal("0.10"))
    with pytest.raises(Conflict) as dear:
        rounds.order(account)
    assert dear.value.code == Reason.PRICE_ABOVE_MAX
    assert not Lease.objects.exists()


def test_a_used_up_budget_blocks_until_it_is_overridden_with_a_reason(rounds, vendor):
    account = rounds.account(monthly_budget=Decimal("1.00"))
    rounds.order(account)
    rounds.step()
    rounds.pass_time(3 * 3600)
    with pytest.raises(Conflict) as capped:
        rounds.order(account, name="second")
    assert capped.value.code == Reason.BUDGET_CAP
    rounds.order(account, name="second", override_reason="the demo is tomorrow")
    assert Lease.objects.count() == 2


def test_an_end_is_asked_for_until_the_provider_confirms_it(rounds, account, vendor):
    rounds.order(account)
    rounds.step()
    vendor.advance()
    rounds.run(minutes=0.5)
    lease_act(lease_id=only_lease().pk, kind=OperationKind.TERMINATE, actor=ACTOR)
    vendor.down = 10_000
    rounds.run(minutes=14, every=30)
    lease = only_lease()
    assert lease.state == LeaseState.TERMINATION_UNCONFIRMED
    assert BilledInterval.objects.get().ended_at is None
    vendor.down = 0
    rounds.run(minutes=12, every=30)
    lease = only_lease()
    assert (lease.state, vendor.machines) == (LeaseState.TERMINATED, {})
    assert BilledInterval.objects.get().ended_at is not None
    end = Operation.objects.get(kind=OperationKind.TERMINATE)
    assert end.state == OperationState.SUCCEEDED
    assert end.attempts == lease.termination_attempts > 1


def test_an_end_asked_for_before_the_create_was_sent_sends_none(rounds, account, vendor):
    rounds.order(account)
    lease_act(lease_id=only_lease().pk, kind=OperationKind.TERMINATE, actor=ACTOR)
    rounds.run(minutes=1)
    assert only_lease().state == LeaseState.TERMINATED
    assert vendor.creates == 0


def test_stop_and_start_are_watched_until_the_machine_is_so(rounds, account, vendor):
    rounds.order(account)
    rounds.step()
    vendor.advance()
    rounds.run(minutes=0.5)
    lease = only_lease()
    stop = lease_act(lease_id=lease.pk, kind=OperationKind.STOP, actor=ACTOR).operation
    rounds.run(minutes=0.5)
    assert fresh(stop).state == OperationState.SUCCEEDED
    assert only_lease().state == LeaseState.STOPPED
    assert [interval.mode for interval in BilledInterval.objects.order_by("started_at")] == ["full", "stopped"]
    vendor.has_capacity = False
    start = lease_act(lease_id=lease.pk, kind=OperationKind.START, actor=ACTOR).operation
    rounds.run(minutes=0.5)
    assert (fresh(start).state, fresh(start).reason) == (OperationState.FAILED, Reason.NO_CAPACITY)
    assert only_lease().wanted == "stopped"
