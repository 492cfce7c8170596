"""Machines of the big clouds from order to end, through the panel's own rounds: regions, stop modes, arrears, spot."""

from datetime import timedelta
from decimal import Decimal

import httpx
import pytest

from fleet.enums import LeaseState, OperationKind
from fleet.models import Offer
from fleet.providers.aliyun import prices
from fleet.reasons import Reason
from fleet.services.offers import offers_fetch
from fleet.services.ordering import order_place
from fleet.services.power import lease_act
from panel.core.clock import now
from tests.fakes.aliyun import FakeAliyun
from tests.fakes.tencent import FakeTencent
from tests.leasing.conftest import ACTOR, fresh, only_lease

VENDORS = (FakeAliyun, FakeTencent)


@pytest.fixture(params=VENDORS, ids=[each.kind for each in VENDORS])
def vendor(request, monkeypatch):
    """The fake cloud behind the registry."""
    prices.forget()
    fake = request.param()
    monkeypatch.setattr("fleet.providers.registry.transport_for", lambda kind: fake.transport)
    monkeypatch.setattr("fleet.providers.http.Spacing.wait_for_turn", lambda *_: None)
    yield fake
    prices.forget()
    assert fake.complaints() == []


@pytest.fixture
def account(rounds, vendor):
    """The fake's account, with its regions."""
    return rounds.account(options=vendor.options)


def ordered(account, vendor, billing):
    """Order one machine of a way of paying; return its lease."""
    offers_fetch(account_id=account.pk)
    offers = Offer.objects.filter(account=account, billing=billing, price_per_hour__isnull=False)
    order_place(
        account_id=account.pk,
        offer_id=offers.order_by("pk").first().pk,
        server_name="trainer",
        actor=ACTOR,
        options=vendor.order_options,
        url="https://panel.example",
    )
    return only_lease()


def test_the_account_knows_its_balance_and_what_its_key_may_do(account):
    assert account.currency == "CNY"
    assert account.balance > Decimal(1000)


def test_a_machine_is_ordered_stopped_started_and_ended(rounds, account, vendor):
    lease = ordered(account, vendor, "hourly")
    rounds.run(minutes=0.5)
    vendor.advance()
    rounds.run(minutes=1.5)
    lease = fresh(lease)
    assert lease.external_id in vendor.machines
    assert lease.state in {LeaseState.BOOTING, LeaseState.ACTIVE}

    lease_act(lease_id=lease.pk, kind=OperationKind.STOP, actor=ACTOR)
    rounds.run(minutes=0.5)
    vendor.advance()
    rounds.run(minutes=1.5)
    lease = fresh(lease)
    assert (lease.state, lease.is_stop_saving) == (LeaseState.STOPPED, True)

    lease_act(lease_id=lease.pk, kind=OperationKind.START, actor=ACTOR)
    rounds.run(minutes=0.5)
    vendor.advance()
    rounds.run(minutes=1.5)
    assert fresh(lease).state in {LeaseState.BOOTING, LeaseState.ACTIVE}

    lease_act(lease_id=lease.pk, kind=OperationKind.TERMINATE, actor=ACTOR)
    rounds.run(minutes=0.5)
    vendor.advance()
    rounds.run(minutes=5)
    lease = fresh(lease)
    assert (lease.state, vendor.machines) == (LeaseState.TERMINATED, {})
    assert vendor.creates == 1


def test_an_order_whose_answer_was_lost_becomes_one_machine(rounds, account, vendor):
    vendor.lost_replies = 1
    lease = ordered(account, vendor, "monthly")
    rounds.run(minutes=3)
    assert fresh(lease).external_id in vendor.machines
    assert vendor.creates == 1


def test_a_spot_machine_that_is_taken_back_shows_as_preempted(rounds, account, vendor):
    lease = ordered(account, vendor, "spot")
    rounds.run(minutes=0.5)
    vendor.advance()
    rounds.run(minutes=1.5)
    vendor.preempt(fresh(lease).external_id)
    rounds.run(minutes=2)
    assert fresh(lease).state == LeaseState.PREEMPTED


def test_an_order_that_is_never_answered_is_given_up_within_the_tokens_life(rounds, account, vendor, monkeypatch):
    lease = ordered(account, vendor, "monthly")
    sent_at, answer = [], vendor.answer

    def swallow(request):
        if vendor.is_create(request):
            sent_at.append(now())
            return httpx.Response(502, text="<html>Bad gateway</html>")
        return answer(request)

    monkeypatch.setattr(vendor, "answer", swallow)
    rounds.run(minutes=30)
    assert len(sent_at) > 1
    assert sent_at[-1] - sent_at[0] < timedelta(minutes=10)
    lease = fresh(lease)
    assert (lease.state, lease.state_reason) == (LeaseState.FAILED, Reason.OUTCOME_UNKNOWN)
    assert lease.ended_at is not None
    assert "Order again" in lease.state_detail


def test_a_create_that_was_put_off_does_not_lengthen_the_tokens_life(rounds, account, vendor, monkeypatch):
    """Asked too often once, the next create counted as the first: long after, the token made a second machine."""
    lease = ordered(account, vendor, "monthly")
    answer, calls = vendor.answer, []

    def odd(request):
        if vendor.is_create(request):
            calls.append(now())
            return vendor.too_many(request) if len(calls) % 2 == 0 else httpx.Response(502, text="<html></html>")
        return answer(request)

    monkeypatch.setattr(vendor, "answer", odd)
    rounds.run(minutes=30)
    assert calls[-1] - calls[0] < timedelta(minutes=10)
    assert fresh(lease).ended_at is not None
