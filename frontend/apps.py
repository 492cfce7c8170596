"""App configuration of frontend."""

from django.apps import AppConfig


class FrontendConfig(AppConfig):
    """See the package's docstring."""

    name = "frontend"
    label = "frontend"
