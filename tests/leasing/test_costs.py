"""What a lease costs: exact, by mode, by month, each currency by itself, unknown never zero."""

import itertools
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import hypothesis.strategies as st
import pytest
from hypothesis import given

from fleet.leasing.breakeven import break_even
from fleet.leasing.costs import cost, hourly, rate
from fleet.providers.base import Billing
from panel.core.money import Money, MoneyError, sums

START = datetime(2026, 2, 1, tzinfo=UTC)
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


def total(intervals, prices, *, start=START, end=START + 10 * HOUR, currency="CNY"):
    found = cost(intervals, prices, start=start, end=end)
    return found.totals.get(currency, Money(Decimal(0), currency)).amount, found


def test_hours_times_the_price_in_force():
    amount, found = total([Interval("full", START)], [Price(Decimal("1.98"))])
    assert (amount, found.hours, found.unknown_hours) == (Decimal("19.80"), 10, 0)


def test_a_later_price_counts_from_its_time_and_history_stays():
    change = START + 4 * HOUR
    prices = [Price(Decimal(2), effective_to=change), Price(Decimal(3), effective_from=change)]
    assert total([Interval("full", START)], prices)[0] == 4 * 2 + 6 * 3


def test_while_stopped_only_what_goes_on_costs():
    prices = [
        Price(Decimal(10)),
        Price(Decimal("0.5"), component="disk", runs_while_stopped=True),
    ]
    intervals = [Interval("full", START, START + 2 * HOUR), Interval("stopped", START + 2 * HOUR)]
    amount, found = total(intervals, prices)
    assert amount == 2 * 10 + 10 * Decimal("0.5")
    assert found.unknown_hours == 0


def test_a_price_for_the_stopped_machine_counts_then_and_only_then():
    prices = [Price(Decimal(10)), Price(Decimal(1), component="stopped")]
    intervals = [Interval("full", START, START + 2 * HOUR), Interval("stopped", START + 2 * HOUR)]
    amount, found = total(intervals, prices)
    assert (amount, found.unknown_hours) == (2 * 10 + 8 * 1, 0)


def test_hours_without_a_price_are_unknown_and_never_zero():
    amount, found = total([Interval("full", START)], [Price(Decimal(2), effective_from=START + 7 * HOUR)])
    assert (amount, found.unknown_hours) == (6, 7)
    assert rate([], "full", at=START) is None


def test_a_month_is_spread_over_the_hours_of_that_month():
    february, march = Decimal(672), Decimal(744)
    price = Price(Decimal(6720), unit="month")
    end = datetime(2026, 3, 2, tzinfo=UTC)
    expected = Decimal(6720) + 24 * Decimal(6720) / march
    assert total([Interval("full", START)], [price], end=end)[0] == expected
    assert hourly(Decimal(6720), "month", START) == Decimal(6720) / february


def test_a_fee_is_paid_once_where_it_begins():
    setup = Price(Decimal(100), unit="once", component="setup")
    prices = [Price(Decimal(1)), setup]
    intervals = [Interval("full", START, START + 5 * HOUR), Interval("full", START + 6 * HOUR)]
    assert total(intervals, prices)[0] == 5 + 4 + 100
    assert total(intervals, prices, start=START + HOUR)[0] == 4 + 4


def test_currencies_stay_apart():
    prices = [Price(Decimal(1)), Price(Decimal(2), component="disk", currency="USD", runs_while_stopped=True)]
    found = cost([Interval("full", START)], prices, start=START, end=START + HOUR)
    assert {code: money.amount for code, money in found.totals.items()} == {"CNY": 1, "USD": 2}
    with pytest.raises(MoneyError):
        Money(Decimal(1), "CNY") + Money(Decimal(1), "USD")


cuts = st.lists(st.integers(0, 10_000), min_size=1, max_size=6)


@given(cuts=cuts, cents=st.integers(0, 10_000))
def test_the_sum_of_parts_is_the_whole(cuts, cents):
    end = START + timedelta(seconds=10_000)
    moments = sorted({START, end, *(START + timedelta(seconds=cut) for cut in cuts)})
    prices = [Price(Decimal(cents) / 100), Price(Decimal(cents), unit="month", component="disk")]
    intervals = [Interval("full", START)]
    whole, _ = total(intervals, prices, end=end)
    parts = sums(
        money
        for first, last in itertools.pairwise(moments)
        for money in cost(intervals, prices, start=first, end=last).totals.values()
    )
    assert abs(whole - parts.get("CNY", Money(Decimal(0), "CNY")).amount) < Decimal("1e-12")


def test_a_float_is_no_money():
    with pytest.raises(MoneyError):
        Money.of(0.1, "CNY")
    assert Money.of("1,234.5\n", "CNY").amount == Decimal("1234.5")
    assert Money.of(395, "USD", divisor=100).amount == Decimal("3.95")
    for bad in ("", "NaN", "1e400", "free"):
        with pytest.raises(MoneyError):
            Money.of(bad, "CNY")


def test_a_month_is_cheaper_from_the_break_even_hours_on():
    prices = {Billing.HOURLY: Money(Decimal("8.68"), "CNY"), Billing.MONTHLY: Money(Decimal(2500), "CNY")}
    found = break_even(used_hours=Decimal(400), present=Billing.HOURLY, prices=prices)
    assert round(found.break_even_hours) == 288  # a T4 of the old list: 40 % of a month
    assert found.choices[0].billing == Billing.MONTHLY
    assert found.saving == Money(Decimal("8.68") * 400 - 2500, "CNY")
    below = break_even(used_hours=Decimal(200), present=Billing.HOURLY, prices=prices)
    assert (below.choices[0].billing, below.saving) == (Billing.HOURLY, None)
    with pytest.raises(ValueError, match="several currencies"):
        break_even(
            used_hours=Decimal(1),
            present=Billing.HOURLY,
            prices={Billing.HOURLY: Money(Decimal(1), "CNY"), Billing.SPOT: Money(Decimal(1), "USD")},
        )
