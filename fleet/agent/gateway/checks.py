"""What of the panel's routes a gateway takes: names become paths and addresses are connected to, so none is taken on trust."""

import re
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from fleet.agent.addresses import is_forbidden, parsed
from fleet.agent.orders import KeyRule, Route, Upstream

NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,98}[a-z0-9])?", re.ASCII)
HOST: Final = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,98}[a-z0-9])?", re.ASCII)
DIGEST: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
VISIBLE: Final = re.compile(r"[!-~]+", re.ASCII)
SHORTEST_SECONDS, LONGEST_SECONDS = 0.05, 86_400.0
MOST_IN_FLIGHT: Final = 1_000_000

Resolve = Callable[[str], str | None]


def is_allowed(address: str) -> bool:
    """Say whether a gateway may connect to an address (in numbers); private ones are where replicas live."""
    found = parsed(address)
    return found is not None and not is_forbidden(found)


def complaint_about(route: Route) -> str:
    """Return why a route is not served at all, empty when it is."""
    if not NAME.fullmatch(route.name):
        return f"The endpoint's name {route.name[:60]!r} cannot be part of an address."
    if route.upstream_key and not VISIBLE.fullmatch(route.upstream_key):
        return f"The key for the replicas of {route.name} has characters that no header can carry."
    if route.health_path and not (route.health_path.startswith("/") and VISIBLE.fullmatch(route.health_path)):
        return f"The health path of {route.name} is no path."
    return ""


def bounded(route: Route) -> Route:
    """Return a route whose numbers and host names a data plane can take."""
    return msgspec.structs.replace(
        route,
        hosts=[host for host in map(str.lower, route.hosts) if HOST.fullmatch(host)],
        in_flight_limit=_between(route.in_flight_limit, MOST_IN_FLIGHT),
        in_flight_per_replica=(
            None if route.in_flight_per_replica is None else _between(route.in_flight_per_replica, MOST_IN_FLIGHT)
        ),
        first_byte_seconds=_seconds(route.first_byte_seconds),
        idle_seconds=_seconds(route.idle_seconds),
        total_seconds=None if route.total_seconds is None else _seconds(route.total_seconds),
    )


def usable_upstreams(route: Route, resolve: Resolve) -> tuple[list[Upstream], list[str]]:
    """Return a route's replicas with addresses in numbers, each address once, and sentences about those left out."""
    usable: dict[tuple[str, int], Upstream] = {}
    complaints = []
    for upstream in route.upstreams:
        address = resolve(upstream.address)
        if address is None:
            complaints.append(f"{upstream.address} (a replica of {route.name}) cannot be resolved.")
        elif not is_allowed(address) or not 0 < upstream.port < 65_536:
            complaints.append(f"{upstream.address}:{upstream.port} (a replica of {route.name}) is not connected to.")
        else:
            usable.setdefault((address, upstream.port), msgspec.structs.replace(upstream, address=address))
    return list(usable.values()), complaints


def without_shared_hosts(routes: Iterable[Route]) -> tuple[dict[str, Route], list[str]]:
    """Return routes by name in which no host name stands twice (the first keeps it), and sentences about those taken away."""
    owners: dict[str, str] = {}
    kept, complaints = {}, []
    for route in routes:
        hosts = []
        for host in dict.fromkeys(route.hosts):
            owner = owners.setdefault(host, route.name)
            if owner == route.name:
                hosts.append(host)
            else:
                complaints.append(f"{host} is {owner}'s; {route.name} is not served there.")
        kept[route.name] = route if hosts == route.hosts else msgspec.structs.replace(route, hosts=hosts)
    return kept, complaints


def is_usable(rule: KeyRule) -> bool:
    """Say whether a key's rule can be written down; one that cannot is a key that nobody has."""
    return bool(DIGEST.fullmatch(rule.digest)) and all(NAME.fullmatch(name) for name in rule.endpoints)


def _between(value: int, most: int) -> int:
    return min(max(value, 1), most)


def _seconds(value: float) -> float:
    return min(max(value, SHORTEST_SECONDS), LONGEST_SECONDS)
