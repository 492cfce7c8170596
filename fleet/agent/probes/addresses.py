"""Which addresses a probe may connect to: never a cloud's own services or the link, private ones only where allowed."""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# Where clouds answer with a machine's own credentials; some lie in ranges that are otherwise public or private.
METADATA: Final = frozenset(
    ipaddress.ip_address(text)
    for text in ("169.254.169.254", "169.254.170.2", "100.100.100.200", "192.0.0.192", "168.63.129.16", "fd00:ec2::254")
)
# An IPv4 address within an IPv6 one, by the bits that lie to its right: 6to4 and NAT64 (RFC 3056, RFC 6052).
_WITHIN: Final = ((ipaddress.IPv6Network("2002::/16"), 80), (ipaddress.IPv6Network("64:ff9b::/96"), 0))


@dataclass(frozen=True, slots=True)
class Rules:
    """What is allowed here beside public addresses.

    networks: private ones that an admin named. is_private_allowed: all private ones. places: (address, port) of what this
    machine itself runs and has to measure, such as its own replicas on loopback.
    """

    networks: tuple[Network, ...] = ()
    is_private_allowed: bool = False
    places: frozenset[tuple[str, int]] = frozenset()

    @classmethod
    def of(cls, networks: Iterable[str] = (), **others: Any) -> "Rules":
        """Return rules with networks given as text. Raises ValueError for text that is no network."""
        return cls(tuple(ipaddress.ip_network(text, strict=False) for text in networks), **others)

    def allow(self, text: str, port: int = 0) -> bool:
        """Say whether a probe may connect to an address, given as text (a zone after % is left out)."""
        try:
            address = embedded(ipaddress.ip_address(text.partition("%")[0]))
        except ValueError:
            return False
        if address in METADATA or address.is_link_local or address.is_multicast or address.is_unspecified:
            return False
        if address.is_global or self.is_private_allowed or (str(address), port) in self.places:
            return True
        return any(address in network for network in self.networks)


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


def literal(host: str) -> str | None:
    """Return the address that a host is written as, None for a name. Odd spellings (2130706433) are names: they get resolved."""
    try:
        return str(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        return None
