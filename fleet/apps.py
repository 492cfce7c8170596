"""App configuration of fleet."""

from django.apps import AppConfig


class FleetConfig(AppConfig):
    """See the package's docstring."""

    name = "fleet"
    label = "fleet"
