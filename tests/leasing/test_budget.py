"""How long a month's budget lasts."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from fleet.leasing.budget import budget_hours, month_end

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)  # 516 hours before the month ends


def lasts(budget, used, rate, at=NOON):
    return budget_hours(budget=Decimal(budget), used=Decimal(used), rate=Decimal(rate), at=at)


@pytest.mark.parametrize(
    ("at", "end"), [((2026, 3, 10), (2026, 4, 1)), ((2026, 12, 31), (2027, 1, 1)), ((2026, 11, 1), (2026, 12, 1))]
)
def test_a_month_ends_where_the_next_begins(at, end):
    assert month_end(datetime(*at, tzinfo=UTC)) == datetime(*end, tzinfo=UTC)


def test_a_budget_is_used_up_when_what_is_left_is_spent():
    assert lasts(500, 10, "17.5") == Decimal(28)
    assert lasts(500, 500, "17.5") == 0
    assert lasts(500, 900, "17.5") == 0


def test_a_budget_that_lasts_until_the_month_ends_is_no_concern():
    assert lasts(516, 0, 1) is None
    assert lasts(515, 0, 1) == 515
    assert lasts(500, 0, 0) is None
