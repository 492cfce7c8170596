"""Checks of delivery: the dispatcher works, nothing waits for long, nothing is undeliverable."""

from collections.abc import Iterable
from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from monitoring.delivery.dispatcher import NAME
from monitoring.delivery.heartbeats import heartbeat_age_seconds
from monitoring.delivery.selectors import delivery_trouble, outbox_waiting
from panel.core.clock import now
from panel.core.health import Check, CheckStatus
from panel.health.words import phrases, seconds

SILENT_WARNING_SECONDS: Final = 90.0
SILENT_CRITICAL_SECONDS: Final = 180.0
WAIT_WARNING_SECONDS: Final = 600.0
WAIT_CRITICAL_SECONDS: Final = 1800.0


def _grade(value: float, warning: float, critical: float) -> CheckStatus:
    if value >= critical:
        return CheckStatus.CRITICAL
    return CheckStatus.WARNING if value >= warning else CheckStatus.OK


def delivery_checks() -> Iterable[Check]:
    """The dispatcher's last round, the age of what waits, and what could not be delivered."""
    yield _dispatcher()
    at = now()
    name, limit = _("Notifications waiting"), _("the oldest below %(limit)s") % {"limit": seconds(WAIT_WARNING_SECONDS)}
    waiting = outbox_waiting(at=at)
    age = (at - waiting.oldest_at).total_seconds() if waiting.oldest_at is not None else 0.0
    status = _grade(age, WAIT_WARNING_SECONDS, WAIT_CRITICAL_SECONDS)
    value = ngettext("%(count)s waits", "%(count)s wait", waiting.queued) % {"count": waiting.queued}
    if waiting.oldest_at is not None:
        value = phrases(value, _("the oldest for %(age)s") % {"age": seconds(age)})
    advice = _("See the channel's last attempt on the Notifications page.") if status != CheckStatus.OK else ""
    yield Check("outbox_oldest_seconds", name, status, value, limit, advice, age)
    dead = delivery_trouble(at=at).dead
    yield Check(
        "outbox_dead",
        _("Undeliverable notifications"),
        CheckStatus.WARNING if dead else CheckStatus.OK,
        str(dead),
        _("none"),
        _("Repair the channel, send them again or dismiss them, on the Notifications page.") if dead else "",
        dead,
    )


def _dispatcher() -> Check:
    name = _("Dispatcher of notifications")
    limit = _("a round within %(limit)s") % {"limit": seconds(SILENT_WARNING_SECONDS)}
    age = heartbeat_age_seconds(NAME, at=now())
    if age is None:
        advice = _("Start beat and a worker: without them no mail is sent.")
        return Check("dispatcher_age_seconds", name, CheckStatus.WARNING, _("never seen"), limit, advice)
    status = _grade(age, SILENT_WARNING_SECONDS, SILENT_CRITICAL_SECONDS)
    advice = _("Beat, broker or worker is stuck: no mail is sent meanwhile.") if status != CheckStatus.OK else ""
    return Check(
        "dispatcher_age_seconds", name, status, _("last round %(age)s ago") % {"age": seconds(age)}, limit, advice, age
    )
