"""What a condition found at one moment, before anything is remembered of the moments before."""

from dataclasses import dataclass

from panel.core.enums import Severity


@dataclass(frozen=True, slots=True)
class Reading:
    """is_breach: it would begin to fire; is_clear: it would stop. Between the two limits neither holds, and what was stays.

    has_data: there is enough to judge by; without it neither counts. severity: where the condition itself decides it.
    """

    is_breach: bool = False
    is_clear: bool = False
    has_data: bool = True
    severity: Severity | None = None


NO_DATA = Reading(has_data=False)
QUIET = Reading(is_clear=True)
