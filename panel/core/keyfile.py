"""Secrets that the panel makes for itself and keeps in files only its user can read."""

import os
import secrets
from pathlib import Path


def read_or_create(path: Path, *, length_bytes: int = 48) -> str:
    """Return the secret in `path`; make a random one (URL-safe text, mode 600) when there is none.

    Two processes that start at once agree: whoever links the file first wins. Raises OSError when it cannot be written.
    """
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        pass
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_urlsafe(length_bytes))
    try:
        os.link(fresh, path)
    except FileExistsError:
        pass
    finally:
        fresh.unlink()
    return path.read_text().strip()
