"""The agent's wheel, built from the panel's own source at first need: agents always match the panel that serves them.

Built reproducibly and kept in the data directory under the hash of what went in, so every web process and every restart
serve the same bytes.
"""

import hashlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from fleet.agent import __version__

ROOT: Final = Path(__file__).resolve().parent.parent.parent
PROJECT: Final = Path(__file__).resolve().parent / "pyproject.toml"
REQUIREMENTS: Final = ROOT / "requirements" / "agent.txt"
GATEWAY_REQUIREMENTS: Final = ROOT / "requirements" / "agent-gateway.txt"
# Raised when the build itself changes, so that what lies in data directories is built anew.
BUILD: Final = "1"


@dataclass(frozen=True, slots=True)
class ServedFile:
    """A file that machines fetch, with the SHA-256 they check."""

    name: str
    body: bytes
    sha256: str


def served(name: str, body: bytes) -> ServedFile:
    """Return the file with its hash."""
    return ServedFile(name, body, hashlib.sha256(body).hexdigest())


def wheel_sources() -> list[Path]:
    """Return the files of the wheel, sorted: the package's __init__ and the agent with its data files."""
    agent = ROOT / "fleet" / "agent"
    files = [path for path in agent.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return sorted([ROOT / "fleet" / "__init__.py", *(path for path in files if path.suffix != ".pyc")])


def content_hash() -> str:
    """Return a hash of everything that goes into the wheel."""
    digest = hashlib.sha256(f"{BUILD}:{__version__}".encode())
    for path in [PROJECT, *wheel_sources()]:
        digest.update(f"\0{path.relative_to(ROOT)}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def build_wheel(directory: Path) -> Path:
    """Build the wheel into `directory`; returns its path. The same source gives the same bytes."""
    from hatchling.builders.wheel import WheelBuilder

    with tempfile.TemporaryDirectory(prefix="fleetdeck-wheel-") as name:
        stage = Path(name)
        project = PROJECT.read_text().replace('version = "0"', f'version = "{__version__}"')
        (stage / PROJECT.name).write_text(project)
        for source in wheel_sources():
            target = stage / source.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            target.chmod(0o644)
        return Path(next(iter(WheelBuilder(str(stage)).build(directory=str(directory), versions=["standard"]))))


def wheel_in(cache: Path) -> ServedFile:
    """Return the wheel of the present source, from `cache` or built into it. Two processes that build agree in the end."""
    place = cache / content_hash()[:32]
    ready = list(place.glob("*.whl"))
    if not ready:
        cache.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=".build-", dir=cache))
        try:
            build_wheel(fresh)
            os.rename(fresh, place)  # noqa: PTH104 (must fail when another process was first; Path.rename says the same)
        except OSError:
            if not place.is_dir():
                raise
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
        ready = list(place.glob("*.whl"))
    return served(ready[0].name, ready[0].read_bytes())


@lru_cache(maxsize=4)
def agent_wheel(cache: Path) -> ServedFile:
    """Return the wheel, read once a process: the source of a running panel does not change under it."""
    return wheel_in(cache)


@lru_cache(maxsize=1)
def agent_requirements() -> ServedFile:
    """Return the locked requirements of the agent, pinned with hashes and without any index address."""
    return served("requirements.txt", REQUIREMENTS.read_bytes())


@lru_cache(maxsize=1)
def gateway_requirements() -> ServedFile:
    """Return the same for an agent that is a gateway: with the data plane."""
    return served("requirements-gateway.txt", GATEWAY_REQUIREMENTS.read_bytes())
