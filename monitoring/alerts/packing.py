"""States as they stand in the database: JSON without what is at its default."""

from dataclasses import fields
from typing import Any, Final

from monitoring.alerts.conditions.thresholds import Memory
from monitoring.alerts.incident import Incident
from monitoring.alerts.machine import Phase, RuleState
from panel.core.enums import Severity

_SEVERITIES: Final = frozenset({"severity", "told_severity"})


def _packed(value: Any) -> dict[str, Any]:
    found = {}
    for field in fields(value):
        held = getattr(value, field.name)
        if held != field.default:
            found[field.name] = str(held) if isinstance(held, str) else held
    return found


def state_pack(state: RuleState) -> dict[str, Any]:
    """Return a rule's state as JSON."""
    return _packed(state)


def state_read(given: dict[str, Any]) -> RuleState:
    """Return the state again."""
    told = {**given, "phase": Phase(given.get("phase", Phase.INACTIVE))}
    if told.get("severity"):
        told["severity"] = Severity(told["severity"])
    return RuleState(**told)


def memory_pack(memory: Memory) -> dict[str, Any]:
    """Return what a condition remembers as JSON."""
    return _packed(memory)


def memory_read(given: dict[str, Any]) -> Memory:
    """Return it again."""
    told = dict(given)
    for name in {"over", "seen"} & set(told):
        told[name] = tuple((first, last) for first, last in told[name])
    return Memory(**told)


def incident_pack(incident: Incident) -> dict[str, Any]:
    """Return an incident as JSON."""
    return _packed(incident)


def incident_read(given: dict[str, Any]) -> Incident:
    """Return it again."""
    told = dict(given)
    for name in _SEVERITIES & set(told):
        told[name] = Severity(told[name])
    for name in {"reopens", "sent"} & set(told):
        told[name] = tuple(told[name])
    return Incident(**told)
