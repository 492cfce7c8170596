"""Where a request comes from."""

import ipaddress

from django.conf import settings
from django.http import HttpRequest


def client_address(request: HttpRequest) -> str | None:
    """Return the caller's IP address, or None where the server tells none (a Unix socket).

    `X-Forwarded-For` counts only behind our own proxy (FLEETDECK_BEHIND_PROXY), and of it only the last entry: that one
    the proxy wrote, the ones before it came from the caller.
    """
    candidate = request.META.get("REMOTE_ADDR", "")
    if settings.BEHIND_PROXY:
        forwarded = request.META.get("HTTP_X_FORWARDED_FOR", "").rpartition(",")[2].strip()
        candidate = forwarded or candidate
    try:
        return str(ipaddress.ip_address(candidate))
    except ValueError:
        return None


def address_group(address: str | None) -> str:
    """Return under what attempts from an address are counted: IPv6 by its /64, of which one household has a whole one."""
    if address is None:
        return ""
    found = ipaddress.ip_address(address)
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is None:
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(getattr(found, "ipv4_mapped", None) or found)
