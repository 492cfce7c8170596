"""Secrets that the panel makes for itself and keeps in files only its user can read."""

import os
import secrets
from collections.abc import Callable
from pathlib import Path


def write_private(path: Path, text: str) -> None:
    """Make a file that only its user can read. Raises FileExistsError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)


def read_or_create(path: Path, *, length_bytes: int = 48, make: Callable[[], str] | None = None) -> str:
    """Return the secret in `path`; make one (random URL-safe text, or what `make` returns; mode 600) when there is none.

    Two processes that start at once agree: whoever links the file first wins. Raises OSError when it cannot be written.
    """
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        pass
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    write_private(fresh, make() if make else secrets.token_urlsafe(length_bytes))
    try:
        os.link(fresh, path)
    except FileExistsError:
        pass
    finally:
        fresh.unlink()
    return path.read_text().strip()
