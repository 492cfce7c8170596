"""Offers of all accounts as one list: what an address asks for, how it is ordered, what the filters offer."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from django.db.models import F, QuerySet
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from fleet.models import Offer
from fleet.providers.base import Billing
from fleet.selectors.leasing import offer_list

COMPARED: Final = 4
MEMORIES: Final = (16, 24, 40, 48, 80, 141, 180)


@dataclass(frozen=True, slots=True)
class Column:
    """One column. field: what rows are ordered by, empty where that means nothing."""

    key: str
    label: str | Promise
    unit: str = ""
    is_number: bool = False
    field: str = ""

    @property
    def descending(self) -> str:
        """Return how an address asks for the column in descending order."""
        return f"-{self.key}"


COLUMNS: Final = (
    Column("model", _("GPU"), field="gpu_model"),
    Column("count", pgettext_lazy("how many", "GPUs"), is_number=True, field="gpu_count"),
    Column("memory", _("VRAM each"), "GiB", is_number=True, field="gpu_memory_bytes"),
    Column("gpu_price", _("GPU-hour"), is_number=True, field="price_per_gpu"),
    Column("price", _("Machine-hour"), is_number=True, field="price_per_hour"),
    Column("billing", _("Billing"), field="billing"),
    Column("region", _("Region"), field="region"),
    Column("stock", _("Stock")),
    Column("account", _("Account"), field="account__name"),
    Column("age", _("Fetched"), field="fetched_at"),
)
PRICES: Final = frozenset({"gpu_price", "price"})
_FIELDS: Final = {column.key: column.field for column in COLUMNS if column.field}


@dataclass(frozen=True, slots=True)
class OfferFilter:
    """What an address asks of the list. memory: GiB of one card; price: of one GPU and hour at most."""

    model: str = ""
    memory: Decimal | None = None
    price: Decimal | None = None
    region: str = ""
    billing: str = ""
    stock: str = ""
    currency: str = ""
    account: int | None = None
    count: int | None = None
    sort: str = "gpu_price"

    @property
    def is_active(self) -> bool:
        """Say whether any row may be hidden."""
        asked = (self.model, self.region, self.billing, self.stock, self.currency, self.account, self.count)
        return any(asked) or self.memory is not None or self.price is not None

    @property
    def is_by_price(self) -> bool:
        """Say whether rows are ordered or hidden by money."""
        return self.sort.removeprefix("-") in PRICES or self.price is not None


def decimal_of(text: str) -> Decimal | None:
    """Return an amount that somebody typed, None for what is none."""
    try:
        value = Decimal(text.strip().replace(",", ""))
    except InvalidOperation:
        return None
    return value if value.is_finite() and 0 <= value < 10**9 else None


def number_of(text: str) -> int | None:
    """Return an id or count of an address, None for what cannot be one."""
    return int(text) if text.isdecimal() and len(text) < 18 else None


def read_filter(query: Mapping[str, str]) -> OfferFilter:
    """Return the filter of an address; what it cannot mean is left out."""
    sort, billing, stock = (query.get(name, "") for name in ("sort", "billing", "stock"))
    return OfferFilter(
        model=query.get("model", "").strip()[:64],
        memory=decimal_of(query.get("memory", "")),
        price=decimal_of(query.get("price", "")),
        region=query.get("region", "")[:64],
        billing=billing if billing in Billing.values else "",
        stock=stock if stock in {"yes", "no"} else "",
        currency=query.get("currency", "").upper()[:3],
        account=number_of(query.get("account", "")),
        count=number_of(query.get("count", "")),
        sort=sort if sort.removeprefix("-") in _FIELDS else "gpu_price",
    )


def filtered(wanted: OfferFilter) -> QuerySet[Offer]:
    """Return the offers that pass, in the order asked for; by price each currency by itself, and unknown prices last."""
    offers = offer_list(
        account=wanted.account,
        model=wanted.model,
        min_memory_gb=wanted.memory,
        max_price_per_gpu=wanted.price,
        currency=wanted.currency,
        region=wanted.region,
        billing=[wanted.billing] if wanted.billing else [],
        gpu_count=wanted.count,
        is_in_stock={"yes": True, "no": False}.get(wanted.stock),
    )
    key = wanted.sort.removeprefix("-")
    field = F(_FIELDS[key])
    order = field.desc(nulls_last=True) if wanted.sort.startswith("-") else field.asc(nulls_last=True)
    groups = ["currency"] if key in PRICES else []
    return offers.order_by(*groups, order, "pk")


def currencies_of(offers: QuerySet[Offer]) -> list[str]:
    """Return the currencies of what was found, in order."""
    return sorted(set(offers.order_by().values_list("currency", flat=True).distinct()))


def choices() -> dict[str, Any]:
    """Return what the filters offer. Two queries."""
    offers = offer_list().order_by()
    facts = set(offers.values_list("region", "currency", "gpu_model"))
    return {
        "regions": sorted({region for region, _currency, _model in facts if region}),
        "currencies": sorted({currency for _region, currency, _model in facts}),
        "models": sorted({model for _region, _currency, model in facts if model}),
        "accounts": sorted(set(offers.values_list("account_id", "account__name")), key=lambda pair: pair[1]),
        "billings": Billing.choices,
        "memories": MEMORIES,
    }
