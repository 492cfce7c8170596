"""Endpoints and what serves them."""

from endpoints.models.endpoints import Endpoint, Revision, Rollout, RoutingClock
from endpoints.models.gateways import EndpointTraffic, Gateway
from endpoints.models.hosts import ServingHost
from endpoints.models.keys import ApiKey, Secret
from endpoints.models.replicas import Replica, ReplicaGpu, ReplicaLog

__all__ = [
    "ApiKey",
    "Endpoint",
    "EndpointTraffic",
    "Gateway",
    "Replica",
    "ReplicaGpu",
    "ReplicaLog",
    "Revision",
    "Rollout",
    "RoutingClock",
    "Secret",
    "ServingHost",
]
