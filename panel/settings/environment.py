"""The environment variables of the panel, read once, each with its default and meaning."""

import json
import os
import tomllib
from pathlib import Path

import environ

env = environ.Env()
BASE_DIR = Path(__file__).resolve().parent.parent.parent
DATA_DIR = Path(os.environ.get("FLEETDECK_DATA_DIR", BASE_DIR / "var")).resolve()
PROJECT_VERSION: str = tomllib.loads((BASE_DIR / "pyproject.toml").read_text())["project"]["version"]


def embedded_url(name: str) -> str | None:
    """Return the address of an embedded service that `make up` left in the data directory, or None.

    `manage.py up` writes `services.json` ({"DATABASE_URL": …, "REDIS_URL": …}) so that commands typed beside a running
    panel reach the same servers.
    """
    path = DATA_DIR / "services.json"
    try:
        value = json.loads(path.read_text()).get(name)
    except (OSError, ValueError):
        return None
    return value if isinstance(value, str) else None


def service_url(name: str, default: str) -> str:
    """Return the address of a service: environment first, then the embedded one, then the default."""
    return os.environ.get(name) or embedded_url(name) or default


def secret_key() -> str:
    """Return FLEETDECK_SECRET_KEY, or a key kept in the data directory (mode 600, made when missing)."""
    given = os.environ.get("FLEETDECK_SECRET_KEY")
    if given:
        return given
    from panel.core.keyfile import read_or_create

    return read_or_create(DATA_DIR / "secret-key")
