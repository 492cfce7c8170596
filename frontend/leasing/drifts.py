"""Differences in sentences: what is found and expected, what it costs, what may be done and what that means."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final

from django.db.models import QuerySet
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from fleet.enums import DriftKind
from fleet.models import Drift
from fleet.providers.base import MachineStatus
from fleet.selectors.leasing import drift_list
from frontend.formatting import said_of
from frontend.leasing.accounts import kind_label
from frontend.leasing.lease_page import what_stays
from frontend.leasing.offers import number_of
from frontend.money import price_text
from panel.core.clock import now

IGNORE_FOR: Final[Mapping[str, tuple[Promise, timedelta]]] = {
    "1": (gettext_lazy("a day"), timedelta(days=1)),
    "7": (gettext_lazy("a week"), timedelta(days=7)),
    "30": (gettext_lazy("30 days"), timedelta(days=30)),
    "365": (gettext_lazy("a year"), timedelta(days=365)),
}
FACT_WORDS: Final[Mapping[str, Promise]] = {
    "gpu_model": gettext_lazy("GPU model"),
    "gpu_count": gettext_lazy("Number of GPUs"),
    "region": gettext_lazy("Region"),
    "price_per_hour": gettext_lazy("Price per hour"),
    "status": gettext_lazy("State"),
}
SHOWN: Final = ("open", "ignored", "settled")


@dataclass(frozen=True, slots=True)
class DriftFilter:
    """What an address asks of the list."""

    show: str = "open"
    kind: str = ""
    account: int | None = None

    @property
    def is_active(self) -> bool:
        """Say whether rows of the tab may be hidden."""
        return bool(self.kind or self.account)


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact that differs; expected is empty for a machine that nobody expected."""

    label: str
    expected: str
    found: str

    @property
    def sentence(self) -> str:
        """Return what was expected and what is there, with the mark that the language puts after the label."""
        found = self.found or "—"
        return said_of(self.label, f"{self.expected} → {found}" if self.expected else found)


@dataclass(frozen=True, slots=True)
class DriftRow:
    """One difference with its words."""

    drift: Drift

    @property
    def is_unknown(self) -> bool:
        """Say whether it is about a machine that the panel did not know."""
        return self.drift.kind == DriftKind.UNKNOWN_AT_PROVIDER

    @property
    def can_end(self) -> bool:
        """Say whether it may be ended from here: a machine that nobody knows, or not the one that was ordered."""
        return self.drift.kind in {DriftKind.UNKNOWN_AT_PROVIDER, DriftKind.SPEC_DIFFERS}

    @property
    def milder(self) -> str:
        """Return the milder act than ending it."""
        return (
            _("Milder: adopt it and stop it.") if self.is_unknown else _("Milder: accept it, or stop it on its lease.")
        )

    @property
    def is_waiting(self) -> bool:
        """Say whether something may be done about it."""
        return self.drift.resolved_at is None

    @property
    def name(self) -> str:
        """Return what people call the machine: its lease's title, else its name at the provider, else its id."""
        lease = self.drift.lease
        return lease.title if lease is not None else self.drift.name or self.drift.external_id

    @property
    def provider(self) -> str:
        """Return the provider's name."""
        return kind_label(self.drift.account.kind)

    @property
    def facts(self) -> list[Fact]:
        """Return what differs, or what was found of an unknown machine."""
        found, expected = self.drift.found, self.drift.expected
        names = [name for name in FACT_WORDS if name in found or name in expected]
        return [
            Fact(str(FACT_WORDS[name]), self._text(expected, name), self._text(found, name))
            for name in names
            if found.get(name) or expected.get(name)
        ]

    def _text(self, facts: Mapping[str, Any], name: str) -> str:
        value = facts.get(name)
        if value is None or value == "":
            return ""
        if name == "price_per_hour":
            return price_text(Decimal(str(value)), str(facts.get("currency") or self.drift.currency or "USD"))
        return str(MachineStatus(value).label) if name == "status" and value in MachineStatus.values else str(value)

    @property
    def accept_consequences(self) -> list[str]:
        """Return what accepting it means."""
        if self.drift.kind == DriftKind.PRICE_DIFFERS:
            return [
                _("The provider's price counts from the time at which it was first seen."),
                _("What was billed before keeps its price."),
            ]
        if self.drift.kind == DriftKind.SPEC_DIFFERS:
            return [_("The lease is taken as the machine that was found; what was ordered is not asked for any more.")]
        return [_("Its lease has ended when the machine was missed twice; this takes the line away.")]

    @property
    def adopt_consequences(self) -> list[str]:
        """Return what adopting it means."""
        return [
            _("It becomes a lease: its cost counts here, since it was made as far as the provider tells."),
            _("Nothing is changed on the machine."),
        ]

    @property
    def end_consequences(self) -> list[str]:
        """Return what ending it means."""
        sentences = [
            _("The machine and its disks are deleted at the provider; nothing brings them back."),
            *what_stays(self.drift.account),
        ]
        if self.drift.cost_per_hour is not None:
            hour = price_text(self.drift.cost_per_hour, self.drift.currency)
            sentences.append(_("%(rate)s per hour end once the provider confirms it.") % {"rate": hour})
        return sentences


def read_filter(query: Mapping[str, str]) -> DriftFilter:
    """Return the filter of an address; what it cannot mean is left out."""
    show, kind = query.get("show", ""), query.get("kind", "")
    return DriftFilter(
        show=show if show in SHOWN else "open",
        kind=kind if kind in DriftKind.values else "",
        account=number_of(query.get("account", "")),
    )


def filtered(wanted: DriftFilter) -> QuerySet[Drift]:
    """Return the differences that pass, the newest first."""
    return drift_list(
        now=now(),
        account=wanted.account,
        kind=[wanted.kind] if wanted.kind else [],
        is_open=wanted.show != "settled",
        is_ignored={"open": False, "ignored": True}.get(wanted.show),
    ).order_by("-first_seen_at", "-pk")
