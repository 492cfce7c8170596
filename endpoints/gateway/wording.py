"""What the rendered configurations share: refusals in the shape of OpenAI's API, names and values that need no quoting."""

import json
import re
from typing import Final

from fleet.agent.gateway.checks import HOST, NAME
from fleet.agent.orders import Route, Upstream

LARGEST_BODY_MEGABYTES: Final = 32
CONNECT_SECONDS: Final = 2
# Engines on uvicorn close a kept connection after 5 s.
KEPT_CONNECTION_SECONDS: Final = 4
_PLAIN: Final = re.compile(r"[A-Za-z0-9._~+/=-]*")
_PATH: Final = re.compile(r"/[A-Za-z0-9._~/=?&-]*")


def checked(route: Route) -> Route:
    """Return the route. Raises ValueError for one whose names or values would mean something else in a configuration."""
    if not NAME.fullmatch(route.name):
        raise ValueError(f"{route.name!r} cannot be part of an address.")
    for host in route.hosts:
        if not HOST.fullmatch(host):
            raise ValueError(f"{host!r} is no host name.")
    for upstream in route.upstreams:
        if not re.fullmatch(r"[A-Za-z0-9.:-]+", upstream.address):
            raise ValueError(f"{upstream.address!r} is no address.")
    if not _PLAIN.fullmatch(route.upstream_key):
        raise ValueError(
            f"The key of {route.name}'s replicas has characters that a configuration cannot carry as they are."
        )
    if route.health_path and not _PATH.fullmatch(route.health_path):
        raise ValueError(f"{route.health_path!r} is no plain path.")
    return route


def identifier(route: Route) -> str:
    """Return the name of an endpoint's part of a configuration."""
    return "fleetdeck_" + re.sub(r"[^a-z0-9]", "_", route.name)


def address(upstream: Upstream) -> str:
    """Return where a replica listens; IPv6 in brackets."""
    host = f"[{upstream.address}]" if ":" in upstream.address else upstream.address
    return f"{host}:{upstream.port}"


def error(message: str, kind: str, code: str) -> str:
    """Return the JSON body of a refusal, on one line."""
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}})


FULL: Final = error("This endpoint has as many requests as it takes.", "rate_limit_error", "endpoint_full")
NOBODY: Final = error("No replica of this endpoint takes requests now.", "server_error", "no_replica_ready")
UNKNOWN: Final = error("There is no endpoint at this address.", "invalid_request_error", "unknown_endpoint")
TOO_LARGE: Final = error("The request's body is too large.", "invalid_request_error", "request_too_large")
