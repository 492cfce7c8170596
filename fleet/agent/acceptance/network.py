"""The ways to the panel and to an address that somebody chose: how long, how far, how wide."""

from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

from fleet.agent.acceptance import route, speed
from fleet.agent.acceptance.found import Found, RouteFound
from fleet.agent.jobs.task import Task
from fleet.agent.panel import verify_with

TIMEOUT: Final = httpx.Timeout(10.0, connect=5.0)
DEFAULT_PORT: Final = 443


def measure_panel(task: Task, found: Found) -> None:
    """Fill in the way to the panel, and this machine's clock against its."""
    place = urlsplit(task.panel_url)
    host = place.hostname or ""
    found.panel = panel = RouteFound(host=host[:255], port=place.port or (443 if place.scheme == "https" else 80))
    if _is_proxied(place.scheme, host):
        panel.missing["round_trip"] = panel.missing["hops"] = "proxied"
    else:
        _connect(panel, allow_private=True)
    headers = {"Authorization": f"Bearer {task.agent_token}"}
    verify = verify_with(task.panel_url, task.ca_file)
    with httpx.Client(base_url=task.panel_url.rstrip("/"), headers=headers, timeout=TIMEOUT, verify=verify) as http:
        _note(panel, "downlink", lambda: speed.panel_down(http))
        _note(panel, "uplink", lambda: speed.panel_up(http))
        try:
            found.clock_skew_ms, found.clock_skew_error_ms = speed.clock_skew(http)
        except speed.SpeedError as error:
            found.missing["clock_skew"] = error.reason


def measure_target(task: Task, target: str) -> RouteFound:
    """Return the way to `host`, `host:port`, or to an http(s) address, from which something is fetched then."""
    is_url = target.startswith(("http://", "https://"))
    try:
        place = urlsplit(target if is_url else f"//{target}")
        host, port = place.hostname or "", place.port or (80 if place.scheme == "http" else DEFAULT_PORT)
    except ValueError:
        return RouteFound(host=target[:255], missing={"round_trip": "not_an_address"})
    found = RouteFound(host=host[:255], port=port)
    address = _connect(found, allow_private=task.allow_private_targets)
    if not address or not is_url:
        found.missing["downlink"] = found.missing["uplink"] = "unreachable" if not address else "not_asked"
        return found
    # The address that was looked at is the one that is spoken to; no proxy, no redirect leads elsewhere.
    shown = f"[{address}]" if ":" in address else address
    url = place._replace(netloc=f"{shown}:{port}").geturl()
    name = place.netloc.rpartition("@")[2]
    with httpx.Client(timeout=TIMEOUT, trust_env=False, headers={"Host": name}, verify=place.scheme == "https") as http:
        http.event_hooks = {"request": [_server_name(host)]}
        _note(found, "downlink", lambda: speed.address_down(http, url))
        _note(found, "uplink", lambda: speed.address_up(http, url))
    return found


def _server_name(host: str) -> Callable[[httpx.Request], None]:
    """Return a hook that has TLS ask for, and check, the name instead of the IP address."""

    def hook(request: httpx.Request) -> None:
        request.extensions = {**request.extensions, "sni_hostname": host}

    return hook


def _connect(found: RouteFound, *, allow_private: bool) -> str:
    """Fill in round trip and hops; returns the IP address, empty when there is no way."""
    port = found.port or DEFAULT_PORT
    try:
        address = route.resolve(found.host, port, allow_private=allow_private)
        found.round_trip_ms = route.round_trip_ms(address, port)
    except route.RouteError as error:
        found.missing["round_trip"] = found.missing["hops"] = error.reason
        return ""
    try:
        found.hops = route.hops(address, port, usual_ms=found.round_trip_ms)
    except route.RouteError as error:
        found.missing["hops"] = error.reason
    return address


def _note(found: RouteFound, direction: str, measure: Callable[[], speed.Speed]) -> None:
    try:
        moved = measure()
    except speed.SpeedError as error:
        found.missing[direction] = error.reason[:48]
        return
    setattr(found, f"{direction}_bytes_per_second", moved.bytes_per_second)
    setattr(found, f"{direction}_bytes", moved.size)


def _is_proxied(scheme: str, host: str) -> bool:
    return scheme in getproxies() and not proxy_bypass(host)
