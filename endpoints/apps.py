"""App configuration of endpoints."""

from django.apps import AppConfig


class EndpointsConfig(AppConfig):
    """Registers downward what agents are told of endpoints, and their live topics."""

    name = "endpoints"
    label = "endpoints"

    def ready(self) -> None:
        """Fill the registries."""
        from endpoints.live import register_all
        from endpoints.services.launching import assignments_part
        from fleet.assignments.parts import register_part

        register_part(assignments_part)
        register_all()
