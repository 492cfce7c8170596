"""The tabs over the pages of what is rented, and paging of their lists."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from django.db.models import Model, QuerySet
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from fleet.models import Drift
from fleet.selectors.leasing import drift_list
from panel.core.clock import now

PAGE_ROWS: Final = 100
_TABS: Final = (
    ("leases", _("Leases")),
    ("waste", pgettext_lazy("money", "Waste")),
    ("offers", _("Offers")),
    ("operations", _("Operations")),
    ("drift", _("Differences")),
    ("providers", _("Providers")),
    ("exchange-rates", _("Exchange rates")),
)
ModelT = TypeVar("ModelT", bound=Model)


def open_drifts() -> QuerySet[Drift]:
    """Return the differences that wait for somebody."""
    return drift_list(now=now(), is_open=True, is_ignored=False)


def rental_tabs(current: str) -> dict[str, Any]:
    """Return what components/tabs.html and the rail need on each of these pages. One query."""
    waiting = open_drifts().count()
    tabs = [
        {
            "href": reverse(name),
            "label": label,
            "current": name == current,
            "count": waiting if name == "drift" else None,
            "live": "drift/count.html" if name == "drift" else "",
        }
        for name, label in _TABS
    ]
    return {"nav": "rental", "rental_tabs": tabs}


@dataclass(frozen=True, slots=True)
class Rows(Generic[ModelT]):
    """One page of a list. number: from 1. total: rows of all pages."""

    rows: Sequence[ModelT]
    number: int
    total: int

    @property
    def first(self) -> int:
        """Return the number of the first row shown."""
        return (self.number - 1) * PAGE_ROWS + 1

    @property
    def last(self) -> int:
        """Return the number of the last row shown."""
        return (self.number - 1) * PAGE_ROWS + len(self.rows)

    @property
    def newer(self) -> int | None:
        """Return the page before, None on the first."""
        return self.number - 1 if self.number > 1 else None

    @property
    def older(self) -> int | None:
        """Return the page after, None on the last."""
        return self.number + 1 if self.last < self.total else None


def page_number(text: str) -> int:
    """Return the page that an address asks for, 1 for what it cannot mean."""
    return max(1, int(text)) if text.isdecimal() and len(text) < 7 else 1


def rows_of(found: QuerySet[ModelT], number: int) -> Rows[ModelT]:
    """Return one page of what was found; the last one when there are not so many. Two queries."""
    total = found.count()
    number = min(number, max(1, -(-total // PAGE_ROWS)))
    return Rows(list(found[(number - 1) * PAGE_ROWS : number * PAGE_ROWS]), number, total)
