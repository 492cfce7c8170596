"""Contracts for machines without an API: typed in, changed by date, reminded of, closed; ways of paying compared."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
import time_machine

from fleet.api.leasing.serializers import LeaseSerializer
from fleet.enums import OperationKind, PriceComponent, PriceUnit
from fleet.models import BilledInterval, Drift, Lease, LeasePrice, Offer, Server
from fleet.providers.base import Billing
from fleet.selectors.costs import lease_costs, lease_rates
from fleet.selectors.leasing import lease_break_even, lease_list
from fleet.services.contracts import PricePart, lease_attach, lease_close, lease_terms_update, lease_type_in
from fleet.services.power import lease_act
from fleet.services.renewals import renewals_remind
from panel.core.clock import now
from panel.core.errors import Conflict, InvalidInput
from panel.core.models import Event
from panel.core.money import Money
from tests.leasing.conftest import ACTOR, fresh

BEGAN = datetime(2026, 11, 1, tzinfo=UTC)
TODAY = datetime(2026, 11, 21, tzinfo=UTC)


@pytest.fixture
def calendar(db):
    with time_machine.travel(TODAY, tick=False) as traveller:
        yield traveller


def part(amount, unit=PriceUnit.MONTH, component=PriceComponent.COMPUTE, currency="CNY"):
    return PricePart(component=component, price=Money(Decimal(amount), currency), unit=unit)


def rack(**options):
    """Write down a box that a data centre rents out by the month."""
    return lease_type_in(
        name="rack 7",
        billing=Billing.MONTHLY,
        prices=[
            part(7200),
            part(360, component=PriceComponent.ADDRESS),
            part(500, PriceUnit.ONCE, PriceComponent.SETUP),
        ],
        started_at=BEGAN,
        actor=ACTOR,
        landlord="Hefei data centre",
        renews_at=TODAY + timedelta(days=10),
        **options,
    )


def spent(lease):
    return lease_costs(lease_ids=[lease.pk], start=BEGAN, end=now())[lease.pk].totals["CNY"].amount


def test_it_costs_from_its_first_day_on_with_all_its_parts(calendar):
    lease = rack()
    assert spent(lease) == 20 * (240 + 12) + 500
    rates = lease_rates(leases=[lease], at=now())[lease.pk]
    assert rates["CNY"].amount == Decimal(7560) / 720


def test_a_new_price_counts_from_its_day_on(calendar):
    lease = rack()
    lease_terms_update(
        lease_id=lease.pk, actor=ACTOR, prices=[part(8640)], effective_from=datetime(2026, 11, 11, tzinfo=UTC)
    )
    assert spent(lease) == 10 * 240 + 10 * 288 + 20 * 12 + 500
    assert LeasePrice.objects.filter(lease=lease, component="compute").count() == 2


def test_people_are_reminded_once_of_each_term(calendar):
    lease = rack(reminder_days=7)
    assert renewals_remind(at=now()) == 0
    calendar.shift(timedelta(days=4))
    assert (renewals_remind(at=now()), renewals_remind(at=now())) == (1, 0)
    event = Event.objects.get(kind="lease.renews_soon")
    assert (event.severity, event.subject_id) == ("warning", lease.pk)
    lease_terms_update(lease_id=lease.pk, actor=ACTOR, renews_at=now() + timedelta(days=5), is_renewing=True)
    assert renewals_remind(at=now()) == 1


def test_it_ends_on_the_day_that_is_written_down(calendar):
    lease = rack()
    with pytest.raises(InvalidInput):
        lease_close(lease_id=lease.pk, ended_at=now() + timedelta(days=1), actor=ACTOR)
    lease_close(lease_id=lease.pk, ended_at=datetime(2026, 11, 11, tzinfo=UTC), actor=ACTOR)
    assert spent(lease) == 10 * 252 + 500
    assert BilledInterval.objects.get().ended_at == datetime(2026, 11, 11, tzinfo=UTC)
    with pytest.raises(Conflict):
        lease_terms_update(lease_id=lease.pk, actor=ACTOR, notes="too late")


def test_no_api_is_asked_for_it(calendar):
    with pytest.raises(Conflict) as refused:
        lease_act(lease_id=rack().pk, kind=OperationKind.TERMINATE, actor=ACTOR)
    assert refused.value.code == "not_supported"


def test_a_server_has_one_open_lease(calendar):
    server = Server.objects.create(name="rack-7", state="ready", state_changed_at=TODAY, created_at=TODAY)
    first = rack(server_id=server.pk)
    second = rack()
    with pytest.raises(Conflict) as taken:
        lease_attach(lease_id=second.pk, server_id=server.pk, actor=ACTOR)
    assert taken.value.code == "server_has_lease"
    lease_close(lease_id=first.pk, ended_at=now(), actor=ACTOR)
    lease_attach(lease_id=second.pk, server_id=server.pk, actor=ACTOR)
    assert fresh(second).server_id == server.pk


def test_ways_of_paying_are_compared_by_the_hours_billed(calendar, rounds, account):
    lease = Lease.objects.create(
        account=account,
        name="box",
        external_id="pod1",
        origin="ordered",
        state="active",
        state_changed_at=BEGAN,
        billing=Billing.HOURLY,
        requested_at=now() - timedelta(days=40),
        spec={"gpu_model": "T4 16GB", "gpu_count": 1},
    )
    BilledInterval.objects.create(lease=lease, mode="full", started_at=now() - timedelta(days=20))
    LeasePrice.objects.create(
        lease=lease,
        amount=Decimal("8.68"),
        currency="CNY",
        unit="hour",
        effective_from=BEGAN,
        source="offer",
        noted_at=BEGAN,
    )
    assert lease_break_even(lease, at=now()).saving is None
    Offer.objects.create(
        account=account, key="month", gpu_model="T4 16GB", gpu_count=1, billing=Billing.MONTHLY, currency="CNY",
        price_per_term=Decimal(2500), fetched_at=now(),
    )  # fmt: skip
    found = lease_break_even(lease, at=now())
    assert found.used_hours == 480
    assert round(found.break_even_hours) == 288
    assert found.saving == Money(Decimal("8.68") * 480 - 2500, "CNY")


def test_a_price_that_is_agreed_on_for_later_is_not_the_present_one(rounds):
    lease = rack()
    start = now() + timedelta(days=10)
    before = LeasePrice.objects.get(lease=lease, component=PriceComponent.COMPUTE)
    lease_terms_update(lease_id=lease.pk, actor=ACTOR, prices=[part(9999)], effective_from=start)
    shown = LeaseSerializer(lease_list().get(pk=lease.pk)).data
    compute = [each for each in shown["prices"] if each["component"] == "compute"]
    assert [Decimal(each["amount"]) for each in compute] == [before.amount]
    [coming] = shown["prices_coming"]
    assert (Decimal(coming["amount"]), coming["effective_from"][:10]) == (Decimal(9999), start.date().isoformat())
    assert shown["title"] == lease.title
    rounds.pass_time(11 * 86_400)
    shown = LeaseSerializer(lease_list().get(pk=lease.pk)).data
    assert [Decimal(each["amount"]) for each in shown["prices"] if each["component"] == "compute"] == [Decimal(9999)]
    assert shown["prices_coming"] == []


def test_a_coming_price_that_another_took_the_place_of_is_not_shown(rounds):
    lease = rack()
    for days, amount in ((10, 8888), (5, 7777)):
        start = now() + timedelta(days=days)
        lease_terms_update(lease_id=lease.pk, actor=ACTOR, prices=[part(amount)], effective_from=start)
    assert [price.amount for price in lease_list().get(pk=lease.pk).prices_coming] == [Decimal(7777)]


def test_what_the_provider_bills_is_compared_with_the_price_in_force(rounds, vendor):
    account = rounds.account()
    rounds.order(account)
    rounds.step()
    vendor.advance()
    rounds.sync()
    lease = Lease.objects.get()
    new = part("0.40", PriceUnit.HOUR, currency="USD")
    lease_terms_update(lease_id=lease.pk, actor=ACTOR, prices=[new], effective_from=now() + timedelta(hours=1))
    rounds.run(minutes=5)
    assert not Drift.objects.exists()
    rounds.pass_time(3600)
    rounds.run(minutes=3)
    assert Drift.objects.get().expected["price_per_hour"] == "0.400000"
