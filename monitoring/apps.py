"""App configuration of monitoring."""

from django.apps import AppConfig


class MonitoringConfig(AppConfig):
    """See the package's docstring."""

    name = "monitoring"
    label = "monitoring"
