"""Remove from this environment what the given lock file does not name: a package that left the lock leaves here too."""

import re
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

KEPT = {"pip", "setuptools"}


def normalized(name: str) -> str:
    """Return a distribution's name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def main(lock: Path) -> None:
    """Uninstall every distribution that `lock` does not pin."""
    pinned = {normalized(match[1]) for match in re.finditer(r"^([A-Za-z0-9._-]+)==", lock.read_text(), re.MULTILINE)}
    present = {normalized(distribution.metadata["Name"]) for distribution in distributions()}
    surplus = sorted(present - pinned - KEPT)
    if surplus:
        subprocess.run([sys.executable, "-m", "pip", "uninstall", "--quiet", "--yes", *surplus], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
