"""The data directory: where it is, whose it is, and that one panel at a time runs on it."""

import fcntl
import json
import os
import pwd
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from panel.core.keyfile import write_private
from panel.up.errors import UpError

BASE_DIR: Final = Path(__file__).resolve().parent.parent.parent
OWN_DIRECTORY_MODE: Final = 0o711  # others may pass through (the user of Postgres), not look around


def locate(*, is_demo: bool) -> Path:
    """Return FLEETDECK_DATA_DIR, or `var` (the demo: `var/demo`) beside manage.py, and pass it on to every child.

    This is read here, before the settings, because they make the secret key in it.
    """
    default = BASE_DIR / "var" / "demo" if is_demo else BASE_DIR / "var"
    path = Path(os.environ.get("FLEETDECK_DATA_DIR") or default).resolve()
    os.environ["FLEETDECK_DATA_DIR"] = str(path)
    return path


def user_name(uid: int) -> str:
    """Return the name of a user, or its number where it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def prepare(path: Path) -> None:
    """Make the directory and its folders. Raises UpError when it is somebody else's or cannot be written."""
    try:
        path.mkdir(parents=True, exist_ok=True, mode=OWN_DIRECTORY_MODE)
        owner = path.stat().st_uid
        if owner != os.geteuid():
            raise UpError(
                f"The data directory {path} belongs to {user_name(owner)}, and you are {user_name(os.geteuid())}. "
                f"Run this as {user_name(owner)}, or set FLEETDECK_DATA_DIR to a directory of your own."
            )
        for name in ("logs", "run"):
            (path / name).mkdir(exist_ok=True, mode=OWN_DIRECTORY_MODE if name == "run" else 0o700)
    except (FileExistsError, NotADirectoryError) as error:
        raise UpError(f"The data directory {path} is no directory. Set FLEETDECK_DATA_DIR to another one.") from error
    except OSError as error:
        raise UpError(
            f"The data directory {path} cannot be used: {error.strerror} ({error.filename}). "
            "Set FLEETDECK_DATA_DIR to a directory that you can write."
        ) from error


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the directory for this process. Raises UpError when another panel runs on it.

    The lock is the kernel's: it ends with the process, however that ends.
    """
    with (path / "run" / "up.lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            pid = file.read().strip() or "unknown"
            raise UpError(
                f"A panel already runs on {path} (process {pid}). Stop it with Ctrl-C there, or set FLEETDECK_DATA_DIR "
                "(and FLEETDECK_PORT) for a second one."
            ) from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def replace_private(path: Path, text: str) -> None:
    """Replace a file whole, readable by its owner only."""
    fresh = path.with_name(f".{path.name}.new")
    with suppress(FileNotFoundError):
        fresh.unlink()
    write_private(fresh, text)
    fresh.replace(path)


def read_json(path: Path) -> Any:
    """Return what a JSON file holds, or None when there is none that can be read."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None
