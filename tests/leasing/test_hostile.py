"""Providers and colleagues at their worst: no machine slips away, no sync stands still."""

from decimal import Decimal

import pytest

from fleet.enums import AccountHealth, LeaseState
from fleet.models import BilledInterval, Drift, Lease, Offer
from fleet.providers.base import OfferFound
from fleet.providers.runpod.adapter import RunPod
from fleet.services import creating, ordering
from fleet.services.accounts import account_provider, account_remove, account_update
from fleet.services.sync import account_sync
from fleet.tasks import offers_fetch_task
from panel.core.clock import now
from panel.core.errors import Conflict, NotFound
from panel.core.money import Money
from tests.leasing.conftest import ACTOR, fresh, only_lease
from tests.leasing.hostile import end, listing, machine, running


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


def test_a_join_token_is_forgotten_whoever_finds_the_machine_of_a_lost_answer(rounds, account, vendor):
    rounds.order(account)
    vendor.lost_replies = 1
    rounds.step()
    account_sync(account_id=account.pk)
    assert only_lease().external_id in vendor.machines
    assert only_lease().sealed_order == ""
