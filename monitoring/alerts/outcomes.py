"""What one round found of a rule on a subject, on its way to the state machine."""

from dataclasses import dataclass, field
from typing import Any

from monitoring.alerts.conditions.reading import Reading
from monitoring.alerts.conditions.thresholds import EMPTY, Memory
from monitoring.alerts.definitions import Definition


@dataclass(slots=True)
class Outcome:
    """evidence: JSON-ready figures for people, of a breach; memory: what the condition wants to be given next time."""

    definition: Definition
    reading: Reading
    evidence: dict[str, Any] = field(default_factory=dict)
    memory: Memory = EMPTY
