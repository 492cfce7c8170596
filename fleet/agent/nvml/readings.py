"""The readings of one card, each of them optional: what it answers, and why the rest is missing."""

from collections.abc import Callable
from typing import Any, Final

import pynvml

from fleet.agent.nvml.errors import (
    NOT_SUPPORTED,
    SETTLED_REASONS,
    START_OVER_CODES,
    CardLostError,
    StartOverError,
    code_of,
    reason_of,
)

# A reading that worked before and says NOT_SUPPORTED is a gap (drivers do that now and then), until it says so this often.
GAPS_UNTIL_SETTLED: Final = 12
# Any other error is told to the panel once it has lasted this many reads.
ERRORS_UNTIL_TOLD: Final = 3


class Readings:
    """Asks one card's calls and remembers its answers until the driver is initialised again.

    fault: what the card said of itself instead of a value, since somebody emptied it. hidden_by_mig: what a card does not
    answer because it is divided into instances just now.
    """

    def __init__(self) -> None:
        self.fault = ""
        self.hidden_by_mig: frozenset[str] = frozenset()
        self._settled: dict[str, str] = {}
        self._failing: dict[str, tuple[int, str]] = {}
        self._worked: set[str] = set()
        self._chosen: dict[str, int] = {}

    def ask(self, name: str, call: Callable[..., Any], *arguments: Any) -> Any:
        """Return what the call answers, None when there is no value.

        Raises CardLostError and StartOverError, after which nothing else is worth asking.
        """
        if name in self._settled:
            return None
        try:
            value = call(*arguments)
        except (pynvml.NVMLError, ValueError) as error:  # ValueError: text that is no text
            self.refused(name, code_of(error))
            return None
        self.answered(name)
        return value

    def ask_newest(self, name: str, *calls: Callable[[], Any]) -> Any:
        """Ask by the first of these calls that library and card have; which one that is, is remembered."""
        if name in self._settled:
            return None
        position = self._chosen.get(name, 0)
        while position + 1 < len(calls):
            try:
                value = calls[position]()
            except pynvml.NVMLError as error:
                if name in self._worked or reason_of(error.value) not in SETTLED_REASONS:
                    self.refused(name, error.value)
                    return None
            else:
                self.answered(name)
                return value
            position += 1
            self._chosen[name] = position
        return self.ask(name, calls[position])

    def chosen(self, name: str) -> int:
        """Return which of the calls of `ask_newest` answers: 0 is the newest."""
        return self._chosen.get(name, 0)

    def answered(self, name: str) -> None:
        """Note that a reading has a value."""
        if name not in self._worked:
            self._worked.add(name)
        if self._failing:
            self._failing.pop(name, None)

    def refused(self, name: str, code: int) -> None:
        """Note why a reading has none. Raises CardLostError and StartOverError."""
        if code == pynvml.NVML_ERROR_GPU_IS_LOST:
            raise CardLostError
        if code in START_OVER_CODES:
            raise StartOverError(code)
        reason = reason_of(code)
        if reason == "reset_required":
            self.fault = reason
        count = self._failing.get(name, (0, ""))[0] + 1
        if reason in SETTLED_REASONS and (name not in self._worked or count >= GAPS_UNTIL_SETTLED):
            self._settled[name] = "mig_mode" if reason == NOT_SUPPORTED and name in self.hidden_by_mig else reason
            self._failing.pop(name, None)
        else:
            self._failing[name] = (count, reason)

    def is_settled(self, name: str) -> bool:
        """Say whether the card is known not to have a reading."""
        return name in self._settled

    def ask_again(self, names: frozenset[str]) -> None:
        """Forget that readings were missing: the card was divided or put together."""
        for name in names:
            self._settled.pop(name, None)
            self._worked.discard(name)

    def missing(self) -> dict[str, str]:
        """Return reading → reason for what the card does not give; errors of the moment and `_internal` names left out."""
        lasting = {
            name: reason
            for name, (count, reason) in self._failing.items()
            if count >= ERRORS_UNTIL_TOLD or reason == "no_permission"
        }
        return {name: reason for name, reason in {**self._settled, **lasting}.items() if not name.startswith("_")}
