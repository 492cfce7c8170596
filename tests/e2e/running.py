"""A whole panel as `make up` runs it, in a directory and on a port of its own, for tests that need all of it."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import httpx
import psutil
import psycopg

from tests.waiting import eventually, free_port

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 180
MARKS = {  # what tells a child by its command line
    "web": "panel.asgi:application",
    "worker": "worker",
    "beat": "beat",
    "valkey": "valkey-server",
    "postgres": "postgres",
    "agent": "fleet.agent",
}


def wait_until(condition, *, seconds, what):
    """Wait for something of a panel that may be away for a moment; returns what the condition returned."""
    return eventually(condition, seconds=seconds, what=what, passing=(httpx.HTTPError, OSError))


def stored(panel):
    """Return how often each sample of a card, (uuid, Unix ms), is stored."""
    with psycopg.connect(panel.database_url) as connection:
        rows = connection.execute(
            "SELECT g.uuid, round(extract(epoch FROM s.at) * 1000)::bigint"
            " FROM gpu_sample s JOIN fleet_gpu g ON g.id = s.subject_id"
        ).fetchall()
    return Counter(rows)


class RunningPanel:
    """`manage.py up` as a process of its own. Use as a context manager; everything it started ends with it."""

    def __init__(self, *options, environment=None):
        self.directory = Path(tempfile.mkdtemp(prefix="fleetdeck-e2e-"))
        self.directory.chmod(0o755)  # as root, Postgres runs as another user
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.options = options
        self.log = self.directory / "up.log"
        inherited = {
            name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL", "BROKER_URL")
        }
        inherited.pop("DJANGO_SETTINGS_MODULE", None)
        self.environment = {
            **inherited,
            "FLEETDECK_DATA_DIR": str(self.directory / "data"),
            "FLEETDECK_PORT": str(self.port),
            **(environment or {}),
        }

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()
        subprocess.run(["rm", "-rf", str(self.directory)], check=False)

    def start(self):
        """Start and wait until the panel says that it is ready."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "up", *self.options],
                cwd=ROOT, env=self.environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        try:
            wait_until(self.is_ready, seconds=START_SECONDS, what="A ready panel")
        except BaseException:
            self.stop()
            raise

    def stop(self):
        """Stop as Ctrl-C does."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(60)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def is_ready(self):
        """Whether /readyz says 200."""
        if self.process.poll() is not None:
            raise RuntimeError(f"up ended with {self.process.returncode}:\n{self.log.read_text()[-4000:]}")
        return httpx.get(f"{self.url}/readyz", timeout=5).status_code == 200

    @property
    def password(self):
        """The admin's password."""
        return (self.directory / "data" / "admin-password").read_text().strip()

    @property
    def database_url(self):
        """Where the embedded Postgres listens."""
        return json.loads((self.directory / "data" / "services.json").read_text())["DATABASE_URL"]

    def child(self, name):
        """Return the process of a child by its name, the outermost one that fits."""
        for process in psutil.Process(self.process.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if MARKS[name] in " ".join(process.cmdline()):
                    return process
        raise LookupError(f"no child {name}")

    def kill(self, name):
        """End a child with SIGKILL and wait until it is gone; the supervisor starts it again."""
        process = self.child(name)
        process.kill()
        process.wait(10)

    def client(self):
        """Return an API client of the admin."""
        answer = httpx.post(
            f"{self.url}/api/v1/auth/token/", json={"username": "admin", "password": self.password}, timeout=10
        )
        answer.raise_for_status()
        return httpx.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {answer.json()['token']}"}, timeout=10
        )
