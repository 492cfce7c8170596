"""One lease in words: what may be done to it and what each act ends and keeps, its terms, its break-even."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import F
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext_lazy

from fleet.enums import LeaseOrigin, LeaseState, OperationKind, Wanted
from fleet.leasing.breakeven import BreakEven
from fleet.models import Lease, ProviderAccount
from fleet.providers.base import Billing, CanOrder, CanReboot, CanStop, HasSnapshots, StopEffect
from fleet.providers.registry import PROVIDERS
from fleet.selectors.leasing import lease_break_even, lease_list
from fleet.services.accounts import account_provider
from frontend.formatting import listed
from frontend.leasing.leases import rows_of
from frontend.leasing.order import stop_sentence
from frontend.money import rates_text, sum_text
from panel.core.errors import NotFound
from panel.core.money import Money

VERBS: Final[Mapping[OperationKind, Promise]] = {
    OperationKind.START: gettext_lazy("Start"),
    OperationKind.STOP: pgettext_lazy("machine", "Stop"),
    OperationKind.REBOOT: gettext_lazy("Restart"),
    OperationKind.SNAPSHOT: gettext_lazy("Save its disk"),
    OperationKind.TERMINATE: gettext_lazy("End"),
}
_MIXINS: Final = {
    OperationKind.START: CanStop,
    OperationKind.STOP: CanStop,
    OperationKind.REBOOT: CanReboot,
    OperationKind.SNAPSHOT: HasSnapshots,
    OperationKind.TERMINATE: CanOrder,
}
DAY_SECONDS: Final = 86_400
HOUR_SECONDS: Final = 3_600
ENOUGH_HOURS: Final = 24  # a comparison of fewer billed hours would say more of their number than of the prices
_RUNNING: Final = frozenset({LeaseState.ACTIVE, LeaseState.BOOTING, LeaseState.UNKNOWN})
_FROM: Final[Mapping[OperationKind, frozenset[LeaseState]]] = {
    OperationKind.START: frozenset({LeaseState.STOPPED, LeaseState.UNKNOWN, LeaseState.PREEMPTED}),
    OperationKind.STOP: _RUNNING,
    OperationKind.REBOOT: _RUNNING,
    OperationKind.SNAPSHOT: _RUNNING | {LeaseState.STOPPED},
    OperationKind.TERMINATE: frozenset(LeaseState),
}


@dataclass(frozen=True, slots=True)
class Act:
    """Something that may be asked for. id: of its dialog. type_name: must be typed first; empty for what can be undone."""

    kind: OperationKind
    id: str
    verb: str
    title: str
    consequences: list[str]
    milder: str = ""
    type_name: str = ""


def lease_found(lease_id: int) -> Lease:
    """Return one lease with its account, server and prices in force. Raises NotFound."""
    lease = lease_list().filter(pk=lease_id).first()
    if lease is None:
        raise NotFound(_("There is no such lease."))
    return lease


def can_be_asked(lease: Lease) -> bool:
    """Say whether the machine can be asked for anything through a provider's API."""
    has_api = lease.account is not None and lease.account.kind in PROVIDERS and lease.account.removed_at is None
    return has_api and lease.origin != LeaseOrigin.TYPED and lease.ended_at is None


def acts_possible(lease: Lease) -> list[OperationKind]:
    """Return what may be asked for in the lease's present state."""
    if not can_be_asked(lease):
        return []
    assert lease.account is not None  # noqa: S101 (see can_be_asked)
    provider, state = PROVIDERS[lease.account.kind], LeaseState(lease.state)
    found = [kind for kind, mixin in _MIXINS.items() if issubclass(provider, mixin) and state in _FROM[kind]]
    if lease.wanted == Wanted.ENDED:
        return [kind for kind in found if kind == OperationKind.TERMINATE]
    return [kind for kind in found if lease.external_id or kind == OperationKind.TERMINATE]


def act_of(lease: Lease, kind: OperationKind, rate: Mapping[str, Money] | None) -> Act:
    """Return an act with what its confirm says."""
    titles = {
        OperationKind.START: _("Start %(name)s?"),
        OperationKind.STOP: _("Stop %(name)s?"),
        OperationKind.REBOOT: _("Restart %(name)s?"),
        OperationKind.SNAPSHOT: _("Save the disk of %(name)s?"),
        OperationKind.TERMINATE: _("End %(name)s for good?"),
    }
    is_end = kind == OperationKind.TERMINATE
    return Act(
        kind=kind,
        id=f"act-{kind}",
        verb=str(VERBS[kind]),
        title=titles[kind] % {"name": lease.title},
        consequences=consequences(lease, kind, rate),
        milder=_milder(lease) if is_end else "",
        type_name=lease.title if is_end else "",
    )


def stop_effect(lease: Lease) -> StopEffect | None:
    """Return what stopping changes on the bill; None where nothing can be asked."""
    if not can_be_asked(lease):
        return None
    assert lease.account is not None  # noqa: S101 (see can_be_asked)
    return account_provider(lease.account).stop_effect(Billing(lease.billing))


