"""PCI addresses: the kernel log writes 0000:9b:00, NVML 00000000:9B:00.0; both mean one card."""

import re
from typing import Final

_ADDRESS: Final = re.compile(r"(?:([0-9a-fA-F]{1,8}):)?([0-9a-fA-F]{1,2}):([0-9a-fA-F]{1,2})(?:\.([0-7]))?")


def canonical_bus_id(address: str) -> str:
    """Return an address as domain:bus:device.function in lower case, 0000:9b:00.0. Raises ValueError for other text."""
    match = _ADDRESS.fullmatch(address.strip())
    if match is None:
        raise ValueError(f"{address!r} is no PCI address")
    domain, bus, device, function = (int(part or "0", 16) for part in match.groups())
    return f"{domain:04x}:{bus:02x}:{device:02x}.{function}"
