"""Signatures of UCloud's API: SHA-1 over the sorted parameters and the private key. Pure.

Source: docs.ucloud.cn/api/summary/signature; its example is a test.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any


def flattened(params: Mapping[str, Any]) -> dict[str, str]:
    """Return parameters as they are signed and sent: `Disks.0.Size`, `true`, whole numbers in digits; None is left out."""
    found: dict[str, str] = {}
    for name, value in params.items():
        found |= _flat(name, value)
    return found


def _flat(name: str, value: Any) -> dict[str, str]:
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return {key: text for part, inner in value.items() for key, text in _flat(f"{name}.{part}", inner).items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return {key: text for at, inner in enumerate(value) for key, text in _flat(f"{name}.{at}", inner).items()}
    if isinstance(value, bool):
        return {name: "true" if value else "false"}
    return {name: str(value)}


def signature(params: Mapping[str, str], private_key: str) -> str:
    """Return the signature of flattened parameters, PublicKey among them: what is signed must be what is sent."""
    signed = "".join(name + params[name] for name in sorted(params)) + private_key
    return hashlib.sha1(signed.encode()).hexdigest()  # noqa: S324 (the vendor's algorithm)
