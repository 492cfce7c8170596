"""App configuration of endpoints."""

from django.apps import AppConfig


class EndpointsConfig(AppConfig):
    """See the package's docstring."""

    name = "endpoints"
    label = "endpoints"
