"""What a diagnosis says to people: verdict, next step, what was missing, what would change it. In the language in force."""

from collections.abc import Mapping
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from monitoring.diagnosis.enums import Level, Limit, Scope, Side, Verdict
from monitoring.diagnosis.host import IDLE_SM
from monitoring.diagnosis.report import Action, Change, ChangeKind, Diagnosis, Parameter
from monitoring.diagnosis.templates import ACTIONS, CHANGES, LIMITS, PHASES, VERDICTS, WHY

LEVELS: Final[Mapping[Level, str | Promise]] = {
    Level.HIGH: gettext_lazy("sure"),
    Level.MEDIUM: gettext_lazy("fairly sure"),
    Level.LOW: gettext_lazy("not sure"),
}
_SHARES: Final = frozenset(
    {
        ChangeKind.ERRORS_BELOW,
        ChangeKind.LOSS_BELOW,
        ChangeKind.SHARE_BELOW,
        ChangeKind.SHARE_ABOVE,
        ChangeKind.THROTTLED_BELOW,
        ChangeKind.QUEUE_BELOW,
        ChangeKind.PROMPT_BELOW,
        ChangeKind.PROMPT_ABOVE,
        ChangeKind.DECODE_BELOW,
        ChangeKind.CARD_ABOVE,
    }
)


def verdict_name(verdict: Verdict) -> str:
    """Return a verdict in a word or two."""
    return str(VERDICTS[verdict])


def level_name(level: Level) -> str:
    """Return how sure a verdict is, in a word or two."""
    return str(LEVELS[level])


def why(found: Diagnosis) -> str:
    """Return the verdict as one sentence with its numbers."""
    numbers = found.numbers
    values = {name: _percent(value) if _is_share(name) else _plain(value) for name, value in numbers.items()}
    values["open_ms"] = _plain(_sum(numbers, "tcp_ms", "tls_ms"))
    values["parts"] = _("; ").join(verdict_name(verdict) for verdict in found.also)
    values |= {name: _parameter(name, value) for name, value in found.action.parameters.items()}
    return str(WHY[_variant(found)]) % values


def next_step(action: Action) -> str:
    """Return the one next step as a sentence."""
    values = {name: _parameter(name, value) for name, value in action.parameters.items()}
    told = f"{action.kind}_ms" if "ms" in values and f"{action.kind}_ms" in ACTIONS else action.kind.value
    return str(ACTIONS[told]) % values


def what_would_change_it(change: Change) -> str:
    """Return one observation that would lead to another verdict, with where it is now."""
    write = _percent if change.kind in _SHARES else _plain
    return str(CHANGES[change.kind]) % {"now": write(change.now), "limit": write(change.limit)}


def what_was_missing(limit: Limit) -> str:
    """Return why a verdict is less sure than it could be."""
    return str(LIMITS[limit])


def who_is_affected(found: Diagnosis) -> str:
    """Return what comparing places says; "" where there is nothing to compare."""
    if found.scope is Scope.UNKNOWN:
        return ""
    if found.scope is Scope.ALL:
        if found.side is Side.NETWORK:
            return _("Every place is affected: look at the server's own line, or its region.")
        return _("Every place is affected.")
    if found.scope is Scope.ONE:
        return _("Only %(vantage)s is affected: look at the route from there.") % {"vantage": found.vantage}
    return _("Some places are affected, and %(vantage)s most.") % {"vantage": found.vantage}


def _variant(found: Diagnosis) -> str:
    numbers = found.numbers
    if found.verdict is Verdict.HANDSHAKE and numbers.get("closed_connections"):
        return "handshake_closed"
    if found.verdict is Verdict.FIXED_OVERHEAD and numbers.get("intercept_ms") is None and _is_idle(numbers):
        return "fixed_overhead_idle"
    has = {
        Verdict.QUEUEING: numbers.get("queue_share") is not None,
        Verdict.NOT_ENOUGH_DATA: found.side is not Side.HOST,
        Verdict.FIXED_OVERHEAD: numbers.get("intercept_ms") is not None,
        Verdict.PREFILL_BOUND: numbers.get("prefill_share") is not None,
        Verdict.CPU: numbers.get("sm_active") is not None,
        Verdict.COLD_START: numbers.get("outside_p50_ms") is not None,
    }
    return found.verdict.value if has.get(found.verdict, True) else f"{found.verdict}_else"


def _is_idle(numbers: Mapping[str, float | None]) -> bool:
    active = numbers.get("sm_active")
    return active is not None and active < IDLE_SM


def _parameter(name: str, value: Parameter) -> str:
    if name == "phase":
        return str(PHASES.get(str(value), value))
    return value if isinstance(value, str) else _plain(value)


def _is_share(name: str) -> bool:
    return name.endswith(("_share", "_active")) or name in {"cpu", "busiest_core", "power_of_limit"}


def _sum(numbers: Mapping[str, float | None], *names: str) -> float | None:
    found = [numbers.get(name) for name in names]
    return sum(value for value in found if value is not None) if any(value is not None for value in found) else None


def _plain(value: float | None) -> str:
    """Return a number as people write it: three digits that count, "?" for what is not known."""
    if value is None:
        return "?"
    return f"{value:.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


def _percent(value: float | None) -> str:
    return "?" if value is None else _plain(value * 100)
