"""Checks of what the panel stands on: Postgres, Valkey, the disk, and the clocks."""

import shutil
from collections.abc import Iterable
from typing import Final

from django.db import connection
from django.utils.translation import gettext as _

from panel.core.clock import now
from panel.core.health import Check, CheckStatus
from panel.core.valkey import valkey
from panel.health.readiness import missing_migrations
from panel.health.words import percent, seconds, size
from panel.settings.environment import DATA_DIR

CONNECTIONS_WARNING_PERCENT: Final = 70.0
CONNECTIONS_CRITICAL_PERCENT: Final = 90.0
MEMORY_WARNING_PERCENT: Final = 75.0
MEMORY_CRITICAL_PERCENT: Final = 90.0
DISK_WARNING_PERCENT: Final = 15.0
DISK_CRITICAL_PERCENT: Final = 5.0
CLOCK_WARNING_SECONDS: Final = 2.0
WANTED_POLICY: Final = "noeviction"


def _above(value: float, warning: float, critical: float) -> CheckStatus:
    if value >= critical:
        return CheckStatus.CRITICAL
    return CheckStatus.WARNING if value >= warning else CheckStatus.OK


def database_checks() -> Iterable[Check]:
    """Connections in use against those there are, migrations, and the size of it all."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FILTER (WHERE backend_type = 'client backend'), current_setting('max_connections')::int"
            " - current_setting('superuser_reserved_connections')::int, pg_database_size(current_database())"
            " FROM pg_stat_activity"
        )
        used, available, database_bytes = cursor.fetchone()
    share = 100.0 * used / max(1, available)
    status = _above(share, CONNECTIONS_WARNING_PERCENT, CONNECTIONS_CRITICAL_PERCENT)
    advice = (
        _("Raise max_connections, put PgBouncer in front, or run fewer processes.") if status != CheckStatus.OK else ""
    )
    value = _("%(used)s of %(available)s") % {"used": used, "available": available}
    limit = _("below %(limit)s") % {"limit": percent(CONNECTIONS_WARNING_PERCENT)}
    yield Check("database_connections", _("Connections to Postgres"), status, value, limit, advice, used)
    yield Check(
        "database_bytes", _("Size of the database"), CheckStatus.OK, size(database_bytes), number=database_bytes
    )
    missing = missing_migrations()
    yield Check(
        "migrations_missing",
        _("Migrations"),
        CheckStatus.CRITICAL if missing else CheckStatus.OK,
        _("%(count)s missing") % {"count": len(missing)} if missing else _("all applied"),
        _("none missing"),
        _("Run: manage.py migrate") if missing else "",
        len(missing),
    )


def valkey_checks() -> Iterable[Check]:
    """Its policy must never throw a waiting task away, and it needs room."""
    memory = valkey().info("memory")
    policy = str(memory.get("maxmemory_policy", ""))
    is_wanted = policy == WANTED_POLICY
    yield Check(
        "valkey_policy",
        _("Valkey when memory is full"),
        CheckStatus.OK if is_wanted else CheckStatus.CRITICAL if memory.get("maxmemory") else CheckStatus.WARNING,
        policy or _("unknown"),
        WANTED_POLICY,
        "" if is_wanted else _("It would throw away waiting tasks and log-ins. Set maxmemory-policy to noeviction."),
    )
    used, limit_bytes = int(memory["used_memory"]), int(memory.get("maxmemory", 0))
    share = 100.0 * used / limit_bytes if limit_bytes else 0.0
    status = _above(share, MEMORY_WARNING_PERCENT, MEMORY_CRITICAL_PERCENT)
    limit = _("below %(limit)s of %(size)s") % {"limit": percent(MEMORY_WARNING_PERCENT), "size": size(limit_bytes)}
    advice = _("Raise maxmemory: when it is reached, tasks are refused.") if status != CheckStatus.OK else ""
    no_limit = _("no limit set")
    yield Check(
        "valkey_memory_bytes",
        _("Memory of Valkey"),
        status,
        size(used),
        limit if limit_bytes else no_limit,
        advice,
        used,
    )


def disk_checks() -> Iterable[Check]:
    """Room on the disk of the data directory, where the embedded Postgres keeps its data."""
    usage = shutil.disk_usage(DATA_DIR)
    free = 100.0 * usage.free / usage.total
    status = CheckStatus.OK
    if free < DISK_WARNING_PERCENT:
        status = CheckStatus.CRITICAL if free < DISK_CRITICAL_PERCENT else CheckStatus.WARNING
    advice = _("Free some room: Postgres stops when the disk is full.") if status != CheckStatus.OK else ""
    value = _("%(size)s free (%(share)s)") % {"size": size(usage.free), "share": percent(free)}
    limit = _("more than %(limit)s free") % {"limit": percent(DISK_WARNING_PERCENT)}
    yield Check("disk_free_bytes", _("Disk of the data directory"), status, value, limit, advice, usage.free)


def clock_checks() -> Iterable[Check]:
    """This process's clock against the database's: times are made on both."""
    before = now()
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        theirs = cursor.fetchone()[0]
    middle = before + (now() - before) / 2
    difference = (middle - theirs).total_seconds()
    is_off = abs(difference) >= CLOCK_WARNING_SECONDS
    yield Check(
        "clock_difference_seconds",
        _("Clock against the database's"),
        CheckStatus.WARNING if is_off else CheckStatus.OK,
        _("%(number)s s apart") % {"number": f"{abs(difference):.1f}"},
        _("below %(limit)s") % {"limit": seconds(CLOCK_WARNING_SECONDS)},
        _("Run a time service (chrony, systemd-timesyncd) on both machines.") if is_off else "",
        difference,
    )
