"""App configuration of monitoring."""

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


def _make_partitions(**_arguments: Any) -> None:
    """A migrated database takes samples at once, before the first run of the job that makes partitions."""
    from monitoring.services import sample_partitions_make

    sample_partitions_make()


class MonitoringConfig(AppConfig):
    """Keeps partitions ahead of the samples, and registers the live topics of the fleet."""

    name = "monitoring"
    label = "monitoring"

    def ready(self) -> None:
        """Make partitions after every migrate; fill the registry of live topics."""
        from monitoring.live.kinds import register_all

        post_migrate.connect(_make_partitions, sender=self, dispatch_uid="monitoring.partitions")
        register_all()
