"""A ping to a watcher outside while the panel is well: when it stops coming, the watcher tells people, not we.

The ping goes from beat through the queue to a worker, so whichever of them is stuck ends it; a critical check ends it too.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

import httpx
import structlog
from django.conf import settings
from django.utils.translation import gettext as _

from panel.core.clock import now
from panel.core.health import Check, CheckStatus, health_checks, worst
from panel.core.valkey import valkey
from panel.health.words import seconds

KEY: Final = "fleetdeck:deadman"
CODE: Final = "deadman_age_seconds"
TIMEOUT_SECONDS: Final = 10.0
SILENT_SECONDS: Final = 180.0

log = structlog.get_logger(__name__)


def deadman_ping() -> bool:
    """Ping the watcher of FLEETDECK_DEADMAN_URL unless something is critical; return whether it took the ping."""
    if not settings.DEADMAN_URL:
        return False
    others = [check for check in health_checks() if check.code != CODE]
    if worst(others) == CheckStatus.CRITICAL:
        log.warning(
            "deadman.withheld", critical=[check.code for check in others if check.status == CheckStatus.CRITICAL]
        )
        return False
    try:
        httpx.get(settings.DEADMAN_URL, timeout=TIMEOUT_SECONDS).raise_for_status()
    except httpx.HTTPError as error:
        log.warning("deadman.failed", error=type(error).__name__)  # its text has the address, which is a secret
        return False
    valkey().set(KEY, str(now().timestamp()))
    return True


def deadman_checks() -> Iterable[Check]:
    """When the watcher last took a ping."""
    name = _("Ping to an outside watcher")
    if not settings.DEADMAN_URL:
        yield Check(CODE, name, CheckStatus.OK, _("not set up"), _("optional: FLEETDECK_DEADMAN_URL"))
        return
    limit = _("below %(limit)s") % {"limit": seconds(SILENT_SECONDS)}
    told = valkey().get(KEY)
    if told is None:
        yield Check(CODE, name, CheckStatus.WARNING, _("none yet"), limit, _("Look for deadman in the worker's log."))
        return
    age = (now() - datetime.fromtimestamp(float(told), tz=UTC)).total_seconds()
    is_late = age > SILENT_SECONDS
    status = CheckStatus.WARNING if is_late else CheckStatus.OK
    advice = _("The watcher did not answer, or a critical check held the ping back.") if is_late else ""
    yield Check(CODE, name, status, _("%(age)s ago") % {"age": seconds(age)}, limit, advice, age)
