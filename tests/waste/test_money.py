"""What idleness costs, by hand-computed examples: to the last digit, by contract, each currency by itself."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from fleet.providers.facts import Billing
from monitoring.waste.money import Avoidable, Stretch, avoidable, idle_cost, saving_per_hour
from panel.core.money import Money

START = datetime(2026, 2, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)


@dataclass
class Interval:
    mode: str
    started_at: datetime
    ended_at: datetime | None = None


@dataclass
class Price:
    amount: Decimal
    unit: str = "hour"
    component: str = "compute"
    currency: str = "CNY"
    runs_while_stopped: bool = False
    effective_from: datetime = START
    effective_to: datetime | None = None


RUNNING = [Interval("full", START)]


def spent(stretches, prices, intervals=RUNNING, *, end=START + 24 * HOUR):
    found = idle_cost(stretches, intervals, prices, start=START, end=end)
    return {currency: money.amount for currency, money in found.totals.items()}, found


def test_two_idle_cards_of_eight_cost_a_quarter_of_the_machine():
    totals, found = spent([Stretch(START + HOUR, START + 4 * HOUR, 2, 8)], [Price(Decimal("9.80"))])
    assert totals == {"CNY": Decimal("7.35")}  # 3 h × 9.80 × 2/8
    assert (found.card_hours, found.unknown_card_hours) == (6, 0)


def test_a_month_is_spread_over_the_hours_of_that_very_month():
    totals, _ = spent([Stretch(START, START + 7 * HOUR, 1, 1)], [Price(Decimal(6720), unit="month")])
    assert totals == {"CNY": Decimal(70)}  # February 2026 has 672 hours


def test_a_price_that_changed_counts_from_its_time():
    change = START + 2 * HOUR
    prices = [Price(Decimal(4), effective_to=change), Price(Decimal(6), effective_from=change)]
    assert spent([Stretch(START, START + 5 * HOUR, 1, 2)], prices)[0] == {"CNY": Decimal(13)}  # (2×4 + 3×6) / 2


def test_what_was_paid_once_is_no_cost_of_idleness_and_currencies_stay_apart():
    prices = [
        Price(Decimal("1.5"), currency="USD"),
        Price(Decimal(300), unit="once", component="setup"),
        Price(Decimal("0.2"), component="disk", runs_while_stopped=True),
    ]
    assert spent([Stretch(START, START + 2 * HOUR, 1, 1)], prices)[0] == {"USD": Decimal("3.0"), "CNY": Decimal("0.4")}


def test_a_stopped_machine_is_not_idle_and_one_that_is_not_billed_costs_nothing():
    intervals = [Interval("full", START, START + HOUR), Interval("stopped", START + HOUR)]
    totals, found = spent([Stretch(START, START + 5 * HOUR, 1, 1)], [Price(Decimal(2))], intervals)
    assert (totals, found.card_hours) == ({"CNY": Decimal(2)}, 1)
    assert spent([Stretch(START, START + HOUR, 1, 1)], [Price(Decimal(2))], [])[0] == {}


def test_hours_without_a_price_are_unknown_and_not_free():
    totals, found = spent([Stretch(START, START + 3 * HOUR, 2, 4)], [])
    assert (totals, found.card_hours, found.unknown_card_hours) == ({}, 6, 6)


def test_only_what_lies_in_the_window_counts():
    stretch = Stretch(START - 5 * HOUR, START + 5 * HOUR, 1, 1)
    assert spent([stretch], [Price(Decimal(3))], end=START + 2 * HOUR)[0] == {"CNY": Decimal(6)}


@pytest.mark.parametrize(
    ("billing", "when"),
    [
        (Billing.HOURLY, Avoidable.NOW),
        (Billing.SPOT, Avoidable.NOW),
        (Billing.MONTHLY, Avoidable.AT_RENEWAL),
        (Billing.WEEKLY, Avoidable.AT_RENEWAL),
        (Billing.OWNED, Avoidable.NEVER),
    ],
)
def test_when_idleness_can_be_saved_follows_the_contract(billing, when):
    assert avoidable(billing) == when


DISK = Price(Decimal("0.5"), component="disk", runs_while_stopped=True)


@pytest.mark.parametrize(
    ("prices", "billing", "is_stop_saving", "by_ending", "by_stopping"),
    [
        ([Price(Decimal(10)), DISK], Billing.HOURLY, True, Decimal("10.5"), Decimal("10.0")),
        ([Price(Decimal(10))], Billing.HOURLY, None, Decimal(10), None),
        ([Price(Decimal(10)), DISK], Billing.HOURLY, False, Decimal("10.5"), {}),
        ([], Billing.SPOT, None, None, None),
        ([Price(Decimal(7200), unit="month")], Billing.MONTHLY, None, {}, {}),
    ],
)
def test_what_an_idle_hour_less_would_save(prices, billing, is_stop_saving, by_ending, by_stopping):
    def amounts(expected):
        return {"CNY": Money(expected, "CNY")} if isinstance(expected, Decimal) else expected

    found = saving_per_hour(prices, billing=billing, at=START + HOUR, is_stop_saving=is_stop_saving)
    assert (found.by_ending, found.by_stopping) == (amounts(by_ending), amounts(by_stopping))
