"""An HAProxy configuration for engines that work on one to four requests at once: one queue before all replicas. Pure.

Engines with many slots queue by themselves and are better off behind a gateway. Where a replica draws one image at a time,
a queue of its own lets requests wait at a busy one beside an idle one; HAProxy keeps them in front and hands out free slots.
"""

from collections.abc import Sequence
from typing import Final

from endpoints.gateway.wording import (
    CONNECT_SECONDS,
    FULL,
    KEPT_CONNECTION_SECONDS,
    NOBODY,
    UNKNOWN,
    address,
    checked,
    identifier,
)
from fleet.agent.orders import Route

HEAD: Final = """\
# Made by Fleetdeck for HAProxy 2.4 or newer. Fetch it again when replicas change, then: systemctl reload haproxy
# API keys are not checked here: let nobody in who may not call, or put a Fleetdeck gateway before it.
"""
# A request can only be sent again if it fits into a buffer.
BUFFER_BYTES: Final = 262_144
NO_LIMIT: Final = "24h"
# A dead replica refuses at once. Without a limit of its own a check is failed after the half second between two of them,
# and replicas that are only busy would be taken for dead, all of them at the same moment.
CHECK_SECONDS: Final = 5


def render_haproxy(
    routes: Sequence[Route], *, port: int = 8080, certificate_file: str = "", has_secrets: bool = False
) -> str:
    """Return the whole configuration for these endpoints.

    A replica gets as many requests at once as it has slots (`in_flight_per_replica` before that, one if neither is known).
    certificate_file: chain and key in one file. has_secrets: with the keys that replicas ask for; else a comment stands in
    their place. Raises ValueError for values that cannot stand in it.
    """
    if any(character in certificate_file for character in "\"'\\ \n#"):
        raise ValueError(f"{certificate_file!r} has characters that HAProxy would take for something else.")
    checked_routes = [checked(route) for route in routes]
    parts = [HEAD, _general(), _frontend(checked_routes, port, certificate_file)]
    parts += [_backend(route, has_secrets=has_secrets) for route in checked_routes]
    return "\n".join(parts)


def _general() -> str:
    return f"""\
global
    tune.bufsize {BUFFER_BYTES}

defaults
    mode http
    option http-keep-alive
    timeout connect {CONNECT_SECONDS}s
    timeout client {NO_LIMIT}
    timeout http-request 300s
    timeout http-keep-alive 300s
"""


def _frontend(routes: Sequence[Route], port: int, certificate_file: str) -> str:
    tls = f" ssl crt {certificate_file} alpn h2,http/1.1" if certificate_file else ""
    lines = ["frontend fleetdeck", f"    bind :{port}{tls}", "    option http-buffer-request"]
    for route in routes:
        name = identifier(route)
        lines.append(f"    acl is_{name} path_beg /{route.name}/")
        lines += [f"    acl is_{name} hdr(host),field(1,:),lower {host}" for host in route.hosts]
    lines += [_returned(404, UNKNOWN, f"!{' !'.join(f'is_{identifier(route)}' for route in routes)}")] if routes else []
    for route in routes:
        name = identifier(route)
        lines.append(_returned(503, NOBODY, f"is_{name} {{ nbsrv({name}) eq 0 }}", retry_after=5))
        lines.append(
            _returned(429, _with_queue(name), f"is_{name} {{ be_conn({name}) ge {max(route.in_flight_limit, 1)} }}", 1)
        )
    lines += [f"    use_backend {identifier(route)} if is_{identifier(route)}" for route in routes]
    return "\n".join(lines) + "\n"


def _with_queue(name: str) -> str:
    return FULL.removesuffix("}}") + f', "queue_length": %[queue({name})]' + "}}"


def _returned(status: int, body: str, condition: str, retry_after: int | None = None) -> str:
    wait = "" if retry_after is None else f" hdr Retry-After {retry_after}"
    text = body.replace("\\", "\\\\").replace("'", "'\\''")
    return (
        f"    http-request return status {status} content-type application/json lf-string '{text}'{wait} if {condition}"
    )


def _backend(route: Route, *, has_secrets: bool) -> str:
    silence = round(max(route.first_byte_seconds, route.idle_seconds) * 1000)
    lines = [
        f"backend {identifier(route)}",
        "    balance leastconn",
        "    retries 3",
        "    option redispatch 1",
        "    retry-on conn-failure empty-response response-timeout 502 503 504",
        f"    timeout server {max(silence, 1)}ms",
        f"    timeout queue {NO_LIMIT if route.total_seconds is None else f'{round(route.total_seconds * 1000)}ms'}",
        "    http-reuse safe",
        rf"    http-request replace-path /{route.name.replace('.', '[.]')}/(.*) /\1",
        "    http-request del-header Cookie",
        "    http-request del-header Accept-Encoding",
        *_authorization(route, has_secrets=has_secrets),
        *([f"    option httpchk GET {route.health_path}"] if route.health_path else []),
        f"    timeout check {CHECK_SECONDS}s",
        # One that refuses a connection is out at once: while the last request of a live one is being put away by another
        # thread, that one counts as full, and all tries of the next request would go to the dead one.
        "    default-server observe layer4 error-limit 1 on-error mark-down",
        f"    default-server check inter 500ms fall 2 rise 1 pool-purge-delay {KEPT_CONNECTION_SECONDS}s",
    ]
    for upstream in route.upstreams:
        slots = upstream.slots or route.in_flight_per_replica or 1
        lines.append(f"    server replica-{upstream.replica} {address(upstream)} maxconn {slots}")
    return "\n".join(lines) + "\n"


def _authorization(route: Route, *, has_secrets: bool) -> list[str]:
    if not route.upstream_key:
        return ["    http-request del-header Authorization"]
    if has_secrets:
        return [f'    http-request set-header Authorization "Bearer {route.upstream_key}"']
    return [
        "    # http-request set-header Authorization …  the key that the replicas ask for; secrets were not asked for"
    ]
