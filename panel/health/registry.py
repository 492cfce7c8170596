"""Which checks there are, in the order in which people read them."""

from django.utils.translation import gettext as _

from panel.core.health import register
from panel.health.agents import agent_checks
from panel.health.data import live_checks, partition_checks, rollup_checks
from panel.health.deadman import deadman_checks
from panel.health.delivery import delivery_checks
from panel.health.installation import installation_checks
from panel.health.processes import beat_checks, prober_checks, queue_checks, worker_checks
from panel.health.stores import clock_checks, database_checks, disk_checks, valkey_checks


def register_all() -> None:
    """Register every check of the panel; done once, when Django is set up."""
    register("beat", beat_checks, name=lambda: _("Scheduler (beat)"))
    register("workers", worker_checks, name=lambda: _("Workers"))
    register("prober", prober_checks, name=lambda: _("Prober"))
    register("queue", queue_checks, name=lambda: _("Tasks waiting"))
    register("valkey", valkey_checks, name=lambda: _("Valkey"))
    register("database", database_checks, name=lambda: _("Postgres"))
    register("partitions", partition_checks, name=lambda: _("Partitions"))
    register("rollups", rollup_checks, name=lambda: _("Rollups"))
    register("disk", disk_checks, name=lambda: _("Disk of the data directory"))
    register("clock", clock_checks, name=lambda: _("Clock against the database's"))
    register("live", live_checks, name=lambda: _("Live sockets"))
    register("delivery", delivery_checks, name=lambda: _("Notifications"))
    register("agents", agent_checks, name=lambda: _("Agents"))
    register("installation", installation_checks, name=lambda: _("Installation id"))
    register("deadman", deadman_checks, name=lambda: _("Ping to an outside watcher"))
