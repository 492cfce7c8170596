"""Machines of the big clouds from order to end, through the panel's own rounds: regions, stop modes, arrears, spot."""

from decimal import Decimal

import pytest

from fleet.enums import LeaseState, OperationKind
from fleet.models import Offer
from fleet.providers.aliyun import prices
from fleet.services.offers import offers_fetch
from fleet.services.ordering import order_place
from fleet.services.power import lease_act
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
