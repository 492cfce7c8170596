"""Money in words."""

from decimal import Decimal

import pytest

from frontend.money import price_text, rates_text, sum_text
from panel.core.money import Money


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        ("1.75", "¥1.75"),
        ("1.750000", "¥1.75"),
        ("15.84", "¥15.84"),
        ("15.8449", "¥15.84"),
        ("2", "¥2.00"),
        ("0", "¥0.00"),
        ("0.0125", "¥0.0125"),
        ("1.985", "¥1.985"),
        ("5.8333333333", "¥5.8333"),
        ("0.000125", "¥0.000125"),
        ("12775", "¥12,775.00"),
        ("-0.5", "¥-0.50"),
    ],
)
def test_a_price_has_two_decimals_unless_cents_would_be_lost(amount, shown):
    assert price_text(Decimal(amount), "CNY") == shown


def test_currencies_stand_side_by_side_and_small_sums_are_not_nothing():
    rates = {"USD": Money(Decimal("1.2"), "USD"), "CNY": Money(Decimal("12.4"), "CNY")}
    assert rates_text(rates) == "¥12.40 + $1.20"
    assert sum_text(Money(Decimal("0.004"), "CNY")) == "<¥0.01"
