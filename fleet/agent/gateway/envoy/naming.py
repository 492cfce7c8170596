"""Versions of Envoy's files: names of their content, by which Envoy says which of them it has taken."""

import hashlib


def digest_of(data: bytes) -> str:
    """Return a short name of some content."""
    return hashlib.sha256(data).hexdigest()[:16]
