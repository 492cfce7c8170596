"""App configuration of monitoring."""

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


def _make_partitions(**_arguments: Any) -> None:
    """A migrated database takes samples at once, before the first run of the job that makes partitions."""
    from monitoring.alerts.services import rules_ensure
    from monitoring.engines.keeping import histogram_partitions_make
    from monitoring.probing.services import result_partitions_make
    from monitoring.services import sample_partitions_make
    from panel.core.clock import now

    sample_partitions_make()
    result_partitions_make(at=now())
    rules_ensure(at=now())
    histogram_partitions_make(at=now())


class MonitoringConfig(AppConfig):
    """Keeps partitions ahead of what is stored, and registers live topics and what agents are told of probes."""

    name = "monitoring"
    label = "monitoring"

    def ready(self) -> None:
        """Make partitions after every migrate; fill the registry of live topics."""
        from fleet.assignments.parts import register_part
        from monitoring.alerts import registering as alerts
        from monitoring.delivery.notices import register as register_tests
        from monitoring.diagnosing.wiring import register_all as register_diagnoses
        from monitoring.golive_runs.wiring import register_all as register_golive
        from monitoring.live.kinds import register_all
        from monitoring.probing.targets import assignments_part

        register_tests()
        post_migrate.connect(_make_partitions, sender=self, dispatch_uid="monitoring.partitions")
        register_all()
        register_diagnoses()
        register_golive()
        register_part(assignments_part)
        alerts.register_all()
