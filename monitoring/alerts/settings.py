"""What people may set of a rule, checked: names, ranges, and that the parts fit together."""

from collections.abc import Mapping
from typing import Any, Final

from django.utils.translation import gettext as _

from monitoring.alerts.conditions.thresholds import Operator
from monitoring.alerts.enums import RuleKind
from monitoring.alerts.series import series_known
from panel.core.errors import InvalidInput

DAY: Final = 86_400.0
# name: (lowest, highest)
NUMBERS: Final[Mapping[str, tuple[float, float]]] = {
    "limit_ms": (0.001, 3_600_000.0),
    "limit": (-1e15, 1e15),
    "clear": (-1e15, 1e15),
    "share": (0.001, 1.0),
    "clear_share": (0.0, 1.0),
    "window_seconds": (60.0, DAY),
    "stale_seconds": (10.0, DAY),
    "samples": (1, 10_000),
    "for_seconds": (0.0, 7 * DAY),
    "clear_seconds": (0.0, 7 * DAY),
}
NO_DATA: Final = ("freeze", "alert")
_HOLDING: Final = frozenset({"for_seconds", "clear_seconds", "is_digest", "no_data"})
ALLOWED: Final[Mapping[str, frozenset[str]]] = {
    RuleKind.COUNT: frozenset({"limit_ms", "is_digest"}),
    RuleKind.DOWN: frozenset({"is_digest"}),
    RuleKind.SILENT: frozenset({"is_digest"}),
    RuleKind.STATE: _HOLDING - {"no_data"},
    RuleKind.THRESHOLD: _HOLDING
    | {"series", "operator", "limit", "clear", "share", "clear_share", "window_seconds", "stale_seconds", "samples"},
}


def settings_checked(kind: str, given: Mapping[str, Any], *, is_builtin: bool) -> dict[str, Any]:
    """Return settings as they are kept. Raises InvalidInput that names the setting and what would do."""
    allowed = ALLOWED[kind] - ({"series", "operator"} if is_builtin else set())
    unknown = sorted(set(given) - allowed)
    if unknown:
        raise InvalidInput(
            _("This rule has no such setting: %(names)s. It has: %(known)s.")
            % {"names": ", ".join(unknown), "known": ", ".join(sorted(allowed))},
            field="settings",
        )
    return {name: _one(name, value) for name, value in given.items() if value is not None}


def _one(name: str, value: Any) -> Any:
    if name in NUMBERS:
        low, high = NUMBERS[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise InvalidInput(
                _("`%(name)s` is a number from %(low)s to %(high)s.")
                % {"name": name, "low": f"{low:g}", "high": f"{high:g}"},
                field=name,
            )
        return value
    if name == "operator" and value not in list(Operator):
        raise InvalidInput(_("It is one of: %(names)s") % {"names": ", ".join(Operator)}, field=name)
    if name == "no_data" and value not in NO_DATA:
        raise InvalidInput(_("It is one of: %(names)s") % {"names": ", ".join(NO_DATA)}, field=name)
    if name == "series" and value not in series_known():
        raise InvalidInput(_("There is no such series: %(name)s") % {"name": value}, field=name)
    if name == "is_digest" and not isinstance(value, bool):
        raise InvalidInput(_("`is_digest` is true or false."), field=name)
    return value


def threshold_checked(settings: Mapping[str, Any]) -> None:
    """Make sure that a threshold rule of people's own is whole. Raises InvalidInput."""
    if "series" not in settings or "operator" not in settings:
        raise InvalidInput(_("A rule needs a series and an operator."), field="settings")
    operator = settings["operator"]
    if operator in {Operator.ABOVE, Operator.BELOW, Operator.SHARE} and "limit" not in settings:
        raise InvalidInput(_("A rule that compares needs a limit."), field="limit")
    if operator == Operator.SHARE and "share" not in settings:
        raise InvalidInput(_("Say for which share of the time it must be over the limit."), field="share")
    clear, limit = settings.get("clear"), settings.get("limit")
    if clear is not None and limit is not None:
        if operator == Operator.ABOVE and clear > limit:
            raise InvalidInput(
                _("It can not be over above the limit: the clear level is at most the limit."), field="clear"
            )
        if operator == Operator.BELOW and clear < limit:
            raise InvalidInput(
                _("It can not be over below the limit: the clear level is at least the limit."), field="clear"
            )
