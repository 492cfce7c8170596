"""Providers, clocks and colleagues at their worst: no machine slips away, no sync stands still, no hour is counted twice."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from fleet.enums import AccountHealth, LeaseState, OperationKind, PriceComponent, PriceUnit
from fleet.models import BilledInterval, Drift, Lease, Offer
from fleet.providers.base import Billing, Machine, MachineStatus, OfferFound
from fleet.providers.runpod.adapter import RunPod
from fleet.selectors.costs import lease_costs
from fleet.services import creating, ordering
from fleet.services.accounts import account_provider, account_remove, account_update
from fleet.services.contracts import PricePart, lease_terms_update, lease_type_in
from fleet.services.leases import bill
from fleet.services.power import lease_act
from fleet.services.sync import account_sync
from fleet.tasks import offers_fetch_task
from panel.core.clock import now
from panel.core.errors import Conflict, InvalidInput, NotFound
from panel.core.money import Money
from tests.leasing.conftest import ACTOR, START, fresh, only_lease


def machine(**facts):
    """Return a machine as an adapter would."""
    plain = {"external_id": "pod1", "name": "box", "status": MachineStatus.RUNNING, "raw_status": "RUNNING"}
    return Machine(**{**plain, **facts})


def listing(monkeypatch, *machines):
    """Let the provider list just these."""
    monkeypatch.setattr(RunPod, "machines", lambda _self: list(machines))


def running(rounds, account, vendor):
    """Order a machine and let it run."""
    rounds.order(account)
    rounds.step()
    vendor.advance()
    rounds.run(minutes=0.5)
    return only_lease()


def end(lease):
    """Ask for a lease's end."""
    lease_act(lease_id=lease.pk, kind=OperationKind.TERMINATE, actor=ACTOR)


def test_a_machine_that_shows_up_again_after_its_end_is_ended_again(rounds, account, vendor):
    lease = running(rounds, account, vendor)
    there = vendor.machines[lease.external_id]
    end(lease)
    rounds.run(minutes=1)
    assert fresh(lease).state == LeaseState.TERMINATED
    vendor.machines[there.id] = there
    rounds.run(minutes=4)
    assert vendor.machines == {}
    assert fresh(lease).state == LeaseState.TERMINATED


def test_a_listing_from_before_the_end_opens_no_lease_again(rounds, account, vendor, monkeypatch):
    lease = running(rounds, account, vendor)
    listed = RunPod.machines

    def slow(self):
        found = listed(self)
        end(lease)
        rounds.pass_time(2)
        rounds.step()
        return found

    monkeypatch.setattr(RunPod, "machines", slow)
    account_sync(account_id=account.pk)
    lease = fresh(lease)
    assert (lease.state, lease.ended_at is None) == (LeaseState.TERMINATED, False)
    assert not BilledInterval.objects.filter(ended_at=None).exists()


def test_a_known_machine_that_takes_an_orders_name_stays_what_it_is(rounds, account, vendor):
    box = vendor.add("box")
    account_update(account_id=account.pk, actor=ACTOR, is_adopting=True)
    rounds.sync()
    vendor.has_capacity = False
    rounds.order(account)
    rounds.step()
    refused = Lease.objects.get(origin="ordered")
    box.name = refused.name
    rounds.pass_time(61)
    rounds.sync()
    assert fresh(refused).external_id == ""
    assert Lease.objects.get(external_id=box.id).state == LeaseState.ACTIVE
    assert fresh(account).last_sync_at == now()


@pytest.mark.parametrize("name", ["x" * 400, "a\0b", "a\ud800b"], ids=["long", "nul", "surrogate"])
def test_no_name_of_a_machine_stops_the_sync(rounds, monkeypatch, name):
    account = rounds.account(is_adopting=True)
    listing(monkeypatch, machine(name=name, region="eu\0" * 40), machine(external_id="pod2"))
    rounds.sync()
    assert set(Lease.objects.values_list("external_id", flat=True)) == {"pod1", "pod2"}
    assert fresh(account).health == AccountHealth.OK


