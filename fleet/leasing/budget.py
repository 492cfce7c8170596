"""How long a month's budget lasts at a rate. Pure."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Final

SECONDS_OF_HOUR: Final = 3600


def month_end(at: datetime) -> datetime:
    """Return when the month in which a time lies ends (UTC): budgets begin anew then."""
    at = at.astimezone(UTC)
    return datetime(at.year + at.month // 12, at.month % 12 + 1, 1, tzinfo=UTC)


def budget_hours(*, budget: Decimal, used: Decimal, rate: Decimal, at: datetime) -> Decimal | None:
    """Return in how many hours a month's budget is used up at `rate` an hour; None when it lasts until the month ends.

    All three are amounts of one currency. A budget that is used up already lasts for no hour.
    """
    if rate <= 0:
        return None
    hours = max(budget - used, Decimal(0)) / rate
    left = Decimal((month_end(at) - at).total_seconds()) / SECONDS_OF_HOUR
    return hours if hours < left else None
