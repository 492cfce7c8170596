"""The list of leases: what an address asks for, rows with what an hour and this month cost, and the CSV."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Case, F, QuerySet, When
from django.db.models.expressions import Expression, OrderBy
from django.db.models.functions import Coalesce
from django.utils.translation import gettext_lazy as _

from fleet.enums import LeaseOrigin, LeaseState
from fleet.leasing.costs import Cost
from fleet.models import Lease, ProviderAccount
from fleet.providers.base import Billing
from fleet.selectors.costs import lease_costs, lease_rates, month_start
from fleet.selectors.leasing import lease_list
from frontend.leasing.offers import number_of
from panel.core.money import Money, sums

RENEWALS: Final = {"7": _("within 7 days"), "30": _("within 30 days")}
SHOWN: Final = ("open", "ended", "all")
# As Lease.title says.
_TITLE: Final[Expression] = Case(
    When(origin=LeaseOrigin.TYPED, then=F("name")), default=Coalesce(F("server__name"), F("name"))
)
_SORTS: Final[Mapping[str, Expression | F]] = {
    "name": _TITLE,
    "state": F("state"),
    "renews": F("renews_at"),
    "since": F("requested_at"),
    "server": F("server__name"),
}
CSV_ROWS: Final = 10_000


@dataclass(frozen=True, slots=True)
class LeaseFilter:
    """What an address asks of the list. show: open, ended or all; renews: days ahead."""

    show: str = "open"
    search: str = ""
    state: str = ""
    billing: str = ""
    account: int | None = None
    renews: str = ""
    sort: str = "name"

    @property
    def is_active(self) -> bool:
        """Say whether any row may be hidden beside the ended ones."""
        return any((self.search, self.state, self.billing, self.account, self.renews))


def cards_text(lease: Lease) -> str:
    """Return what cards are leased, as in "8 × H100 SXM 80GB"; empty when nobody told."""
    facts = {**lease.observed, **{key: value for key, value in lease.spec.items() if value}}
    model, count = facts.get("gpu_model") or facts.get("raw_gpu"), facts.get("gpu_count")
    return f"{count} × {model}" if model and count else str(model or "")


@dataclass(frozen=True, slots=True)
class LeaseRow:
    """One lease. rate: of an hour now, None when not known, {} when it is over; cost: since the month began."""

    lease: Lease
    rate: Mapping[str, Money] | None
    cost: Cost

    @property
    def gpus(self) -> str:
        """Return what cards it has, as in "8 × H100 SXM 80GB"; empty when nobody told."""
        return cards_text(self.lease)


def read_filter(query: Mapping[str, str]) -> LeaseFilter:
    """Return the filter of an address; what it cannot mean is left out."""
    show, state, billing, renews, sort = (
        query.get(name, "") for name in ("show", "state", "billing", "renews", "sort")
    )
    return LeaseFilter(
        show=show if show in SHOWN else "open",
        search=query.get("q", "").strip()[:100],
        state=state if state in LeaseState.values else "",
        billing=billing if billing in Billing.values else "",
        account=number_of(query.get("account", "")),
        renews=renews if renews in RENEWALS else "",
        sort=sort if sort.removeprefix("-") in _SORTS else "name",
    )


def filtered(wanted: LeaseFilter, now: datetime) -> QuerySet[Lease]:
    """Return the leases that pass, in the order asked for; what has no value comes last."""
    leases = lease_list(
        account=wanted.account,
        state=[wanted.state] if wanted.state else [],
        billing=[wanted.billing] if wanted.billing else [],
        is_open={"open": True, "ended": False}.get(wanted.show),
        renews_before=now + timedelta(days=int(wanted.renews)) if wanted.renews else None,
        search=wanted.search,
    )
    field = _SORTS[wanted.sort.removeprefix("-")]
    return leases.order_by(OrderBy(field, descending=wanted.sort.startswith("-"), nulls_last=True), "pk")


def rows_of(leases: Sequence[Lease], now: datetime) -> list[LeaseRow]:
    """Return leases with their money. Four queries however many."""
    rates = lease_rates(leases=leases, at=now)
    costs = lease_costs(lease_ids=[lease.pk for lease in leases], start=month_start(now), end=now)
    return [LeaseRow(lease, rates[lease.pk], costs[lease.pk]) for lease in leases]


def rate_now(now: datetime) -> tuple[dict[str, Money], int, int]:
    """Return what an hour of everything open costs, how many leases that is, and of how many the price is not known."""
    leases = list(Lease.objects.filter(ended_at=None).only("pk"))
    rates = lease_rates(leases=leases, at=now)
    known = sums(money for rate in rates.values() if rate for money in rate.values())
    return known, len(leases), sum(rate is None for rate in rates.values())


def choices() -> dict[str, Any]:
    """Return what the filters offer. One query."""
    return {
        "states": LeaseState.choices,
        "billings": Billing.choices,
        "renewals": list(RENEWALS.items()),
        "accounts": list(ProviderAccount.objects.filter(removed_at=None).order_by("name").values_list("pk", "name")),
    }


CSV_HEADER: Final = [
    "lease",
    "name_at_provider",
    "external_id",
    "account",
    "landlord",
    "server",
    "state",
    "billing",
    "region",
    "gpus",
    "price_per_hour",
    "cost_this_month",
    "hours_this_month",
    "hours_without_price",
    "paid_until_utc",
    "requested_utc",
    "ended_utc",
]


def _amounts(totals: Mapping[str, Money] | None) -> str:
    return "; ".join(str(totals[code].rounded()) for code in sorted(totals)) if totals else ""


def csv_row(row: LeaseRow) -> list[object]:
    """Return a row in the order of CSV_HEADER; amounts with their currency, each currency by itself."""
    lease = row.lease
    return [
        lease.title,
        lease.name,
        lease.external_id,
        lease.account.name if lease.account else "",
        lease.landlord,
        lease.server.name if lease.server else "",
        lease.state,
        lease.billing,
        lease.region,
        row.gpus,
        _amounts(row.rate),
        _amounts(row.cost.totals),
        round(row.cost.hours, 4),
        round(row.cost.unknown_hours, 4),
        lease.renews_at.isoformat() if lease.renews_at else None,
        lease.requested_at.isoformat(),
        lease.ended_at.isoformat() if lease.ended_at else None,
    ]