def test_a_machine_on_two_pages_is_taken_on_once(rounds, monkeypatch):
    rounds.account(is_adopting=True)
    listing(monkeypatch, machine(), machine())
    rounds.sync()
    assert Lease.objects.count() == 1


@pytest.mark.parametrize("external_id", ["", "x" * 300], ids=["none", "long"])
def test_a_machine_without_a_usable_id_makes_the_listing_no_listing(rounds, account, vendor, monkeypatch, external_id):
    lease = running(rounds, account, vendor)
    listing(monkeypatch, machine(external_id=external_id))
    for _ in range(3):
        rounds.pass_time(301)
        rounds.sync()
    assert fresh(lease).ended_at is None
    assert fresh(account).health_reason == "provider_answer"


def test_an_answer_that_breaks_the_panel_is_a_failure_that_is_told_and_asked_again_later(rounds, account, monkeypatch):
    def breaks(_self):
        raise TypeError("unsupported operand")

    monkeypatch.setattr(RunPod, "machines", breaks)
    with pytest.raises(TypeError):
        account_sync(account_id=account.pk)
    account = fresh(account)
    assert (account.claim, account.failures, account.health) == (None, 1, AccountHealth.FAILING)
    assert account.next_sync_at > now()


def test_what_cannot_be_applied_is_a_failure_too(rounds, account, monkeypatch):
    def breaks(*_):
        raise TypeError("unsupported operand")

    monkeypatch.setattr("fleet.services.sync._settle_vanished", breaks)
    with pytest.raises(TypeError):
        account_sync(account_id=account.pk)
    assert (fresh(account).claim, fresh(account).failures) == (None, 1)


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


def test_offers_that_are_being_fetched_are_not_fetched_by_a_second_worker(rounds, account, vendor, monkeypatch):
    asked = []
    offers = RunPod.offers

    def slow(self):
        asked.append(1)
        if len(asked) == 1:
            offers_fetch_task(account.pk)
        return offers(self)

    monkeypatch.setattr(RunPod, "offers", slow)
    offers_fetch_task(account.pk)
    offers_fetch_task(account.pk)
    assert asked == [1]
    assert Offer.objects.exists()


def meanwhile(monkeypatch, act):
    """Let something happen between an order's plan and its being written down."""
    plan = ordering.order_plan

    def planned(**options):
        found = plan(**options)
        act()
        return found

    monkeypatch.setattr(ordering, "order_plan", planned)


def test_nothing_is_ordered_from_an_account_that_was_removed_meanwhile(rounds, account, monkeypatch):
    meanwhile(monkeypatch, lambda: account_remove(account_id=account.pk, actor=ACTOR))
    with pytest.raises(NotFound):
        rounds.order(account)
    assert not Lease.objects.exists()


def test_nothing_is_ordered_from_an_account_that_nobody_watches(rounds, account):
    account_update(account_id=account.pk, actor=ACTOR, is_paused=True)
    with pytest.raises(Conflict) as refused:
        rounds.order(account)
    assert refused.value.code == "paused"
    assert not Lease.objects.exists()


def test_no_machine_is_taken_on_for_an_account_that_was_removed_meanwhile(rounds, account, vendor, monkeypatch):
    from fleet.services import drift_actions

    vendor.add("box")
    rounds.sync()
    drift = Drift.objects.get()
    asked = drift_actions._machine_of

    def slow(drift):
        found = asked(drift)
        account_remove(account_id=account.pk, actor=ACTOR)
        return found

    monkeypatch.setattr(drift_actions, "_machine_of", slow)
    with pytest.raises(NotFound):
        drift_actions.drift_adopt(drift_id=drift.pk, actor=ACTOR)
    assert not Lease.objects.exists()


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


def test_an_answer_to_a_create_that_comes_after_all_hope_is_kept_and_ended(rounds, account, vendor, monkeypatch):
    created = RunPod.create

    def slow(self, order):
        external_id = created(self, order)
        creating.never_created(only_lease().pk, "outcome_unknown", "")
        return external_id

    monkeypatch.setattr(RunPod, "create", slow)
    rounds.order(account)
    rounds.step()
    assert only_lease().external_id in vendor.machines
    rounds.run(minutes=3)
    assert vendor.machines == {}
    assert only_lease().state == LeaseState.TERMINATED


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


