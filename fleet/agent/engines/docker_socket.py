"""Where the Docker Engine API listens on this machine, and a client for it; the package is imported only then."""

import os
import stat
from importlib import util
from pathlib import Path
from typing import Any, Final

from fleet.agent.engines.contract import UnusableError

USUAL: Final = ("/var/run/docker.sock", "/run/podman/podman.sock")
ANSWER_SECONDS: Final = 15.0
NO_PACKAGE: Final = (
    "The agent's environment lacks the package docker: run the installer again, or pip install docker there."
)
NO_PERMISSION: Final = (
    "The agent's user may not use {}. Who may is as good as root: the installer allows it with --containers."
)


def socket_url(configured: str) -> str:
    """Return the address of the socket to use. Raises UnusableError."""
    named = configured or os.environ.get("DOCKER_HOST", "")
    if named:
        return named
    own = f"/run/user/{os.geteuid()}/podman/podman.sock"
    for path in (*USUAL, own):
        try:
            is_socket = stat.S_ISSOCK(Path(path).stat().st_mode)
        except OSError:
            continue
        if is_socket:
            return f"unix://{path}"
    raise UnusableError("There is no Docker here: neither /var/run/docker.sock nor podman's socket exists.")


def is_likely_usable(configured: str) -> bool:
    """Say, without asking it, whether a container engine could be used: for what an agent tells when it joins."""
    try:
        url = socket_url(configured)
    except UnusableError:
        return False
    path = url.removeprefix("unix://")
    return util.find_spec("docker") is not None and (path == url or os.access(path, os.R_OK | os.W_OK))


def connect(configured: str) -> Any:
    """Return a client of the API. Raises UnusableError with what to do."""
    url = socket_url(configured)
    if util.find_spec("docker") is None:
        raise UnusableError(NO_PACKAGE)
    path = url.removeprefix("unix://")
    if path != url and Path(path).exists() and not os.access(path, os.R_OK | os.W_OK):
        raise UnusableError(NO_PERMISSION.format(path))
    import docker

    try:
        return docker.APIClient(base_url=url, version="auto", timeout=ANSWER_SECONDS)
    except docker.errors.DockerException as error:
        raise UnusableError(f"The Docker Engine API at {url} does not answer: {str(error)[:300]}") from error
