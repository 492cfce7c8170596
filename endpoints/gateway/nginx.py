"""An nginx configuration of the same replicas and limits, for those who run nginx. Pure; tried with a real nginx.

What it lacks beside a gateway stands at its head: nginx checks no API keys, and looks after replicas only by their failures.
"""

from collections.abc import Sequence
from typing import Final

from endpoints.gateway.wording import (
    CONNECT_SECONDS,
    FULL,
    KEPT_CONNECTION_SECONDS,
    LARGEST_BODY_MEGABYTES,
    NOBODY,
    TOO_LARGE,
    UNKNOWN,
    address,
    checked,
    identifier,
)
from fleet.agent.orders import Route

HEAD: Final = """\
# Made by Fleetdeck for a file in nginx's conf.d (inside http). Fetch it again when replicas change, then: nginx -s reload
# API keys are not checked here: let nobody in who may not call, or put a Fleetdeck gateway in this place.
# A dead replica is noticed by its failures: requests that were not begun are sent to another one.
"""
TRIES: Final = 4
NO_LIMIT_SECONDS: Final = 86_400


def render_nginx(
    routes: Sequence[Route],
    *,
    port: int = 8080,
    certificate_file: str = "",
    key_file: str = "",
    has_secrets: bool = False,
    requests_per_minute: int | None = None,
) -> str:
    """Return the configuration of a server for these endpoints.

    has_secrets: with the keys that replicas ask for; else a comment stands in their place. requests_per_minute: of each
    caller, by what it sends as Authorization (by its address without). Raises ValueError for values that cannot stand in it.
    """
    checked_routes = [checked(route) for route in routes]
    listen = f"listen {port}{' ssl' if certificate_file else ''};"
    shared = [listen, *_tls(certificate_file, key_file), f"client_max_body_size {LARGEST_BODY_MEGABYTES}m;"]
    parts = [HEAD, *_limits(checked_routes, requests_per_minute), *(_upstream(route) for route in checked_routes)]
    is_limited = requests_per_minute is not None
    parts.append(
        _server(
            [listen.replace(";", " default_server;"), *shared[1:], "server_name _;"],
            checked_routes,
            prefixes=[f"/{route.name}/" for route in checked_routes],
            has_secrets=has_secrets,
            is_limited=is_limited,
        )
    )
    parts += [
        _server(
            [*shared, f"server_name {' '.join(route.hosts)};"],
            [route],
            prefixes=["/"],
            has_secrets=has_secrets,
            is_limited=is_limited,
        )
        for route in checked_routes
        if route.hosts
    ]
    return "\n".join(parts)


def _tls(certificate_file: str, key_file: str) -> list[str]:
    if not certificate_file:
        return []
    return [
        f"ssl_certificate {_path(certificate_file)};",
        f"ssl_certificate_key {_path(key_file or certificate_file)};",
        "ssl_protocols TLSv1.2 TLSv1.3;",
    ]


def _path(path: str) -> str:
    if any(character in path for character in "\"'\\;{}$\n "):
        raise ValueError(f"{path!r} has characters that nginx would take for something else.")
    return path


def _limits(routes: Sequence[Route], requests_per_minute: int | None) -> list[str]:
    zones = [f'limit_conn_zone "{route.name}" zone={identifier(route)}_limit:1m;' for route in routes]
    if requests_per_minute is not None:
        zones += [
            'map $http_authorization $fleetdeck_caller { "" $binary_remote_addr; default $http_authorization; }',
            f"limit_req_zone $fleetdeck_caller zone=fleetdeck_callers:10m rate={max(requests_per_minute, 1)}r/m;",
        ]
    return [*zones, ""]


