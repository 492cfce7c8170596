"""A ledger worked out by hand: what leases cost, to the last digit, whatever befell them."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from fleet.leasing.costs import cost
from fleet.leasing.terms import billed
from panel.core.money import Money

D = Decimal
NONE = D(0)
SHANGHAI, BERLIN = ZoneInfo("Asia/Shanghai"), ZoneInfo("Europe/Berlin")


YEAR = datetime(2026, 1, 1, tzinfo=UTC)


def utc(month, day, hour=0, minute=0, second=0):
    return datetime(2026, month, day, hour, minute, second, tzinfo=UTC)


@dataclass
class Run:
    started_at: datetime
    ended_at: datetime | None = None
    mode: str = "full"
    step_seconds: int = 1
    least_seconds: int = 0
    free_seconds: int = 0


@dataclass
class Price:
    amount: Decimal
    unit: str = "hour"
    component: str = "compute"
    currency: str = "CNY"
    runs_while_stopped: bool = False
    effective_from: datetime = YEAR
    effective_to: datetime | None = None


@dataclass
class Case:
    """Runs, prices and a time; expected by hand: the sums, the hours billed, and those without a price."""

    runs: list
    prices: list
    start: datetime
    end: datetime
    totals: dict
    hours: Decimal
    unknown: Decimal = NONE


NINE = Price(D("9.80"))
LEDGER = {
    # 9.80 × 24 × 3: stopped for two days of the three at a provider where stopping saves nothing
    "a stop that keeps billing": Case(
        [Run(utc(3, 1), utc(3, 2)), Run(utc(3, 2), utc(3, 4), "stopped")],
        [Price(D("9.80"), runs_while_stopped=True)],
        utc(3, 1), utc(3, 4), {"CNY": D("705.60")}, D(72),
    ),
    # 24 × 9.80, then 48 h × 0.05 for the disk
    "a stop that leaves the disk": Case(
        [Run(utc(3, 1), utc(3, 2)), Run(utc(3, 2), utc(3, 4), "stopped")],
        [NINE, Price(D("0.05"), component="disk", runs_while_stopped=True)],
        utc(3, 1), utc(3, 4), {"CNY": D("238.80")}, D(72),
    ),
    # 10 h × 2.00 + 14 h × 2.35
    "a price that changed at ten": Case(
        [Run(utc(3, 1))],
        [Price(D("2.00"), effective_to=utc(3, 1, 10)), Price(D("2.35"), effective_from=utc(3, 1, 10))],
        utc(3, 1), utc(3, 2), {"CNY": D("52.90")}, D(24),
    ),
    # spot: 1.1 for 2 h, 0.9 for 3 h 30 min, taken away
    "spot, taken away": Case(
        [Run(utc(3, 1), utc(3, 1, 5, 30))],
        [
            Price(D("1.1"), currency="USD", effective_to=utc(3, 1, 2)),
            Price(D("0.9"), currency="USD", effective_from=utc(3, 1, 2)),
        ],
        utc(3, 1), utc(3, 2), {"USD": D("5.35")}, D("5.5"),
    ),
    "a month of 28 days": Case(
        [Run(utc(1, 1))], [Price(D(6720), "month")], utc(2, 1), utc(2, 15), {"CNY": D(3360)}, D(336)
    ),
    "a month of 30 days": Case(
        [Run(utc(1, 1))], [Price(D(7200), "month")], utc(4, 1), utc(4, 11), {"CNY": D(2400)}, D(240)
    ),
    "a month of 31 days": Case(
        [Run(utc(1, 1))], [Price(D(7440), "month")], utc(3, 31), utc(4, 1), {"CNY": D(240)}, D(24)
    ),
    # the last day of March at 7440 ÷ 744 an hour, the first of April at 7440 ÷ 720
    "a term across months": Case(
        [Run(utc(1, 1))], [Price(D(7440), "month")], utc(3, 31), utc(4, 2), {"CNY": D(240) + D(248)}, D(48)
    ),
    # 29 March 2026 has 23 hours in Berlin
    "the day on which clocks go forward": Case(
        [Run(utc(1, 1))], [Price(D(2), currency="EUR")],
        datetime(2026, 3, 29, tzinfo=BERLIN), datetime(2026, 3, 30, tzinfo=BERLIN), {"EUR": D(46)}, D(23),
    ),
    # 25 October 2026 has 25
    "the day on which clocks go back": Case(
        [Run(utc(1, 1))], [Price(D(2), currency="EUR")],
        datetime(2026, 10, 25, tzinfo=BERLIN), datetime(2026, 10, 26, tzinfo=BERLIN), {"EUR": D(50)}, D(25),
    ),
    "a day in Shanghai": Case(
        [Run(utc(1, 1))], [NINE],
        datetime(2026, 3, 29, tzinfo=SHANGHAI), datetime(2026, 3, 30, tzinfo=SHANGHAI), {"CNY": D("235.20")}, D(24),
    ),
    # 3 h, a pause of 40 min in which nothing was there, 2 h 20 min
    "a restart": Case(
        [Run(utc(3, 1), utc(3, 1, 3)), Run(utc(3, 1, 3, 40), utc(3, 1, 6))],
        [Price(D(3))], utc(3, 1), utc(3, 2), {"CNY": D(16)}, D(16) / 3,
    ),
    "a price that nobody knows": Case([Run(utc(3, 1))], [], utc(3, 1), utc(3, 1, 7), {}, D(7), D(7)),
    # known from the fourth hour on
    "a price that became known": Case(
        [Run(utc(3, 1))], [Price(D(5), effective_from=utc(3, 1, 3))],
        utc(3, 1), utc(3, 1, 7), {"CNY": D(20)}, D(7), D(3),
    ),
    "two currencies": Case(
        [Run(utc(3, 1))], [Price(D("2.49"), currency="USD"), Price(D("0.30"), component="address")],
        utc(3, 1), utc(3, 1, 10), {"USD": D("24.90"), "CNY": D("3.00")}, D(10),
    ),
    # asked to end at six, not confirmed: it counts on
    "ended but not confirmed": Case(
        [Run(utc(3, 1))], [NINE], utc(3, 1), utc(3, 1, 20), {"CNY": D(196)}, D(20)
    ),
    # 1 h 40 min of which the first 30 min are free: 70 min × 6 ÷ 60
    "free minutes": Case(
        [Run(utc(3, 1), utc(3, 1, 1, 40), free_seconds=1800)], [Price(D(6))],
        utc(3, 1), utc(3, 2), {"CNY": D(7)}, D(7) / 6,
    ),
    "a run within its free minutes": Case(
        [Run(utc(3, 1), utc(3, 1, 0, 20), free_seconds=1800)], [Price(D(6))], utc(3, 1), utc(3, 2), {}, D(0)
    ),
    # 1 h 0 min 36 s × 3.60: 3636 s
    "billed by the second": Case(
        [Run(utc(3, 1), utc(3, 1, 1, 0, 36))], [Price(D("3.60"))], utc(3, 1), utc(3, 2), {"CNY": D("3.636")}, D("1.01")
    ),
    "billed by the started minute": Case(
        [Run(utc(3, 1), utc(3, 1, 1, 0, 36), step_seconds=60)], [Price(D("3.60"))],
        utc(3, 1), utc(3, 2), {"CNY": D("3.66")}, D(61) / 60,
    ),
    # two starts within one hour are two hours
    "billed by the started hour, restarted": Case(
        [Run(utc(3, 1), utc(3, 1, 0, 5), step_seconds=3600), Run(utc(3, 1, 0, 10), utc(3, 1, 1, 20), step_seconds=3600)],
        [Price(D(4))], utc(3, 1), utc(3, 2), {"CNY": D(12)}, D(3),
    ),
    "a least of ten minutes": Case(
        [Run(utc(3, 1), utc(3, 1, 0, 1), least_seconds=600)], [Price(D(6))],
        utc(3, 1), utc(3, 2), {"CNY": D(1)}, D(1) / 6,
    ),
    "by the hour while it runs: up to now": Case(
        [Run(utc(3, 1), step_seconds=3600)], [Price(D(4))], utc(3, 1), utc(3, 1, 1, 30), {"CNY": D(6)}, D("1.5")
    ),
    "a fee at the start": Case(
        [Run(utc(3, 1))], [Price(D(200), "once", "setup", effective_from=utc(3, 1)), Price(D(1))],
        utc(3, 1), utc(3, 1, 5), {"CNY": D(205)}, D(5),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LEDGER)
def test_it_agrees_with_the_ledger_to_the_last_digit(name):
    case = LEDGER[name]
    found = cost(list(billed(case.runs)), case.prices, start=case.start, end=case.end)
    assert found.totals == {currency: Money(amount, currency) for currency, amount in case.totals.items()}
    assert found.hours.quantize(D("1e-12")) == D(case.hours).quantize(D("1e-12"))
    assert found.unknown_hours == case.unknown


@pytest.mark.parametrize("name", LEDGER)
def test_parts_add_up_to_the_whole(name):
    """Cut anywhere, the parts cost what the whole does."""
    case, cut = LEDGER[name], LEDGER[name].start + timedelta(hours=1)
    runs = list(billed(case.runs))
    parts = [cost(runs, case.prices, start=start, end=end) for start, end in ((case.start, cut), (cut, case.end))]
    for currency, amount in case.totals.items():
        together = sum(part.totals[currency].amount for part in parts if currency in part.totals)
        assert together.quantize(D("1e-20")) == amount.quantize(D("1e-20"))
