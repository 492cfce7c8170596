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


def lacks_venv():
    """Return why the installer cannot work with this machine's Python, or an empty text."""
    probe = subprocess.run([SYSTEM_PYTHON, "-c", "import venv, ensurepip"], check=False, capture_output=True)
    return f"{SYSTEM_PYTHON} has no venv module here (apt-get install python3-venv)" if probe.returncode else ""


class Machine:
    """Runs lines as a person would paste them; the user is the one who runs the tests, or nobody when that is root."""

    def __init__(self, **environment):
        self.home = Path(tempfile.mkdtemp(prefix="fleetdeck-home-"))
        self.home.chmod(0o755)
        pip = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_"))}
        path = "/usr/local/bin:/usr/bin:/bin"
        self.environment = {
            "HOME": str(self.home),
            "PATH": path,
            "LANG": "C.UTF-8",
            "FLEETDECK_PYTHON": SYSTEM_PYTHON,
            **pip,
            **environment,
        }
        self.account = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(self.home, nobody.pw_uid, nobody.pw_gid)
            self.account = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}

    def run(self, command, **environment):
        """Run one line; return what it printed and how it ended."""
        return subprocess.run(
            ["sh", "-c", command],
            env={**self.environment, **environment}, cwd=self.home, capture_output=True, text=True, timeout=300, check=False,
            stdin=subprocess.DEVNULL, **self.account,
        )  # fmt: skip

    def processes(self):
        """Return the processes that run from this home."""
        found = []
        for process in psutil.process_iter(["cmdline"]):
            with contextlib.suppress(psutil.Error):
                if any(str(self.home) in part for part in process.info["cmdline"] or []):
                    found.append(process)
        return found

    def close(self):
        """End what runs from this home, and remove it."""
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                process.kill()
        shutil.rmtree(self.home, ignore_errors=True)
