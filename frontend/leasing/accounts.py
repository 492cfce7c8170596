"""Accounts at providers as the pages show them: health in words, budget used, what a key may do, and the kinds there are."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from fleet.enums import AccountHealth
from fleet.leasing.exchange import Joint, in_currency
from fleet.models import ProviderAccount
from fleet.providers.base import Provider, abilities
from fleet.providers.registry import PROVIDERS
from fleet.reasons import REASON_WORDS, Reason, Words
from fleet.selectors.costs import accounts_spent, rates_known
from fleet.selectors.leasing import account_list
from frontend.formatting import listed
from panel.core.clock import now
from panel.core.errors import NotFound
from panel.core.money import Money

ABILITY_WORDS: Final[Mapping[str, Promise]] = {
    "list": gettext_lazy("see machines"),
    "offers": gettext_lazy("list offers"),
    "order": gettext_lazy("order and end machines"),
    "stop": gettext_lazy("stop and start"),
    "reboot": gettext_lazy("restart"),
    "snapshots": gettext_lazy("save disks"),
    "spot": gettext_lazy("spot machines"),
    "billing": gettext_lazy("read what was billed"),
}
_ORDER: Final = tuple(ABILITY_WORDS)


@dataclass(frozen=True, slots=True)
class Permission:
    """One thing that a key may do (True), may not (False), or of which nothing is known (None)."""

    word: str
    may: bool | None

    @property
    def tone(self) -> str:
        """Return the tone of its mark."""
        return "unknown" if self.may is None else "ok" if self.may else "warning"

    @property
    def answer(self) -> str:
        """Return the answer in a word."""
        return _("not told beforehand") if self.may is None else _("yes") if self.may else _("no")


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of provider, for people who choose."""

    kind: str
    label: str
    currency: str
    can: str
    docs_url: str
    is_synced: bool


@dataclass(frozen=True, slots=True)
class AccountRow:
    """One account. used_percent: of this month's budget, None without a budget; spent: since the month began.

    used: of it what counts in the budget's currency, by the exchange rates that were entered.
    """

    account: ProviderAccount
    label: str
    spent: Mapping[str, Money]
    used: Joint

    @property
    def used_percent(self) -> int | None:
        """Return how much of the budget is used, at most 999."""
        budget = self.account.monthly_budget
        if budget is None:
            return None
        amount = self.used.total.amount
        return min(999, int(amount * 100 / budget)) if budget else (999 if amount else 0)

    @property
    def bar_percent(self) -> int | None:
        """Return the same for a bar that ends at 100."""
        return min(100, self.used_percent) if self.used_percent is not None else None

    @property
    def budget_tone(self) -> str:
        """Return the tone of the budget's bar: a warning from 80 % on, as planning.py has it."""
        used = self.used_percent or 0
        return "critical" if used >= 100 else "warning" if used >= 80 else ""

    @property
    def sentence(self) -> str:
        """Return why the account is as it is, empty when there is nothing to say."""
        if self.account.is_paused:
            return _("Switched off by a person: its machines go on costing and are not watched.")
        if self.account.health == AccountHealth.NEW:
            return _("It will be asked within seconds.")
        return str(self._words.sentence) if self.account.health_reason else ""

    @property
    def next_step(self) -> str:
        """Return what to do about it."""
        if self.account.is_paused:
            return _("Switch it on again.")
        return str(self._words.next_step) if self.account.health_reason else ""

    @property
    def told(self) -> str:
        """Return the provider's own words about the last failure."""
        return str(self.account.last_error.get("message", "")) if self.account.health_reason else ""

    @property
    def permissions(self) -> list[Permission]:
        """Return what the key may do."""
        told = self.account.permissions
        names = [*(name for name in _ORDER if name in told), *sorted(set(told) - set(_ORDER))]
        return [Permission(str(ABILITY_WORDS.get(name, name)), told[name]) for name in names]

    @property
    def abilities(self) -> frozenset[str]:
        """Return what the provider's API can do."""
        kind = PROVIDERS.get(self.account.kind)
        return abilities(kind) if kind is not None else frozenset()

    @property
    def _words(self) -> Words:
        return REASON_WORDS[Reason(self.account.health_reason)]


def kind_label(kind: str) -> str:
    """Return the name of a kind of provider; the code itself when this version does not know it."""
    return str(PROVIDERS[kind].label) if kind in PROVIDERS else kind


def _can(provider: type[Provider]) -> str:
    found = abilities(provider)
    return listed(str(ABILITY_WORDS[name]) for name in _ORDER if name in found)


def kinds() -> list[Kind]:
    """Return every kind of provider, the simulated one last: it is for trying."""
    found = [
        Kind(kind, str(each.label), each.currency, _can(each), each.docs_url, each.is_synced)
        for kind, each in PROVIDERS.items()
    ]
    return sorted(found, key=lambda each: each.kind == "simulated")


def _rows(accounts: list[ProviderAccount]) -> list[AccountRow]:
    at = now()
    spent = accounts_spent(account_ids=[account.pk for account in accounts], at=at)
    is_mixed = any(set(spent[account.pk]) - {account.currency} for account in accounts)
    rates, day = rates_known(at=at) if is_mixed else [], at.astimezone(UTC).date()
    return [
        AccountRow(
            account,
            kind_label(account.kind),
            spent[account.pk],
            in_currency(spent[account.pk], account.currency, rates, on=day),
        )
        for account in accounts
    ]


def account_rows() -> list[AccountRow]:
    """Return every account. Four queries however many, one more where currencies are mixed."""
    return _rows(list(account_list().order_by("name")))


def account_found(account_id: int) -> AccountRow:
    """Return one account that was not removed. Raises NotFound."""
    account = account_list().filter(pk=account_id).first()
    if account is None:
        raise NotFound(_("There is no such provider account."))
    return _rows([account])[0]
