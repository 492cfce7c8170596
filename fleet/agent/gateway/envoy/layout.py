"""Where Envoy's files lie below the gateway's folder, and how they are replaced: written aside, then moved into place."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

# Envoy runs in the folder, so its files name each other without the folder's own path: that may be long, and may change.
CDS: Final = "cds/cds.json"
LDS: Final = "lds/lds.json"
RDS: Final = "rds/rds.json"
SDS: Final = "sds/sds.json"
EDS_FOLDER: Final = "eds"
KEYS_FOLDER: Final = "keys"
BOOT: Final = "boot.json"
ACCESS_LOG: Final = "access.log"
ENVOY_LOG: Final = "envoy.log"
FOLDERS: Final = ("cds", "lds", "rds", "sds", EDS_FOLDER, KEYS_FOLDER)

Config = dict[str, Any]


def eds_path(name: str) -> str:
    """Return the file of an endpoint's replicas. Each in a folder of its own: Envoy reads again whatever shares one."""
    return f"{EDS_FOLDER}/{name}/eds.json"


def prepare(folder: Path) -> None:
    """Make the folders, for their owner alone. Raises OSError."""
    for path in (folder, *(folder / name for name in FOLDERS)):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)


def replace(path: Path, data: bytes, *, is_forced: bool = False) -> int:
    """Put `data` in place of a file at once, unless that is what it holds; returns the bytes written. Raises OSError.

    is_forced: even if it holds that already, so that whoever watches it reads it again.
    """
    try:
        if path.read_bytes() == data and not is_forced:
            return 0
    except FileNotFoundError:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.new")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    aside.replace(path)
    return len(data)


def discovery(version: str, resources: Sequence[Config | msgspec.Raw]) -> bytes:
    """Return an answer of Envoy's discovery protocol as the bytes of a file."""
    return msgspec.json.encode({"version_info": version, "resources": resources})


def watched(path: str) -> Config:
    """Return where Envoy shall read a resource from, again whenever something is moved into its folder."""
    return {
        "path_config_source": {"path": path, "watched_directory": {"path": str(Path(path).parent)}},
        "resource_api_version": "V3",
    }


def typed(kind: str, /, **fields: Any) -> Config:
    """Return a message of Envoy's API with its type's name."""
    return {"@type": f"type.googleapis.com/{kind}", **fields}
