"""App configuration of the project itself."""

from django.apps import AppConfig


class PanelConfig(AppConfig):
    """Loads the Celery app wherever Django is set up, so that a task reaches our broker, and the checks of Self-health."""

    name = "panel"

    def ready(self) -> None:
        """Make our Celery app the current one; register the checks."""
        import panel.celery  # noqa: F401  # it registers itself by being imported
        from panel.health.registry import register_all

        register_all()
