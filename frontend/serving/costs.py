"""What cards cost an hour, in words; a price that nobody told is said, never left out. Pure."""

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from endpoints.costs import HourlyCost
from frontend.money import price_text, rates_text


def cost_text(cost: HourlyCost) -> str:
    """Return an hour's cost in words: "¥9.80 + $1.20 and 1 GPU whose price is not known"."""
    if cost.gpus == 0:
        return _("no GPU")
    unknown = ngettext(
        "%(count)s GPU whose price is not known", "%(count)s GPUs whose price is not known", cost.unknown
    ) % {"count": cost.unknown}
    if not cost.known:
        return unknown
    known = rates_text(cost.known)
    return _("%(known)s and %(unknown)s") % {"known": known, "unknown": unknown} if cost.unknown else known


def change_words(before: HourlyCost, after: HourlyCost) -> str:
    """Return what an hour costs before and after a change."""
    words = {"before": cost_text(before), "after": cost_text(after)}
    if before == after:
        return _("Cost per hour of its GPUs: %(before)s, as before.") % words
    return _("Cost per hour of its GPUs: %(before)s now, %(after)s afterwards.") % words


def difference_words(count: int, before: HourlyCost, after: HourlyCost) -> str:
    """Return what so many replicas more or less cost: "+1 = +¥9.80 per hour"; "" when nothing of it is known."""
    sign = "+" if count > 0 else "−"
    larger, smaller = (after, before) if count > 0 else (before, after)
    change = minus(larger, smaller).known
    if not change:
        return ""
    money = " ".join(f"{sign}{price_text(change[code].amount, code)}" for code in sorted(change))
    return _("%(count)s = %(money)s per hour") % {"count": f"{sign}{abs(count)}", "money": money}


def minus(cost: HourlyCost, part: HourlyCost) -> HourlyCost:
    """Return a cost without a part of it."""
    known = {code: money + part.known[code] * -1 if code in part.known else money for code, money in cost.known.items()}
    left = {code: money for code, money in known.items() if money.amount > 0}
    return HourlyCost(cost.gpus - part.gpus, left, cost.unknown - part.unknown)
