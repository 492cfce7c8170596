"""Prices, clocks and budgets at their worst: no hour is counted twice, none is lost, no sum breaks."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from fleet.enums import LeaseState, PriceComponent, PriceUnit
from fleet.models import BilledInterval, Drift, Lease, Offer
from fleet.providers.base import Billing, MachineStatus, OfferFound
from fleet.providers.runpod.adapter import RunPod
from fleet.selectors.costs import lease_costs
from fleet.services.contracts import PricePart, lease_terms_update, lease_type_in
from fleet.services.leases import bill
from fleet.tasks import offers_fetch_task
from panel.core.clock import now
from panel.core.errors import Conflict, InvalidInput
from panel.core.money import Money
from tests.leasing.conftest import ACTOR, START, fresh, only_lease
from tests.leasing.hostile import listing, machine, running


def test_a_clock_that_is_ahead_bills_nothing_twice_and_leaves_no_hole(rounds, monkeypatch):
    rounds.account(is_adopting=True)
    price = Money(Decimal(2), "USD")
    ahead = machine(created_at=now() + timedelta(hours=8), price_per_hour=price, is_stop_saving=True)
    listing(monkeypatch, ahead)
    rounds.sync()
    rounds.pass_time(3600)
    listing(monkeypatch, replace(ahead, status=MachineStatus.STOPPED, raw_status="EXITED"))
    rounds.sync()
    rounds.pass_time(10 * 3600)
    found = lease_costs(lease_ids=[only_lease().pk], start=START, end=now())[only_lease().pk]
    assert found.totals["USD"].amount == 2
    assert found.hours == 11


def test_a_clock_that_goes_back_makes_no_intervals_that_overlap(rounds, account, vendor):
    lease = running(rounds, account, vendor)
    lease.state, lease.is_stop_saving = LeaseState.STOPPED, True
    bill(lease, now() - timedelta(hours=2), is_confirmed=True)
    first, second = BilledInterval.objects.filter(lease=lease).order_by("pk")
    assert first.started_at <= first.ended_at <= second.started_at


def test_why_a_budget_was_passed_is_kept(rounds):
    account = rounds.account(monthly_budget=Decimal("0.00"))
    operation = rounds.order(account)
    rounds.step()
    rounds.pass_time(3600)
    operation = rounds.order(account, name="second", override_reason=" the demo is tomorrow ")
    assert fresh(operation).request["override_reason"] == "the demo is tomorrow"


def test_a_machine_that_is_there_again_was_billed_all_the_while(rounds, account, vendor):
    lease = running(rounds, account, vendor)
    there = vendor.machines.pop(lease.external_id)
    rounds.run(minutes=4)
    assert fresh(lease).state == LeaseState.LOST
    rounds.pass_time(2 * 3600)
    vendor.machines[there.id] = there
    rounds.run(minutes=2)
    found = lease_costs(lease_ids=[lease.pk], start=START, end=now())[lease.pk]
    assert found.hours == Decimal((now() - START).total_seconds()) / 3600


def contract(**options):
    """Write down a machine of one price by the hour."""
    options.setdefault("prices", [part(1)])
    return lease_type_in(name="rack", billing=Billing.HOURLY, started_at=START, actor=ACTOR, **options)


def part(amount):
    """Return a price by the hour."""
    return PricePart(component=PriceComponent.COMPUTE, price=Money(Decimal(amount), "CNY"), unit=PriceUnit.HOUR)


@pytest.mark.parametrize("hour", [2, 12], ids=["before the last change", "before one that is to come"])
def test_a_price_takes_the_place_of_those_that_would_count_later(rounds, hour):
    """Two prices in force at once would count every hour twice."""
    lease = contract()
    rounds.pass_time(10 * 3600)
    change = {"lease_id": lease.pk, "actor": ACTOR}
    lease_terms_update(**change, prices=[part(10)], effective_from=START + timedelta(hours=5 if hour == 2 else 20))
    lease_terms_update(**change, prices=[part(3)], effective_from=START + timedelta(hours=hour))
    rounds.pass_time(20 * 3600)
    found = lease_costs(lease_ids=[lease.pk], start=START, end=now())[lease.pk]
    assert found.totals["CNY"].amount == hour * 1 + (30 - hour) * 3
    assert found.unknown_hours == 0


def test_the_price_of_a_year_is_no_price_of_an_hour(rounds, account, monkeypatch):
    year = OfferFound(
        key="year",
        gpu_model="H100",
        raw_gpu="H100",
        gpu_count=8,
        billing=Billing.YEARLY,
        price_per_term=Money(Decimal(3_000_000), "CNY"),
    )
    monkeypatch.setattr(RunPod, "offers", lambda _self: [year])
    offers_fetch_task(account.pk)
    assert Offer.objects.get().price_per_term == 3_000_000


@pytest.mark.parametrize(
    ("amount", "unit"),
    [(10**11, PriceUnit.HOUR), (10**11, PriceUnit.MONTH), (10**11, PriceUnit.ONCE)],
    ids=["hour", "month", "once"],
)
def test_an_amount_that_no_machine_costs_is_refused_before_it_breaks_every_sum(rounds, amount, unit):
    price = PricePart(component=PriceComponent.COMPUTE, price=Money(Decimal(amount), "CNY"), unit=unit)
    with pytest.raises(InvalidInput):
        contract(prices=[price])
    lease = contract()
    with pytest.raises(InvalidInput):
        lease_terms_update(lease_id=lease.pk, actor=ACTOR, prices=[price])
    assert Lease.objects.count() == 1


@pytest.mark.parametrize("year", [1, 9999], ids=["the first", "the last"])
def test_a_day_that_no_contract_has_is_refused_before_it_breaks_every_page(rounds, year):
    day = datetime(year, 12, 31, 23, 59, tzinfo=UTC)
    lease = contract()
    for terms in ({"renews_at": day}, {"prices": [part(2)], "effective_from": day}):
        with pytest.raises(InvalidInput):
            lease_terms_update(lease_id=lease.pk, actor=ACTOR, **terms)
    with pytest.raises(InvalidInput):
        contract(renews_at=day)
    with pytest.raises(InvalidInput):
        lease_type_in(name="rack", billing=Billing.HOURLY, started_at=day, actor=ACTOR, prices=[])
    assert Lease.objects.count() == 1


def test_a_fee_dated_before_its_contract_is_paid_once_all_the_same(rounds):
    lease = contract(prices=[])
    fee = PricePart(component=PriceComponent.SETUP, price=Money(Decimal(500), "CNY"), unit=PriceUnit.ONCE)
    lease_terms_update(lease_id=lease.pk, actor=ACTOR, prices=[fee], effective_from=START - timedelta(days=1))
    rounds.pass_time(3600)
    found = lease_costs(lease_ids=[lease.pk], start=START - timedelta(days=30), end=now())[lease.pk]
    assert found.totals["CNY"].amount == 500


def test_one_login_added_twice_pays_for_no_machine_twice(rounds, vendor):
    rounds.account(name="first", is_adopting=True)
    rounds.account(name="second", is_adopting=True)
    vendor.add("box")
    rounds.sync()
    assert Lease.objects.count() == 1
    assert Drift.objects.get().account.name == "second"


def test_a_highest_price_is_compared_within_its_own_currency_alone(rounds, monkeypatch):
    account = rounds.account(max_price_per_hour=Decimal(5))
    offer = OfferFound(
        key="yuan", gpu_model="H100", raw_gpu="H100", gpu_count=1, price_per_hour=Money(Decimal(4), "EUR"), details={}
    )
    monkeypatch.setattr(RunPod, "offers", lambda _self: [offer])
    with pytest.raises(Conflict) as refused:
        rounds.order(account)
    assert refused.value.code == "price_above_max"
