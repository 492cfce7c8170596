"""What the panel checks about itself, as one list. The parts register their checks here; pages, API and metrics read it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import structlog
from django.db import DatabaseError, models
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from redis.exceptions import RedisError

log = structlog.get_logger(__name__)


class CheckStatus(models.TextChoices):
    """How a check came out."""

    OK = "ok", gettext_lazy("OK")
    WARNING = "warning", gettext_lazy("Warning")
    CRITICAL = "critical", gettext_lazy("Critical")
    UNKNOWN = "unknown", gettext_lazy("Unknown")


@dataclass(frozen=True, slots=True)
class Check:
    """One thing checked. code: stable, for programs. name, value, limit and advice: for people, in their language.

    limit: what the value is held against. advice: what to do; empty when all is well. number: the value for programs,
    in the unit that the code's last word names, or None.
    """

    code: str
    name: str
    status: CheckStatus
    value: str
    limit: str = ""
    advice: str = ""
    number: float | None = None


Checker = Callable[[], Iterable[Check]]
_checkers: Final[dict[str, tuple[Checker, Callable[[], str]]]] = {}
ORDER: Final = {CheckStatus.CRITICAL: 0, CheckStatus.WARNING: 1, CheckStatus.UNKNOWN: 2, CheckStatus.OK: 3}


def register(code: str, checker: Checker, *, name: Callable[[], str]) -> None:
    """Add a checker. name: what to call it when it cannot be run, in the reader's language."""
    _checkers[code] = (checker, name)


def health_checks() -> list[Check]:
    """Run every check, in the order of registration. One that cannot be run is unknown and says why; none raises."""
    found: list[Check] = []
    for code, (checker, name) in _checkers.items():
        try:
            found.extend(checker())
        except RedisError as error:
            found.append(_unknown(code, name(), _("Valkey does not answer."), error))
        except DatabaseError as error:
            found.append(_unknown(code, name(), _("The database does not answer, or refuses the question."), error))
    return found


def _unknown(code: str, name: str, advice: str, error: Exception) -> Check:
    log.warning("health.check_failed", check=code, error=str(error))
    return Check(code=code, name=name, status=CheckStatus.UNKNOWN, value=_("unknown"), advice=advice)


def worst(checks: Iterable[Check]) -> CheckStatus:
    """Return the worst status among checks; ok when there are none."""
    return min((check.status for check in checks), key=ORDER.__getitem__, default=CheckStatus.OK)
