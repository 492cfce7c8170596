"""Addresses that nothing of this agent ever connects to, whoever asks: a cloud's own services, the link, no address at all."""

import ipaddress
from typing import Final

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# Where clouds answer with a machine's own credentials; some lie in ranges that are otherwise public or private.
METADATA: Final = frozenset(
    ipaddress.ip_address(text)
    for text in ("169.254.169.254", "169.254.170.2", "100.100.100.200", "192.0.0.192", "168.63.129.16", "fd00:ec2::254")
)
# An IPv4 address within an IPv6 one, by the bits that lie to its right: 6to4 and NAT64 (RFC 3056, RFC 6052).
_WITHIN: Final = ((ipaddress.IPv6Network("2002::/16"), 80), (ipaddress.IPv6Network("64:ff9b::/96"), 0))
_NOWHERE: Final = ipaddress.IPv4Network("0.0.0.0/8")  # RFC 1122


def parsed(text: str) -> Address | None:
    """Return the address that a text means (a zone after % is left out), an IPv4 one where an IPv6 one leads to it; else None."""
    try:
        return embedded(ipaddress.ip_address(text.partition("%")[0]))
    except ValueError:
        return None


def embedded(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 one leads to, where it does; else the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped:
        return address.ipv4_mapped
    for network, right in _WITHIN:
        if address in network:
            return ipaddress.IPv4Address(int(address) >> right & 0xFFFFFFFF)
    return address


def is_forbidden(address: Address) -> bool:
    """Say whether nobody may be sent there. address: as `parsed` gives it."""
    if address in METADATA or address.is_link_local or address.is_multicast or address.is_unspecified:
        return True
    return isinstance(address, ipaddress.IPv4Address) and address in _NOWHERE
