"""What instance types cost. The API tells one price a call, so prices are remembered and asked in portions.

List prices change a few times a year and are asked again after hours, spot prices after half an hour. One fetch of offers asks
for so many at most; what it did not come to has no price yet and gets one in the next fetch.
"""

import threading
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from fleet.providers.aliyun.client import EcsClient
from fleet.providers.aliyun.shape import objects
from fleet.providers.base import Billing
from fleet.providers.reading import money, text
from panel.core.clock import now
from panel.core.money import Money

CALLS_PER_FETCH: Final = 400
LIST_PRICE_HOLDS: Final = timedelta(hours=6)
SPOT_PRICE_HOLDS: Final = timedelta(minutes=30)
SPOT_STRATEGY: Final = {"SpotStrategy": "SpotAsPriceGo"}
# How the price of each way of paying is asked. Spot has a price of its own in every zone.
TERMS: Final[Mapping[Billing, Mapping[str, str]]] = {
    Billing.HOURLY: {"PriceUnit": "Hour", "Period": "1"},
    Billing.SPOT: {"PriceUnit": "Hour", "Period": "1", **SPOT_STRATEGY},
    Billing.MONTHLY: {"PriceUnit": "Month", "Period": "1"},
    Billing.YEARLY: {"PriceUnit": "Year", "Period": "1"},
}

_known: dict[tuple[str, ...], tuple[datetime, Money | None]] = {}
_lock: Final = threading.Lock()


def forget() -> None:
    """Forget every price."""
    with _lock:
        _known.clear()


class Prices:
    """The prices of one fetch of offers. account: whose they are, for discounts differ."""

    def __init__(self, client: EcsClient, account: str) -> None:
        self._client, self._account = client, account
        self._calls_left = CALLS_PER_FETCH

    def price(self, region: str, zone: str, instance_type: str, billing: Billing) -> Money | None:
        """Return what the instance costs for one period; None when the API has no price, or was not asked yet.

        When this fetch has asked enough, a price that is due again stands as it was.
        """
        place = zone if billing == Billing.SPOT else region
        key = (self._account, place, instance_type, str(billing))
        with _lock:
            until, price = _known.get(key, (None, None))
        if (until is not None and until > now()) or not self._calls_left:
            return price
        self._calls_left -= 1
        terms = {**TERMS[billing], **({"ZoneId": zone} if billing == Billing.SPOT else {})}
        price = instance_price(self._client.price(region, instance_type, terms))
        holds = SPOT_PRICE_HOLDS if billing == Billing.SPOT else LIST_PRICE_HOLDS
        with _lock:
            _known[key] = (now() + holds, price)
        return price


def instance_price(price: Mapping[str, Any] | None) -> Money | None:
    """Return what the instance itself costs for the period asked for: this account pays the trade price.

    A disk or bandwidth that the API prices along with it is left out. The currency stands beside the amount.
    """
    if price is None:
        return None
    parts = [each for each in objects(price, "DetailInfos", "DetailInfo") if text(each, "Resource") == "instance"]
    found = money((parts[0] if parts else price).get("TradePrice"), text(price, "Currency") or "CNY")
    return found if found is not None and found.amount > 0 else None
