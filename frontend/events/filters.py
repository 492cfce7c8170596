"""What a viewer wants to see of the stream, as it stands in the address."""

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Literal

from django.http import QueryDict
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from panel.core.clock import now
from panel.core.enums import Severity

Source = Literal["event", "audit"]

PERIODS: Final[dict[str, tuple[Promise, timedelta]]] = {
    "1h": (_("Last hour"), timedelta(hours=1)),
    "24h": (_("Last 24 hours"), timedelta(hours=24)),
    "7d": (_("Last 7 days"), timedelta(days=7)),
    "30d": (_("Last 30 days"), timedelta(days=30)),
}
# Families of kinds and actions by their prefix; a whole kind (`gpu.xid`) is taken too.
FAMILIES: Final[dict[str, Promise]] = {
    "server.": _("Servers"),
    "gpu.": _("GPUs"),
    "gpu.xid": _("GPU faults (XID)"),
    "endpoint.": _("Endpoints"),
    "rollout.": _("Deploys"),
    "replica.": _("Replicas"),
    "gateway.": _("Gateways"),
    "key.": _("Callers' keys"),
    "lease.": _("Leases"),
    "operation.": _("Orders and operations"),
    "account.": _("Provider accounts"),
    "drift.": _("Differences"),
    "job.": _("Jobs of agents"),
    "rate.": _("Exchange rates"),
    "join_token.": _("Join tokens"),
    "agent.": _("Agents"),
    "auth.": _("Log-ins"),
    "session.": _("Sessions"),
    "user.": _("Users"),
    "token.": _("API tokens"),
    "secrets.": _("Secrets"),
    "secret.": _("Secrets of engines"),
}
_KIND: Final = re.compile(r"[a-z_]{1,40}(\.[a-z_]{0,40}){0,3}")
_SUBJECT: Final = re.compile(r"([a-z]{1,32}):(\d{1,18})")


@dataclass(frozen=True, slots=True)
class StreamFilter:
    """Filters; empty means all. An actor leaves only events that they asked for, a severity excludes the audit trail."""

    search: str = ""
    kind: str = ""
    severity: str = ""
    actor: str = ""
    source: str = ""
    subject_kind: str = ""
    subject_id: int | None = None
    period: str = ""
    start: datetime | None = None
    end: datetime | None = None
    sources: frozenset[Source] = field(default=frozenset(("event", "audit")))

    @property
    def is_active(self) -> bool:
        """Say whether anything is filtered, beside what the viewer may not see."""
        texts = (self.search, self.kind, self.severity, self.actor, self.source, self.subject_kind, self.period)
        return any(texts) or self.start is not None or self.end is not None


def _moment(text: str) -> datetime | None:
    """Read a time typed in the viewer's zone (no offset), or with an offset; None when it is none."""
    try:
        value = parse_datetime(text)
    except ValueError:
        return None
    if value is None:
        return None
    return timezone.make_aware(value) if timezone.is_naive(value) else value


def _sources(*, source: str, severity: str, sees_audit: bool) -> frozenset[Source]:
    wanted: set[Source] = {"event", "audit"} if sees_audit else {"event"}
    if source in {"event", "audit"}:
        wanted &= {source}
    if severity:
        wanted -= {"audit"}
    return frozenset(wanted)


def read_filter(params: QueryDict, *, sees_audit: bool) -> StreamFilter:
    """Return the filter that an address names; what cannot be understood is left out."""
    kind, severity = params.get("kind", ""), params.get("severity", "")
    kind = kind if _KIND.fullmatch(kind) else ""
    severity = severity if severity in Severity.values else ""
    subject = _SUBJECT.fullmatch(params.get("subject", ""))
    actor, source, period = params.get("actor", "").strip()[:100], params.get("source", ""), params.get("period", "")
    start, end = _moment(params.get("from", "")), _moment(params.get("to", ""))
    if period in PERIODS and start is None:
        start = now() - PERIODS[period][1]
    return StreamFilter(
        search=params.get("q", "").strip()[:100],
        kind=kind,
        severity=severity,
        actor=actor,
        source=source if source in {"event", "audit"} else "",
        subject_kind=subject[1] if subject else "",
        subject_id=int(subject[2]) if subject else None,
        period=period if period in PERIODS else "",
        start=start,
        end=end,
        sources=_sources(source=source, severity=severity, sees_audit=sees_audit),
    )
