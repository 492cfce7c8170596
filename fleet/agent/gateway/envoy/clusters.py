"""Endpoints as Envoy's clusters (CDS) and their replicas (EDS), with the settings that lost no request when measured.

Where each figure comes from stands in docs/gateway.md.
"""

from collections.abc import Sequence
from typing import Final

from fleet.agent.gateway.envoy.layout import Config, eds_path, typed, watched
from fleet.agent.orders import Route, Upstream

CONNECT_SECONDS: Final = 2.0
CHECK_SECONDS: Final = 0.5
CHECK_TIMEOUT_SECONDS: Final = 0.3
CHECKS_IN_A_ROW: Final = 2
# Replicas of an endpoint that nobody calls are looked at this often: thousands of them would keep Envoy's main thread busy.
IDLE_CHECK_SECONDS: Final = 5.0
# Engines on uvicorn close a kept connection after 5 s; a request that is sent in that moment would be lost.
KEPT_CONNECTION_SECONDS: Final = 4.0
UNLIMITED: Final = 1_000_000


def seconds(value: float) -> str:
    """Return a duration as Envoy writes it."""
    return f"{value:.3f}s"


def replicas(route: Route, upstreams: Sequence[Upstream]) -> Config:
    """Return an endpoint's EDS resource. upstreams: with addresses that are numbers."""
    return typed(
        "envoy.config.endpoint.v3.ClusterLoadAssignment",
        cluster_name=route.name,
        endpoints=[{"lb_endpoints": [_replica(upstream) for upstream in upstreams]}],
    )


def _replica(upstream: Upstream) -> Config:
    facts: Config = {"replica": upstream.replica}
    if upstream.slots is not None:
        facts["slots"] = upstream.slots
    return {
        "endpoint": {"address": {"socket_address": {"address": upstream.address, "port_value": upstream.port}}},
        "metadata": {"filter_metadata": {"fleetdeck": facts}},
    }


def cluster(route: Route, inline: Config | None = None) -> Config:
    """Return an endpoint's cluster. inline: its replicas, where they cannot have a watched file of their own."""
    kind: Config = (
        {"type": "EDS", "eds_cluster_config": {"eds_config": watched(eds_path(route.name))}}
        if inline is None
        else {"type": "STATIC", "load_assignment": {key: inline[key] for key in ("cluster_name", "endpoints")}}
    )
    return typed(
        "envoy.config.cluster.v3.Cluster",
        name=route.name,
        **kind,
        connect_timeout=seconds(CONNECT_SECONDS),
        load_balancing_policy=_least_request(),
        common_lb_config={"update_merge_window": "0s"},
        ignore_health_on_host_removal=True,
        health_checks=[_health_check(route)],
        outlier_detection=_outlier_detection(),
        circuit_breakers=_circuit_breakers(route),
        typed_extension_protocol_options={
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": typed(
                "envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
                common_http_protocol_options={"idle_timeout": seconds(KEPT_CONNECTION_SECONDS)},
                explicit_http_config={"http_protocol_options": {}},
            )
        },
        upstream_connection_options={
            "tcp_keepalive": {"keepalive_probes": 3, "keepalive_time": 30, "keepalive_interval": 10}
        },
    )


def _least_request() -> Config:
    """Look at all replicas for the least busy one: with few of them, two choices out of all leave one idle."""
    policy = typed(
        "envoy.extensions.load_balancing_policies.least_request.v3.LeastRequest", selection_method="FULL_SCAN"
    )
    return {
        "policies": [
            {"typed_extension_config": {"name": "envoy.load_balancing_policies.least_request", "typed_config": policy}}
        ]
    }


def _health_check(route: Route) -> Config:
    check: Config = {
        "timeout": seconds(CHECK_TIMEOUT_SECONDS),
        "interval": seconds(CHECK_SECONDS),
        "unhealthy_interval": seconds(CHECK_SECONDS),
        "no_traffic_interval": seconds(IDLE_CHECK_SECONDS),
        "no_traffic_healthy_interval": seconds(IDLE_CHECK_SECONDS),
        "unhealthy_threshold": CHECKS_IN_A_ROW,
        "healthy_threshold": 1,
    }
    if not route.health_path:
        return {**check, "tcp_health_check": {}}
    request: Config = {"path": route.health_path}
    if route.upstream_key:
        request["request_headers_to_add"] = [
            {"header": {"key": "authorization", "value": f"Bearer {_literal(route.upstream_key)}"}}
        ]
    return {**check, "http_health_check": request}


def _outlier_detection() -> Config:
    return {
        "split_external_local_origin_errors": True,
        "consecutive_local_origin_failure": 3,
        "enforcing_consecutive_local_origin_failure": 100,
        "consecutive_gateway_failure": 3,
        "enforcing_consecutive_gateway_failure": 100,
        "consecutive_5xx": 3,
        "interval": "0.5s",
        "base_ejection_time": "5s",
        "max_ejection_percent": 50,
    }


def _circuit_breakers(route: Route) -> Config:
    """Bound what is in flight. Envoy's own queue is per replica and never rebalanced: engines queue, it refuses."""
    limit = max(route.in_flight_limit, 1)
    per_replica = route.in_flight_per_replica
    breakers: Config = {
        "thresholds": [
            {
                "max_connections": UNLIMITED,
                "max_requests": limit,
                # A request counts as pending while its connection is made.
                "max_pending_requests": limit if per_replica is None else max(limit - per_replica, per_replica),
                "max_retries": 1000,
            }
        ]
    }
    if per_replica is not None:
        breakers["per_host_thresholds"] = [{"max_connections": per_replica}]
    return breakers


def _literal(text: str) -> str:
    """Keep Envoy from reading a percent sign in a header's value as a command."""
    return text.replace("%", "%%")
