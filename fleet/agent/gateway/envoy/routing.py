"""Where a request goes (RDS): by the first part of its path, or by its host name."""

from collections.abc import Sequence
from typing import Final

from fleet.agent.gateway.envoy.clusters import seconds
from fleet.agent.gateway.envoy.layout import Config, typed
from fleet.agent.orders import Route

NAME: Final = "endpoints"
LUA: Final = "envoy.filters.http.lua"
ALIVE_PATH: Final = "/-/alive"
# Requests up to this size are kept until a replica answers, so that they can be sent to another one.
LARGEST_BODY: Final = 32 * 1024 * 1024
# Not 5xx: an engine's own 500 would only be repeated by the next one.
RETRIES: Final = 3
RETRY_ON: Final = "connect-failure,refused-stream,reset-before-request,reset,gateway-error"


def route_configuration(routes: Sequence[Route]) -> Config:
    """Return the RDS resource for all endpoints."""
    by_host = [_host(route) for route in routes if route.hosts]
    paths = [_forward(route, f"/{route.name}/") for route in routes]
    alive = {"match": {"path": ALIVE_PATH}, "direct_response": {"status": 200, "body": {"inline_string": "ok\n"}}}
    return typed(
        "envoy.config.route.v3.RouteConfiguration",
        name=NAME,
        virtual_hosts=[
            *by_host,
            {"name": "paths", "domains": ["*"], "routes": [alive, *paths], "request_body_buffer_limit": LARGEST_BODY},
        ],
    )


def _host(route: Route) -> Config:
    return {
        "name": f"host-{route.name}",
        "domains": list(route.hosts),
        "routes": [_forward(route, "/")],
        "request_body_buffer_limit": LARGEST_BODY,
    }


def _forward(route: Route, prefix: str) -> Config:
    forward: Config = {
        "match": {"prefix": prefix},
        "metadata": {
            "filter_metadata": {
                LUA: {
                    "endpoint": route.name,
                    "requires_key": route.requires_key,
                    "limit": route.in_flight_limit,
                    "probe_mark": route.probe_mark,
                }
            }
        },
        "route": {
            "cluster": route.name,
            "prefix_rewrite": "/",
            "timeout": "0s" if route.total_seconds is None else seconds(route.total_seconds),
            **_patience(route),
            "retry_policy": {
                **_patience_of_a_try(route),
                "retry_on": RETRY_ON,
                "num_retries": RETRIES,
                "host_selection_retry_max_attempts": 50,
                "retry_host_predicate": [
                    {
                        "name": "envoy.retry_host_predicates.previous_hosts",
                        "typed_config": typed("envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate"),
                    }
                ],
                "retry_back_off": {"base_interval": "0.025s", "max_interval": "0.25s"},
            },
        },
    }
    if route.upstream_key:
        value = f"Bearer {route.upstream_key.replace('%', '%%')}"
        forward["request_headers_to_add"] = [
            {"header": {"key": "authorization", "value": value}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}
        ]
    return forward


def _patience_of_a_try(route: Route) -> Config:
    """Return how long a replica may be silent before its answer begins; after that the request is sent to another one.

    Envoy forgets a try's idle timeout once the answer begins if the try has a timeout too (seen in 1.40): a replica that
    froze in the middle of a stream would hold its caller for ever. So a try has one or the other.
    """
    if route.first_byte_seconds < route.idle_seconds:
        return {"per_try_timeout": seconds(route.first_byte_seconds)}
    return {"per_try_idle_timeout": seconds(route.first_byte_seconds)}


def _patience(route: Route) -> Config:
    """Return how long a stream may be silent, where the tries do not bound it: longer than all of them together."""
    if route.first_byte_seconds < route.idle_seconds:
        tries_seconds = (RETRIES + 1) * route.first_byte_seconds + 1.0
        return {"idle_timeout": seconds(max(route.idle_seconds, tries_seconds))}
    return {}
