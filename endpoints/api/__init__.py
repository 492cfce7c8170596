"""The endpoints' part of the API."""

from rest_framework.routers import BaseRouter


def register(router: BaseRouter) -> None:
    """Add endpoints with what belongs to them, replicas, keys, secrets, gateways, and how servers serve."""
    from endpoints.api.endpoints import EndpointViewSet
    from endpoints.api.engines import EngineViewSet
    from endpoints.api.gateways import GatewayViewSet
    from endpoints.api.hosts import ServingViewSet
    from endpoints.api.keys import ApiKeyViewSet, SecretViewSet
    from endpoints.api.replicas import ReplicaViewSet
    from endpoints.api.revisions import RevisionViewSet, RolloutViewSet
    from endpoints.api.sizing import SizingViewSet

    router.register("endpoints", EndpointViewSet, basename="endpoint")
    router.register(r"endpoints/(?P<endpoint_name>[a-z0-9-]+)/revisions", RevisionViewSet, basename="revision")
    router.register(r"endpoints/(?P<endpoint_name>[a-z0-9-]+)/rollouts", RolloutViewSet, basename="rollout")
    router.register("engines", EngineViewSet, basename="engine")
    router.register("sizing", SizingViewSet, basename="sizing")
    router.register("replicas", ReplicaViewSet, basename="replica")
    router.register("endpoint-keys", ApiKeyViewSet, basename="endpoint-key")
    router.register("secrets", SecretViewSet, basename="secret")
    router.register("gateways", GatewayViewSet, basename="gateway")
    router.register("serving", ServingViewSet, basename="serving")
