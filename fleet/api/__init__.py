"""The fleet's part of the API."""

from rest_framework.routers import BaseRouter


def register(router: BaseRouter) -> None:
    """Add servers, agents, jobs, join tokens and faults; GPUs, which show their newest readings, are monitoring's."""
    from fleet.api import leasing
    from fleet.api.agents import AgentViewSet
    from fleet.api.faults import FaultViewSet
    from fleet.api.jobs import AcceptanceViewSet, JobViewSet
    from fleet.api.join_tokens import JoinTokenViewSet
    from fleet.api.servers import ServerViewSet

    router.register("servers", ServerViewSet, basename="server")
    router.register("agents", AgentViewSet, basename="agent")
    router.register("join-tokens", JoinTokenViewSet, basename="join-token")
    router.register(r"servers/(?P<server_pk>\d+)/acceptance", AcceptanceViewSet, basename="acceptance")
    router.register("jobs", JobViewSet, basename="job")
    router.register("faults", FaultViewSet, basename="fault")
    leasing.register(router)
