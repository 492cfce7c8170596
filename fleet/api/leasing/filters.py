"""Filters of the lists of what is billed; see fleet.api.filters."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from django_filters import rest_framework as filters

from fleet.api.filters import SelectorFilters, any_of, number, text
from fleet.enums import AccountHealth, DriftKind, LeaseOrigin, LeaseState, OperationKind, OperationState
from fleet.providers.base import Billing
from fleet.selectors.leasing import account_list, drift_list, lease_list, offer_list, operation_list
from panel.core.clock import now


class AccountFilters(SelectorFilters):
    """Filters of accounts."""

    kind = any_of([], "Of this kind of provider.")
    health = any_of(AccountHealth.choices, "Whether the provider can be asked.")
    select: ClassVar[Any] = staticmethod(account_list)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        from fleet.providers.registry import PROVIDERS

        self.filters["kind"].extra["choices"] = [(kind, kind) for kind in PROVIDERS]


class OfferFilters(SelectorFilters):
    """Filters of offers."""

    account = number("Of this account.")
    model = text("Part of a GPU's name: `H100`.")
    min_memory_gb = filters.NumberFilter(min_value=0, max_value=10_000, help_text="Memory of one card at least.")
    max_price_per_gpu = filters.NumberFilter(
        min_value=0, max_value=10**9, help_text="An hour of one GPU at most, in the offer's own currency."
    )
    currency = filters.CharFilter(max_length=3, help_text="In this currency.")
    region = text("Exactly this region.")
    billing = any_of(Billing.choices, "Paid so.")
    gpu_count = number("With so many GPUs.")
    is_in_stock = filters.BooleanFilter(help_text="Not sold out, or sold out.")
    select: ClassVar[Any] = staticmethod(offer_list)


class LeaseFilters(SelectorFilters):
    """Filters of leases."""

    account = number("Of this account.")
    server = number("Of this server.")
    state = any_of(LeaseState.choices, "In this state.")
    billing = any_of(Billing.choices, "Paid so.")
    origin = any_of(LeaseOrigin.choices, "Came to be known so.")
    is_open = filters.BooleanFilter(help_text="Still billed, or ended.")
    renews_before = filters.IsoDateTimeFilter(help_text="Whose paid term ends by this time.")
    search = text("Part of the name, the provider's id, the server's name, the region or the landlord.")
    select: ClassVar[Any] = staticmethod(lease_list)


class OperationFilters(SelectorFilters):
    """Filters of operations."""

    account = number("Of this account.")
    lease = number("Of this lease.")
    server = number("Of this server.")
    kind = any_of(OperationKind.choices, "Of this kind.")
    state = any_of(OperationState.choices, "In this state.")
    is_open = filters.BooleanFilter(help_text="On their way, or over.")
    select: ClassVar[Any] = staticmethod(operation_list)


class DriftFilters(SelectorFilters):
    """Filters of differences."""

    account = number("Of this account.")
    kind = any_of(DriftKind.choices, "Of this kind.")
    is_open = filters.BooleanFilter(help_text="Not settled, or settled.")
    is_ignored = filters.BooleanFilter(help_text="Left out of sight now, or not.")

    def select(self, **given: Any) -> QuerySet[Any]:
        """Return what the selector finds."""
        return drift_list(now=now(), **given)
