"""A rented machine as the installer meets it: an ordinary user with a home of their own and no init system."""

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import psutil

SYSTEM_PYTHON = "/usr/bin/python3"
RUN_SECONDS = 500


def lacks_venv():
    """Return why the installer cannot work with this machine's Python, or an empty text."""
    probe = subprocess.run([SYSTEM_PYTHON, "-c", "import venv, ensurepip"], check=False, capture_output=True)
    return f"{SYSTEM_PYTHON} has no venv module here (apt-get install python3-venv)" if probe.returncode else ""


def package_settings():
    """Return what this shell was told of package indexes and certificates."""
    return {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_"))}


@contextlib.contextmanager
def package_cache():
    """Make one cache of packages for several machines: they all fetch the same ones."""
    directory = tempfile.mkdtemp(prefix="fleetdeck-pip-")
    Path(directory).chmod(0o777)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


class Machine:
    """Runs lines as a person would paste them. The user is the one who runs the tests, or nobody when that is root.

    Use as a context manager; what runs from its home ends with it.
    """

    def __init__(self, **environment):
        self.home = Path(tempfile.mkdtemp(prefix="fleetdeck-home-"))
        self.home.chmod(0o755)
        self.app = self.home / ".local/share/fleetdeck-agent"
        self.state = self.home / ".local/state/fleetdeck-agent"
        own = {"HOME": str(self.home), "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
        self.environment = {**own, "FLEETDECK_PYTHON": SYSTEM_PYTHON, **package_settings(), **environment}
        self.account = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(self.home, nobody.pw_uid, nobody.pw_gid)
            self.account = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.agents():
            with contextlib.suppress(psutil.Error):
                process.kill()
        shutil.rmtree(self.home, ignore_errors=True)

    def run(self, command, **environment):
        """Run one line; return what it printed and how it ended."""
        return subprocess.run(
            ["sh", "-c", command],
            env={**self.environment, **environment}, cwd=self.home, capture_output=True, text=True, check=False,
            timeout=RUN_SECONDS, stdin=subprocess.DEVNULL, **self.account,
        )  # fmt: skip

    def agents(self):
        """Return the processes that run from this home."""
        found = []
        for process in psutil.process_iter(["cmdline"]):
            with contextlib.suppress(psutil.Error):
                if any(str(self.home) in part for part in process.info["cmdline"] or []):
                    found.append(process)
        return found

    def agent(self):
        """Return the agent itself, without the loop around it."""
        return next((one for one in self.agents() if "fleet.agent" in one.cmdline() and one.status() != "zombie"), None)

    def log(self):
        """Return what the agent wrote."""
        path = self.app / "agent.log"
        return path.read_text(errors="replace") if path.exists() else ""
