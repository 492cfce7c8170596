"""App configuration of monitoring."""

from django.apps import AppConfig


class MonitoringConfig(AppConfig):
    """Registers the live topics of the fleet when Django is ready."""

    name = "monitoring"
    label = "monitoring"

    def ready(self) -> None:
        """Fill the registry of live topics."""
        from monitoring.live.kinds import register_all

        register_all()
