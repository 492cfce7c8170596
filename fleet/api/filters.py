"""Filters of the lists: each stands in the query, is checked, and goes to the selector of the same name."""

from typing import Any, ClassVar, Final

from django.db.models import QuerySet
from django_filters import rest_framework as filters

from fleet.enums import DriverState, GpuHealth, GpuState, ServerState
from fleet.selectors import agent_list, fault_list, gpu_list, join_token_list, server_list
from panel.core.clock import now
from panel.core.enums import Severity

MAX_TEXT: Final = 100
MAX_ID: Final = 2**63 - 1


def text(help_text: str) -> filters.CharFilter:
    """Return a filter that takes a short text."""
    return filters.CharFilter(max_length=MAX_TEXT, help_text=help_text)


def number(help_text: str) -> filters.NumberFilter:
    """Return a filter that takes an id or a code."""
    return filters.NumberFilter(min_value=0, max_value=MAX_ID, decimal_places=0, help_text=help_text)


def any_of(choices: Any, help_text: str) -> filters.MultipleChoiceFilter:
    """Return a filter that may stand several times: any of them will do."""
    return filters.MultipleChoiceFilter(choices=choices, help_text=help_text)


class SelectorFilters(filters.FilterSet):  # type: ignore[misc]  # the library has no types
    """Hands what stands in the query to a selector, which knows what it means; left-out filters are not handed on."""

    def select(self, **given: Any) -> QuerySet[Any]:
        """Return what the selector finds."""
        raise NotImplementedError

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:  # noqa: ARG002 (the selector makes its own)
        """Return the filtered list."""
        given = {name: value for name, value in self.form.cleaned_data.items() if value not in (None, "", [])}
        return self.select(**given)


class AboutServerFilters(SelectorFilters):
    """Filters that lists of servers and of cards share."""

    provider = text("Exactly this provider.")
    region = text("Exactly this region.")
    model = text("Part of a card's name: `H200`.")
    driver_state = any_of(DriverState.choices, "What NVML answers on the server.")
    is_simulated = filters.BooleanFilter(help_text="Servers of the demonstration, or real ones.")


class ServerFilters(AboutServerFilters):
    """Filters of servers."""

    state = any_of(ServerState.choices, "Without it: every server that is not retired.")
    gpu_health = any_of(GpuHealth.choices, "The worst of the server's cards.")
    search = text("Part of the name, provider, region or host name, or of a card's UUID.")
    label = text("A label's name, or `name=value`.")
    select: ClassVar[Any] = staticmethod(server_list)


class GpuFilters(AboutServerFilters):
    """Filters of cards that need no readings."""

    state = any_of(GpuState.choices, "What the last report said of the card.")
    server = number("Of this server, retired or not.")
    uuid = filters.CharFilter(max_length=96, help_text="The history of one card: a row for each server that it was in.")
    search = text("Part of the UUID, name, PCI address or the server's name.")
    is_slice = filters.BooleanFilter(help_text="Only MIG slices, or only whole cards.")
    select: ClassVar[Any] = staticmethod(gpu_list)


class AgentFilters(SelectorFilters):
    """Filters of agents."""

    server = number("Of this server.")
    is_revoked = filters.BooleanFilter(help_text="Whose token has ended, or has not.")
    select: ClassVar[Any] = staticmethod(agent_list)


class JoinTokenFilters(SelectorFilters):
    """Filters of join tokens."""

    is_usable = filters.BooleanFilter(help_text="Those that a machine may still use, or those that none may.")

    def select(self, **given: Any) -> QuerySet[Any]:
        """Return what the selector finds."""
        return join_token_list(now=now(), **given)


class FaultFilters(SelectorFilters):
    """Filters of faults."""

    server = number("Of this server.")
    gpu = number("Of this card.")
    code = number("The XID.")
    kind = filters.CharFilter(max_length=16, help_text="`xid`, or `sxid` for the switch between the cards.")
    severity = any_of(Severity.choices, "How bad.")
    since = filters.IsoDateTimeFilter(help_text="Seen at or after this time.")
    until = filters.IsoDateTimeFilter(help_text="Seen at or before this time.")
    select: ClassVar[Any] = staticmethod(fault_list)
