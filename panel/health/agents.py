"""Checks of the agents: their versions, their clocks, what they could not deliver."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from django.conf import settings
from django.db.models import Sum
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from fleet.enums import ServerState
from fleet.models import Agent, Server
from panel.core.health import Check, CheckStatus
from panel.health.words import phrases, seconds, things

SKEW_WARNING_SECONDS: Final = 5.0
NAMES_SHOWN: Final = 5


def names(values: Iterable[str]) -> str:
    """Return the first few names, and how many more there are."""
    everything = list(values)
    shown = things(everything[:NAMES_SHOWN])
    more = len(everything) - NAMES_SHOWN
    return shown if more <= 0 else _("%(names)s and %(count)s more") % {"names": shown, "count": more}


def agent_checks() -> Iterable[Check]:
    """Every agent speaks, runs the panel's version, has the right time and lost nothing."""
    agents = list(
        Agent.objects.filter(server__retired_at=None, revoked_at=None)
        .order_by("server__name")
        .values_list("server__name", "version", "clock_skew_seconds")
    )
    yield _silent_check(len(agents))
    yield _version_check([(name, version) for name, version, _skew in agents])
    yield _skew_check({name: skew for name, _version, skew in agents if skew is not None})
    yield _lost_check()


def _silent_check(total: int) -> Check:
    silent = list(
        Server.objects.filter(retired_at=None, state=ServerState.NOT_REPORTING)
        .order_by("name")
        .values_list("name", flat=True)
    )
    value = _("%(count)s of %(total)s silent") % {"count": len(silent), "total": total}
    advice = _("Look at: %(names)s") % {"names": names(silent)} if silent else ""
    status = CheckStatus.WARNING if silent else CheckStatus.OK
    return Check("agents_silent", _("Agents"), status, value, _("none silent"), advice, len(silent))


def _version_check(agents: list[tuple[str, str]]) -> Check:
    versions = Counter(version or _("unknown") for _name, version in agents)
    others = [name for name, version in agents if version != settings.VERSION]
    value = things(f"{version} × {count}" for version, count in versions.most_common()) or _("no agents")
    advice = ""
    if others:
        advice = _("Run the install line again on: %(names)s") % {"names": names(others)}
    limit = _("the panel's version, %(version)s") % {"version": settings.VERSION}
    status = CheckStatus.WARNING if others else CheckStatus.OK
    return Check("agents_outdated", _("Versions of the agents"), status, value, limit, advice, len(others))


def _skew_check(skews: dict[str, float]) -> Check:
    wrong = [name for name, skew in skews.items() if abs(skew) >= SKEW_WARNING_SECONDS]
    worst = max((abs(skew) for skew in skews.values()), default=0.0)
    value = _("at most %(skew)s apart") % {"skew": seconds(worst)} if skews else _("no agents")
    limit = _("below %(limit)s") % {"limit": seconds(SKEW_WARNING_SECONDS)}
    advice = _("Times are corrected meanwhile. Set the clock on: %(names)s") % {"names": names(wrong)} if wrong else ""
    status = CheckStatus.WARNING if wrong else CheckStatus.OK
    return Check("agents_skew_seconds", _("Clocks of the agents"), status, value, limit, advice, worst)


def _lost_check() -> Check:
    totals = Agent.objects.filter(server__retired_at=None, revoked_at=None).aggregate(
        spooled=Sum("spooled_batches"), lost=Sum("lost_samples")
    )
    spooled, lost = totals["spooled"] or 0, totals["lost"] or 0
    waiting = ngettext("%(count)s report waits on the agents", "%(count)s reports wait on the agents", spooled)
    value = phrases(waiting % {"count": spooled}, _("%(count)s samples lost") % {"count": lost})
    return Check("agents_lost_samples", _("Undelivered readings"), CheckStatus.OK, value, number=lost)
