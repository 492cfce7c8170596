"""Install a lock file's packages into this environment: by uv when the lock holds it, in a third of pip's time; else by pip.

Both check every file by its hash, so neither the index nor the installer decides what is installed.
"""

import ast
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

PIP: Final = (sys.executable, "-m", "pip", "--disable-pip-version-check")
HASHED: Final = ("install", "--quiet", "--require-hashes", "--requirement")
# What people tell pip about their network, and how uv, which reads none of pip's files, is told the same.
TOLD: Final = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
}
SEPARATORS: Final = {"UV_FIND_LINKS": ","}
PRECEDENCE: Final = ("global", "install", ":env:")


def pip_settings(listed: str) -> dict[str, str]:
    """Read what `pip config list` prints into option → value; the environment stands above `install`, that above `global`."""
    found: dict[str, tuple[int, str]] = {}
    for section, option, value in re.findall(r"^(\S+?)\.([\w-]+)=(.+)$", listed, re.MULTILINE):
        if section in PRECEDENCE:
            rank = PRECEDENCE.index(section)
            found[option] = max(found.get(option, (-1, "")), (rank, str(ast.literal_eval(value))))
    return {option: value for option, (_, value) in found.items()}


def uv_environment(settings: dict[str, str]) -> dict[str, str]:
    """Return pip's settings as variables of uv. Several values of one option stand on lines or behind spaces in pip's."""
    return {
        variable: SEPARATORS.get(variable, " ").join(settings[option].split())
        for option, variable in TOLD.items()
        if settings.get(option)
    }


def install_with_uv(lock: Path) -> bool:
    """Install uv from the lock, then everything by it; return whether that was done."""
    block = re.search(r"^uv==.*\n(?:[ \t].*\n?)*", lock.read_text(), re.MULTILINE)
    if block is None:
        return False
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as only:
        only.write(block[0])
        only.flush()
        if subprocess.run([*PIP, *HASHED, only.name], check=False).returncode != 0:
            return False
    listed = subprocess.run([*PIP, "config", "list"], capture_output=True, text=True, check=False).stdout
    # Every index is asked for every package, as pip does: the hashes say which file is the right one.
    environment = {**os.environ, "UV_INDEX_STRATEGY": "unsafe-best-match", **uv_environment(pip_settings(listed))}
    if os.environ.get("PIP_NO_CACHE_DIR"):
        environment["UV_NO_CACHE"] = "1"
    command: list[str | Path] = [
        Path(sys.executable).with_name("uv"),
        "pip",
        "--quiet",
        "install",
        "--python",
        sys.executable,
    ]
    options: list[str | Path] = ["--require-hashes", "--compile-bytecode", "--link-mode", "copy", "--requirement", lock]
    return subprocess.run([*command, *options], env=environment, check=False).returncode == 0


def main(lock: Path) -> int:
    """Install what `lock` pins; return the exit code."""
    if install_with_uv(lock):
        return 0
    return subprocess.run([*PIP, *HASHED, lock], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
