"""The waste list: cards with their quiet time, what it cost by the lease, and what could be saved."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from fleet.enums import PriceComponent, PriceUnit
from fleet.models import Gpu
from fleet.providers.facts import Billing
from fleet.services.contracts import PricePart, lease_type_in
from monitoring.models import IdleInterval
from monitoring.waste.money import Avoidable
from monitoring.waste.selectors import waste
from panel.core.money import Money
from tests.fleet.factories import OPERATOR, Machine, joined

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def at_noon(time_machine):
    time_machine.move_to(NOON, tick=False)


def machine(name, cards):
    agent, _ = joined(name)
    Machine(agent, cards=cards).send()
    return agent.server_id, list(Gpu.objects.filter(server=agent.server_id).order_by("index"))


def contract(server_id, amount, *, billing=Billing.HOURLY, unit=PriceUnit.HOUR, currency="CNY"):
    part = PricePart(
        component=PriceComponent.COMPUTE, price=Money(Decimal(amount), currency), unit=unit, runs_while_stopped=False
    )
    return lease_type_in(
        name=f"contract {server_id}",
        billing=billing,
        prices=[part],
        started_at=NOON - 30 * 24 * HOUR,
        server_id=server_id,
        actor=OPERATOR,
    )


def idle(gpu, hours_ago, hours, *, quiet=None, is_open=False):
    start = NOON - timedelta(hours=hours_ago)
    return IdleInterval.objects.create(
        gpu=gpu,
        use="idle",
        started_at=start,
        ended_at=start + timedelta(hours=hours),
        quiet_minutes=quiet or hours * 60,
        is_open=is_open,
        evidence={"power_watts": 79.0},
    )


def day(**changes):
    return waste(**{"start": NOON - 24 * HOUR, "end": NOON, "at": NOON, **changes})


def test_rows_come_dearest_first_with_their_share_of_the_machine(at_noon):
    small, [one] = machine("small", 1)
    large, cards = machine("large", 4)
    contract(small, "2.00")
    contract(large, "40.00")
    idle(one, 10, 5)
    idle(cards[0], 3, 3, is_open=True)
    idle(cards[1], 20, 1)
    found = day()
    assert [(row.gpu.pk, row.cost.totals["CNY"].amount) for row in found.rows] == [
        (cards[0].pk, Decimal(30)),  # 3 h × 40 ÷ 4
        (one.pk, Decimal(10)),  # 5 h × 2: as much, and longer quiet
        (cards[1].pk, Decimal(10)),
    ]
    assert found.totals == {"CNY": Money(Decimal(50), "CNY")}
    assert found.avoidable == found.totals
    assert found.rows[0].idle_since == NOON - 3 * HOUR
    assert found.rows[0].saving.by_ending == {"CNY": Money(Decimal(40), "CNY")}
    assert found.rows[0].evidence == {"power_watts": 79.0}


def test_only_the_window_counts(at_noon):
    server, [card] = machine("box", 1)
    contract(server, "6.00")
    idle(card, 30, 10, quiet=600)  # six hours of it lie before the window
    row = day().rows[0]
    assert (row.cost.totals["CNY"].amount, row.quiet_minutes) == (Decimal(24), 240)
    assert day(start=NOON - 2 * HOUR).rows == []


def test_what_is_paid_in_advance_is_spent_and_currencies_stay_apart(at_noon):
    prepaid, [first] = machine("prepaid", 1)
    hourly, [second] = machine("hourly", 1)
    contract(prepaid, "7200", billing=Billing.MONTHLY, unit=PriceUnit.MONTH)  # November has 720 hours
    contract(hourly, "1.50", currency="USD")
    idle(first, 4, 2)
    idle(second, 4, 2)
    found = day()
    assert found.totals == {"CNY": Money(Decimal(20), "CNY"), "USD": Money(Decimal("3.00"), "USD")}
    assert found.avoidable == {"USD": Money(Decimal("3.00"), "USD")}
    assert {row.avoidable for row in found.rows} == {Avoidable.NOW, Avoidable.AT_RENEWAL}


def test_a_machine_without_a_price_is_listed_and_not_free(at_noon):
    _, [card] = machine("nobody-told", 1)
    idle(card, 4, 2)
    found = day()
    assert (found.rows[0].cost, found.rows[0].avoidable, found.without_price) == (None, None, 1)
    assert found.totals == {}


def test_a_list_of_many_costs_as_many_queries_as_one_of_few(at_noon, django_assert_max_num_queries):
    for number in range(6):
        server, cards = machine(f"box-{number}", 2)
        contract(server, "3.00")
        for card in cards:
            idle(card, 5, 2)
    with django_assert_max_num_queries(7):
        assert len(day().rows) == 12
