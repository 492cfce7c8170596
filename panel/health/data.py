"""Checks of the data's way: partitions for the samples, rollups, sockets of the browsers."""

from collections.abc import Iterable
from datetime import date
from typing import Final

from django.utils.translation import gettext as _

from monitoring.live.counters import KEY_PREFIX
from monitoring.models import DirtyHour
from monitoring.store.progress import progress_of
from monitoring.store.tables import FIVE_MINUTES, KINDS
from panel.core.clock import now
from panel.core.health import Check, CheckStatus
from panel.core.partitions import PartitionState, partition_state
from panel.core.valkey import valkey
from panel.health.words import seconds, size

PARTITIONS_AHEAD: Final = 3
LAG_WARNING_SECONDS: Final = 900.0
LAG_CRITICAL_SECONDS: Final = 3600.0


def partition_checks() -> Iterable[Check]:
    """Samples of the coming days have a place to go; what is kept, and how big it is."""
    today = now().date()
    for kind in KINDS:
        state = partition_state(kind.samples, today=today)
        yield _partition_check(state, today)


def _partition_check(state: PartitionState, today: date) -> Check:
    value = _("%(ahead)s days ahead; %(count)s kept since %(oldest)s, %(size)s") % {
        "ahead": state.ahead,
        "count": state.count,
        "oldest": state.oldest or _("never"),
        "size": size(state.size_bytes),
    }
    is_enough = state.ahead >= PARTITIONS_AHEAD
    has_today = state.oldest is not None and state.newest is not None and state.oldest <= today <= state.newest
    status = CheckStatus.OK if is_enough else CheckStatus.WARNING if has_today else CheckStatus.CRITICAL
    advice = (
        "" if is_enough else _("The job that makes them did not run: see the worker's log, and that beat is alive.")
    )
    limit = _("at least %(limit)s days ahead") % {"limit": PARTITIONS_AHEAD}
    name = _("Partitions of %(table)s") % {"table": state.table}
    return Check(f"partitions_ahead_{state.table}", name, status, value, limit, advice, state.ahead)


def rollup_checks() -> Iterable[Check]:
    """How far behind the rollups are, which charts beyond the last hour read, and how much late data waits."""
    for kind in KINDS:
        name = _("Rollups of %(table)s") % {"table": kind.samples.name}
        code = f"rollup_lag_{kind.name}_seconds"
        until_ms = progress_of(kind, str(FIVE_MINUTES))
        limit = _("below %(limit)s") % {"limit": seconds(LAG_WARNING_SECONDS)}
        if until_ms is None:
            yield Check(code, name, CheckStatus.OK, _("none yet"), limit)
            continue
        lag = max(0.0, now().timestamp() - until_ms / 1000)
        late = DirtyHour.objects.filter(kind=kind.code).count()
        value = _("%(lag)s behind; %(late)s late hours wait") % {"lag": seconds(lag), "late": late}
        status = CheckStatus.OK
        if lag >= LAG_WARNING_SECONDS:
            status = CheckStatus.CRITICAL if lag >= LAG_CRITICAL_SECONDS else CheckStatus.WARNING
        advice = (
            "" if status == CheckStatus.OK else _("The job that makes them fails or is stuck: see the worker's log.")
        )
        yield Check(code, name, status, value, limit, advice, lag)


def live_counters() -> list[dict[str, int]]:
    """Return the counters of every web process that has told of itself within half a minute. Raises RedisError."""
    client = valkey()
    found = []
    for key in client.scan_iter(match=KEY_PREFIX + "*", count=500):
        counters = {str(name): int(value) for name, value in client.hgetall(key).items() if str(value).isdigit()}
        if counters:
            found.append(counters)
    return found


def live_checks() -> Iterable[Check]:
    """Open sockets, and how much was merged for browsers that read too slowly. Merging loses nothing that is newest."""
    counters = live_counters()
    sockets = sum(one.get("sockets", 0) for one in counters)
    delivered = sum(one.get("delivered", 0) for one in counters)
    merged = sum(one.get("merged", 0) for one in counters)
    value = _(
        "%(sockets)s open in %(processes)s processes; %(delivered)s frames sent, %(merged)s merged for slow readers"
    ) % {
        "sockets": sockets,
        "processes": len(counters),
        "delivered": delivered,
        "merged": merged,
    }
    yield Check("live_sockets", _("Live sockets"), CheckStatus.OK, value, number=sockets)
    resyncs = sum(one.get("resyncs", 0) for one in counters)
    yield Check("live_resyncs", _("Live resynchronisations"), CheckStatus.OK, str(resyncs), number=resyncs)
