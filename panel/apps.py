"""App configuration of the project itself."""

from django.apps import AppConfig


class PanelConfig(AppConfig):
    """Loads the Celery app in every process that sets Django up: a task sent from anywhere reaches our broker."""

    name = "panel"

    def ready(self) -> None:
        """Make our Celery app the current one."""
        import panel.celery  # noqa: F401  # it registers itself by being imported
