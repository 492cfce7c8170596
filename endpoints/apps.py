"""App configuration of endpoints."""

from django.apps import AppConfig


class EndpointsConfig(AppConfig):
    """Registers downward what agents are told of endpoints, and their live topics."""

    name = "endpoints"
    label = "endpoints"

    def ready(self) -> None:
        """Fill the registries."""
        from endpoints import alerting
        from endpoints.engine_figures import replicas_told_of
        from endpoints.live import register_all
        from endpoints.selectors import replicas_on
        from endpoints.services.diagnosing import register_all as register_diagnoses
        from endpoints.services.golive import register_all as register_golive
        from endpoints.services.launching import assignments_part
        from fleet.assignments.parts import register_part
        from monitoring.ingest.owners import register_lookup
        from monitoring.waste.engines import register_engines

        register_diagnoses()
        register_golive()
        register_part(assignments_part)
        register_lookup(replicas_told_of)
        register_engines(replicas_on)
        register_all()
        alerting.register_all()
