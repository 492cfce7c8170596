"""Which addresses a probe may connect to: never a cloud's own services or the link, private ones only where allowed."""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fleet.agent.addresses import is_forbidden, parsed

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


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
        address = parsed(text)
        if address is None or is_forbidden(address):
            return False
        if address.is_global or self.is_private_allowed or (str(address), port) in self.places:
            return True
        return any(address in network for network in self.networks)


def literal(host: str) -> str | None:
    """Return the address that a host is written as, None for a name. Odd spellings (2130706433) are names: they get resolved."""
    try:
        return str(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        return None
