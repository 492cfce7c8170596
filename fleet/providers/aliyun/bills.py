"""Lines of Alibaba Cloud's bills as charges. Pure."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any, Final

from fleet.providers.base import Charge
from fleet.providers.reading import money, text

# Bills are cut at midnight in China, whatever the site.
BILLING_ZONE: Final = timezone(timedelta(hours=8))


def days_of(start: datetime, end: datetime) -> list[date]:
    """Return the days of the bills whose midnight lies in [start, end)."""
    first = start.astimezone(BILLING_ZONE)
    midnight = datetime(first.year, first.month, first.day, tzinfo=BILLING_ZONE)
    if midnight < start:
        midnight += timedelta(days=1)
    return [(midnight + timedelta(days=count)).date() for count in range(-((midnight - end) // timedelta(days=1)))]


def charge_of(item: Mapping[str, Any], day: date, known: Mapping[str, str], currency: str) -> Charge | None:
    """Return a line of a bill as a charge, None when it tells no amount. known: the ids of machines that are still there.

    What is paid is the amount after discounts and before vouchers.
    """
    amount = money(item.get("PretaxAmount"), text(item, "Currency") or currency)
    if amount is None:
        return None
    midnight = datetime(day.year, day.month, day.day, tzinfo=BILLING_ZONE).astimezone(UTC)
    instance_id = text(item, "InstanceID")
    return Charge(
        external_id=known.get(instance_id, instance_id),
        start=midnight,
        end=midnight + timedelta(days=1),
        amount=amount,
        kind=text(item, "Item"),
    )
