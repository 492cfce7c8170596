"""One DNS question as bytes, and what an answer to it says (RFC 1035); hostile answers end in a ValueError."""

import ipaddress
import struct
from typing import Final, NamedTuple

TYPES: Final = {"A": 1, "AAAA": 28}
INTERNET: Final = 1
RCODES: Final = {0: "", 1: "format_error", 2: "server_failure", 3: "not_found", 4: "not_implemented", 5: "refused"}
_HEADER: Final = struct.Struct("!HHHHHH")
_RECORD: Final = struct.Struct("!HHIH")
MOST_RECORDS: Final = 256


class DnsAnswer(NamedTuple):
    """rcode: 0 for success. addresses: of the asked type. is_cut: too long for UDP, to be asked again over TCP."""

    rcode: int
    addresses: list[str]
    is_cut: bool


def encode(name: str, kind: str, number: int) -> bytes:
    """Return a question with recursion desired. number: 0 to 65535. Raises ValueError for what is no name."""
    return _HEADER.pack(number, 0x0100, 1, 0, 0, 0) + _name(name) + struct.pack("!HH", TYPES[kind], INTERNET)


def _name(name: str) -> bytes:
    encoded = bytearray()
    for label in name.rstrip(".").split("."):
        part = label.encode("ascii" if label.isascii() else "idna")
        if not 0 < len(part) < 64:
            raise ValueError(f"{name!r} is no name: each part has 1 to 63 letters")
        encoded += bytes([len(part)]) + part
    if len(encoded) > 254:
        raise ValueError(f"{name!r} is too long for a name")
    return bytes(encoded) + b"\0"


def decode(data: bytes, question: bytes) -> DnsAnswer | None:
    """Return what an answer says; None when it belongs to another question. Raises ValueError for what is no DNS message."""
    if len(data) < _HEADER.size:
        raise ValueError("shorter than a header")
    number, flags, questions, answers, _, _ = _HEADER.unpack_from(data)
    if number != int.from_bytes(question[:2], "big") or not flags & 0x8000:
        return None
    asked = question[_HEADER.size :]
    begin = _HEADER.size
    if questions != 1 or data[begin : begin + len(asked)].lower() != asked.lower():
        # A server that cannot even read the question answers with its code alone.
        return DnsAnswer(flags & 0xF, [], is_cut=False) if questions == 0 and flags & 0xF else None
    kind = int.from_bytes(asked[-4:-2], "big")
    addresses = _addresses(data, begin + len(asked), min(answers, MOST_RECORDS), kind)
    return DnsAnswer(flags & 0xF, addresses, is_cut=bool(flags & 0x0200))


def _addresses(data: bytes, at: int, count: int, kind: int) -> list[str]:
    found = []
    for _ in range(count):
        at = _skip_name(data, at)
        if at + _RECORD.size > len(data):
            raise ValueError("cut off within a record")
        record_kind, record_class, _, length = _RECORD.unpack_from(data, at)
        at += _RECORD.size
        body = data[at : at + length]
        if len(body) != length:
            raise ValueError("cut off within a record")
        at += length
        if record_kind == kind and record_class == INTERNET and length == (4 if kind == TYPES["A"] else 16):
            found.append(str(ipaddress.ip_address(body)))
    return found


def _skip_name(data: bytes, at: int) -> int:
    """Return where a name ends: at its zero, or behind the pointer to its rest, which nobody needs to follow here."""
    for _ in range(128):
        if at >= len(data):
            break
        length = data[at]
        if length >= 0xC0:
            return at + 2
        if length == 0:
            return at + 1
        if length >= 0x40:
            break
        at += 1 + length
    raise ValueError("a name without an end")
