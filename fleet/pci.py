"""PCI addresses: the kernel log writes `0000:03:00`, NVML `00000000:03:00.0`; both name one card."""

import re
from typing import Final

_ADDRESS: Final = re.compile(r"(?:([0-9a-f]{1,8}):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})(?:\.[0-7])?", re.IGNORECASE)


def bus_id_key(address: str) -> tuple[int, int, int] | None:
    """Return (domain, bus, device) of an address, None for text that is none. The function (`.0`) does not tell cards apart."""
    match = _ADDRESS.fullmatch(address.strip().removeprefix("PCI:"))
    if match is None:
        return None
    return int(match[1] or "0", 16), int(match[2], 16), int(match[3], 16)


def same_bus_id(first: str, second: str) -> bool:
    """Say whether two addresses name the same card."""
    key = bus_id_key(first)
    return key is not None and key == bus_id_key(second)