def test_offers_that_no_column_holds_cost_only_themselves(rounds, account, monkeypatch):
    plain = {"gpu_model": "H100", "raw_gpu": "H100", "gpu_count": 1}
    found = [
        OfferFound(**plain, key="good", price_per_hour=Money(Decimal(2), "USD")),
        OfferFound(**plain, key="negative", price_per_hour=Money(Decimal(-2), "USD"), stock_count=-1),
        OfferFound(**plain, key="dear", price_per_hour=Money(Decimal(10) ** 12, "USD"), memory_bytes=2**70),
        OfferFound(**{**plain, "gpu_count": 10**6}, key="many"),
        OfferFound(**{**plain, "gpu_count": 0}, key="none"),
        OfferFound(**plain, key="a" * 300),
        OfferFound(**plain, key="a" * 301),
        OfferFound(**{**plain, "gpu_model": "a\0"}, key="nul\0"),
    ]
    monkeypatch.setattr(RunPod, "offers", lambda _self: found)
    offers_fetch_task(account.pk)
    prices = dict(Offer.objects.values_list("key", "price_per_hour"))
    assert prices == {"good": 2, "negative": None, "dear": None, "a" * 200: None, "nul": None}


def test_a_machine_that_a_listing_leaves_out_is_asked_for_by_its_id_before_it_counts_as_lost(
    rounds, account, vendor, monkeypatch
):
    """As where a region is taken off an account's list while machines run there."""
    lease = running(rounds, account, vendor)
    listing(monkeypatch)
    for _ in range(5):
        rounds.pass_time(61)
        account_sync(account_id=account.pk)
    assert fresh(lease).ended_at is None
    vendor.machines.clear()
    for _ in range(3):
        rounds.pass_time(61)
        account_sync(account_id=account.pk)
    assert fresh(lease).state == LeaseState.LOST


def test_a_worker_that_slept_past_its_claim_sends_no_second_create(rounds, account, vendor):
    rounds.order(account)
    asleep = only_lease()
    vendor.lost_replies = 1
    rounds.step()
    creating._create(asleep, account_provider(account))
    assert vendor.creates == 1


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


def test_a_lost_machine_that_is_back_after_another_took_its_servers_place_is_seen_without_a_server(
    rounds, account, vendor
):
    lease = running(rounds, account, vendor)
    there = vendor.machines.pop(lease.external_id)
    rounds.run(minutes=4)
    assert fresh(lease).state == LeaseState.LOST
    rounds.order(account, server_id=lease.server_id)
    rounds.step()
    vendor.machines[there.id] = there
    rounds.pass_time(61)
    rounds.sync()
    lease, second = Lease.objects.order_by("pk")
    assert (lease.ended_at, lease.server_id) == (None, None)
    assert second.server_id is not None
    assert fresh(account).health == AccountHealth.OK


def test_one_login_added_twice_pays_for_no_machine_twice(rounds, vendor):
    rounds.account(name="first", is_adopting=True)
    rounds.account(name="second", is_adopting=True)
    vendor.add("box")
    rounds.sync()
    assert Lease.objects.count() == 1
    assert Drift.objects.get().account.name == "second"


def test_a_join_token_is_forgotten_whoever_finds_the_machine_of_a_lost_answer(rounds, account, vendor):
    rounds.order(account)
    vendor.lost_replies = 1
    rounds.step()
    account_sync(account_id=account.pk)
    assert only_lease().external_id in vendor.machines
    assert only_lease().sealed_order == ""


def test_a_highest_price_is_compared_within_its_own_currency_alone(rounds, monkeypatch):
    account = rounds.account(max_price_per_hour=Decimal(5))
    offer = OfferFound(
        key="yuan", gpu_model="H100", raw_gpu="H100", gpu_count=1, price_per_hour=Money(Decimal(4), "EUR"), details={}
    )
    monkeypatch.setattr(RunPod, "offers", lambda _self: [offer])
    with pytest.raises(Conflict) as refused:
        rounds.order(account)
    assert refused.value.code == "price_above_max"