def what_stays(account: ProviderAccount | None) -> list[str]:
    """Return what goes on costing at a provider after a machine has ended, in sentences."""
    if account is None or account.kind not in PROVIDERS:
        return []
    provider = PROVIDERS[account.kind]
    saved = [_("Saved disks stay and cost storage at the provider until they are deleted there.")]
    return [
        *([str(provider.end_keeps)] if provider.end_keeps else []),
        *(saved if issubclass(provider, HasSnapshots) else []),
    ]


def _milder(lease: Lease) -> str:
    if OperationKind.STOP in acts_possible(lease):
        return _("Milder: stop it; its disk stays.")
    return ""


def _who_works_there(lease: Lease) -> list[str]:
    if lease.server is None:
        return []
    return [_("Whatever runs on %(server)s ends.") % {"server": lease.server.name}]


def consequences(lease: Lease, kind: OperationKind, rate: Mapping[str, Money] | None) -> list[str]:
    """Return what an act ends and what keeps costing, in sentences."""
    hour = rates_text(rate) if rate else ""
    if kind == OperationKind.TERMINATE:
        return [
            *_who_works_there(lease),
            _("The machine and its disks are deleted; nothing brings them back."),
            *what_stays(lease.account),
            _saved(hour),
        ]
    if kind == OperationKind.STOP:
        effect = stop_effect(lease)
        said = [stop_sentence(effect), str(effect.note)] if effect is not None else []
        now_costs = [_("It costs %(rate)s per hour now.") % {"rate": hour}] if hour else []
        return [*_who_works_there(lease), *now_costs, *said]
    if kind == OperationKind.START:
        return [
            _("It costs its full price from then on."),
            _("A provider may have no machine free; then it stays stopped."),
        ]
    if kind == OperationKind.REBOOT:
        return [*_who_works_there(lease), _("The bill goes on as before; disks stay.")]
    return [_("The saved disk costs storage at the provider until it is deleted there."), _("The machine runs on.")]


def _saved(hour: str) -> str:
    if hour:
        return _("%(rate)s per hour end once the provider confirms it; until then they are billed.") % {"rate": hour}
    return _("It is billed until the provider confirms the end.")


def server_lease(server_id: int, *, now: datetime) -> dict[str, object]:
    """Return what a server's page shows of its open lease, else of its last one. Five queries; one without any lease."""
    lease = lease_list(server=server_id).order_by(F("ended_at").desc(nulls_first=True), "-pk").first()
    if lease is None:
        return {"lease_row": None, "lease_acts": []}
    row = rows_of([lease], now)[0]
    acts = [act_of(lease, kind, row.rate) for kind in acts_possible(lease)]
    return {"lease_row": row, "lease_acts": acts, "lease_key": uuid.uuid4().hex}


def break_even_words(lease: Lease, now: datetime) -> list[str]:
    """Return the comparison of ways of paying with its assumption; empty when there is nothing to compare."""
    found = lease_break_even(lease, at=now)
    if found is None or len(found.choices) < 2:
        return []
    if found.used_hours < ENOUGH_HOURS:
        words = {"used": f"{found.used_hours:,.1f}", "enough": ENOUGH_HOURS}
        return [_("Too early to tell: it was billed for %(used)s hours, and the comparison needs %(enough)s.") % words]
    return [*_saving(lease, found), *_hours(found), _assumption(found)]


def _saving(lease: Lease, found: BreakEven) -> list[str]:
    best = found.choices[0]
    if found.saving is None:
        if best.billing == lease.billing:
            return [_("The present way of paying was the cheapest.")]
        return []
    templates = {
        Billing.MONTHLY: _("Paid by the month it would have cost %(saving)s less."),
        Billing.HOURLY: _("Paid by the hour it would have cost %(saving)s less."),
        Billing.SPOT: _("As a spot machine it would have cost %(saving)s less, and may be taken back at any time."),
    }
    return [templates[best.billing] % {"saving": sum_text(found.saving)}]


def _hours(found: BreakEven) -> list[str]:
    if found.break_even_hours is None:
        return []
    return [
        _("A month is cheaper from %(even)s billed hours on; it was billed for %(used)s.")
        % {"even": f"{found.break_even_hours:,.0f}", "used": f"{found.used_hours:,.0f}"}
    ]


def _assumption(found: BreakEven) -> str:
    costs = listed(f"{Billing(each.billing).label} {sum_text(each.cost)}" for each in found.choices)
    return _(
        "Assumption: the hours billed in full in the last 30 days, at today's prices of the same GPUs in this account: %(costs)s."
    ) % {"costs": costs}


def renewal_words(lease: Lease, now: datetime) -> str:
    """Return when the paid term ends and what happens then, empty without one."""
    if lease.renews_at is None or lease.ended_at is not None:
        return ""
    seconds = (lease.renews_at - now).total_seconds()
    if seconds <= 0:
        return _("The paid term is over.")
    # To the nearest, as “in 5 days” beside it (see frontend.formatting.ago).
    days, hours = int(seconds / DAY_SECONDS + 0.5), int(seconds / HOUR_SECONDS + 0.5)
    left = ngettext("%(days)s day left", "%(days)s days left", days) % {"days": days}
    if seconds < DAY_SECONDS:
        left = ngettext("%(hours)s hour left", "%(hours)s hours left", hours) % {"hours": hours}
    return _("%(left)s, then it renews by itself.") % {"left": left} if lease.is_renewing else left
