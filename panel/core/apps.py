"""App configuration of panel.core."""

from django.apps import AppConfig


class CoreConfig(AppConfig):
    """Shared words and tools."""

    name = "panel.core"
    label = "core"