def _upstream(route: Route) -> str:
    if not route.upstreams:
        return f"# {route.name}: no replica is ready.\n"
    limit = "" if route.in_flight_per_replica is None else f" max_conns={route.in_flight_per_replica}"
    servers = [
        f"server {address(upstream)}{limit} max_fails=3 fail_timeout=5s;  # replica {upstream.replica}"
        for upstream in route.upstreams
    ]
    # The zone makes all workers count together.
    lines = [
        f"zone {identifier(route)} 128k;",
        "least_conn;",
        *servers,
        "keepalive 64;",
        f"keepalive_timeout {KEPT_CONNECTION_SECONDS}s;",
    ]
    return f"upstream {identifier(route)} {{\n{_indented(lines)}\n}}\n"


def _server(
    head: Sequence[str], routes: Sequence[Route], *, prefixes: Sequence[str], has_secrets: bool, is_limited: bool
) -> str:
    lines = [
        *head,
        "default_type application/json;",
        "gzip off;",
        "error_page 413 @too_large;",
        "error_page 429 @full;",
        "error_page 502 503 504 @nobody;",
        *_said("@too_large", 413, TOO_LARGE),
        *_said("@full", 429, FULL, retry_after=1),
        *_said("@nobody", 503, NOBODY, retry_after=5),
    ]
    if "/" not in prefixes:
        lines += ["location / {", f"    return 404 '{_quoted(UNKNOWN)}';", "}"]
    for route, prefix in zip(routes, prefixes, strict=True):
        lines += _location(route, prefix, has_secrets=has_secrets, is_limited=is_limited)
    return f"server {{\n{_indented(lines)}\n}}\n"


def _said(name: str, status: int, body: str, retry_after: int | None = None) -> list[str]:
    wait = [] if retry_after is None else [f"    add_header Retry-After {retry_after} always;"]
    return [f"location {name} {{", *wait, f"    return {status} '{_quoted(body)}';", "}"]


def _location(route: Route, prefix: str, *, has_secrets: bool, is_limited: bool) -> list[str]:
    if not route.upstreams:
        return [f"location {prefix} {{", "    return 503;", "}"]
    # nginx has one limit for the first byte and for gaps between bytes.
    silence = max(route.first_byte_seconds, route.idle_seconds)
    total = NO_LIMIT_SECONDS if route.total_seconds is None else route.total_seconds
    return [
        f"location {prefix} {{",
        f"    limit_conn {identifier(route)}_limit {max(route.in_flight_limit, 1)};",
        "    limit_conn_status 429;",
        *(
            ["    limit_req zone=fleetdeck_callers burst=10 nodelay;", "    limit_req_status 429;"]
            if is_limited
            else []
        ),
        f"    proxy_pass http://{identifier(route)}/;",
        "    proxy_http_version 1.1;",
        '    proxy_set_header Connection "";',
        f"    {_authorization(route, has_secrets=has_secrets)}",
        '    proxy_set_header Accept-Encoding "";',
        '    proxy_set_header Cookie "";',
        "    # Streams pass as they come; requests are taken in first, so that they can be sent again.",
        "    proxy_buffering off;",
        "    proxy_request_buffering on;",
        f"    proxy_connect_timeout {CONNECT_SECONDS}s;",
        f"    proxy_read_timeout {_milliseconds(silence)};",
        f"    proxy_send_timeout {_milliseconds(silence)};",
        "    proxy_next_upstream error timeout http_502 http_503 http_504 non_idempotent;",
        f"    proxy_next_upstream_tries {TRIES};",
        f"    proxy_next_upstream_timeout {_milliseconds(total)};",
        "}",
    ]


def _authorization(route: Route, *, has_secrets: bool) -> str:
    if not route.upstream_key:
        return 'proxy_set_header Authorization "";'
    if has_secrets:
        return f'proxy_set_header Authorization "Bearer {route.upstream_key}";'
    return '# proxy_set_header Authorization "Bearer …";  the key that the replicas ask for; left out: secrets were not asked for'


def _milliseconds(seconds: float) -> str:
    return f"{max(round(seconds * 1000), 1)}ms"


def _quoted(body: str) -> str:
    return body.replace("\\", "\\\\").replace("'", "\\'")


def _indented(lines: Sequence[str]) -> str:
    return "\n".join(f"    {line}" for line in lines)
