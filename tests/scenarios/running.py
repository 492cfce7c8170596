"""A real panel and real agents, as processes: what the scenarios drive and ask.

The panel is uvicorn with the panel's ASGI application on a database of its own; the agent is `python -m fleet.agent`,
joined with a token from the panel's API. Nothing is called from inside: values are read where people read them.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg

ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE_SECONDS = 90  # a busy machine takes seconds to start an agent
PASSWORD = "scenario-password-71"
MAKE_ADMIN = """
import django; django.setup()
from panel.accounts.services.users import admin_ensure
admin_ensure(username="admin", password="%s")
"""


def eventually(ask, wanted=bool, seconds=PATIENCE_SECONDS):
    """Return what `ask` gives once `wanted` is true of it; fail with the last answer when that never happens."""
    deadline = time.monotonic() + seconds
    while True:
        answer = ask()
        if wanted(answer):
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s; the last answer was {answer!r}")
        time.sleep(0.1)


def free_port():
    """Return a port of loopback that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Process:
    """One program with its output in a file, ended at the end."""

    def __init__(self, name, *command, directory, environment):
        self.name = name
        self.log = directory / f"{name}.log"
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, *command],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def tail(self):
        return self.log.read_text(errors="replace")[-3000:]

    def check(self):
        if self.process.poll() is not None:
            raise AssertionError(f"{self.name} ended with {self.process.returncode}:\n{self.tail()}")

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        return self.process.returncode


class Panel:
    """A running panel and an administrator's token for its API."""

    def __init__(self, directory):
        self.directory = directory
        self.url = f"http://127.0.0.1:{free_port()}"
        base = urlsplit(os.environ["DATABASE_URL"])
        name = f"scenarios_{uuid.uuid4().hex[:12]}"
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        self.database_url = urlunsplit(base._replace(path=f"/{name}"))
        self.environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "panel.settings.testing",
            "DATABASE_URL": self.database_url,
            "FLEETDECK_DATA_DIR": str(directory / "data"),
            "FLEETDECK_PUBLIC_URL": self.url,
            "PYTHONWARNINGS": "ignore",
        }
        self._once("manage.py", "migrate", "--verbosity", "0")
        self._once("-c", MAKE_ADMIN % PASSWORD)
        command = (
            "-m",
            "uvicorn",
            "panel.asgi:application",
            "--port",
            self.url.rsplit(":", 1)[1],
            "--log-level",
            "warning",
        )
        self.process = Process("panel", *command, directory=directory, environment=self.environment)
        self.token = ""
        eventually(self._log_in)

    def _once(self, *command):
        subprocess.run([sys.executable, *command], cwd=ROOT, env=self.environment, check=True)

    def _log_in(self):
        self.process.check()
        with contextlib.suppress(OSError):
            self.token = self.post("auth/token/", {"username": "admin", "password": PASSWORD})["token"]
        return self.token

    def _request(self, method, path, body=None):
        request = urllib.request.Request(f"{self.url}/api/v1/{path}", method=method)
        request.add_header("Content-Type", "application/json")
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        data = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(request, data, timeout=60) as response:
                return json.loads(response.read() or b"null")
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read().decode()[:1000]}") from error

    def get(self, path):
        """Return the JSON of a page of the API."""
        return self._request("GET", path)

    def post(self, path, body):
        """Post to the API; return the JSON of its answer."""
        return self._request("POST", path, body)

    def results(self, path):
        """Return the first page of a list."""
        return self.get(path)["results"]

    def quicken(self, server_id):
        """Let a server's agent read and report every second."""
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            connection.execute(
                "UPDATE fleet_agent SET sample_interval_seconds = 1, report_interval_seconds = 1 WHERE server_id = %s",
                [server_id],
            )

    def stop(self):
        self.process.stop()


class Story:
    """A server of the panel whose agent reads some NVML; asked for through the API."""

    def __init__(self, panel, name, directory, environment):
        self.panel = panel
        self.directory = directory
        self.environment = {**panel.environment, **environment}
        self.state = ("--state-dir", str(directory / "agent"))
        token = panel.post("join-tokens/", {"name": name, "provider": "Test", "region": "here"})["token"]
        subprocess.run(
            [sys.executable, "-m", "fleet.agent", "join", "--panel", panel.url, "--token", token, *self.state],
            cwd=ROOT,
            env=self.environment,
            check=True,
            capture_output=True,
        )
        [self.id] = [server["id"] for server in panel.results("servers/?limit=500") if server["name"] == name]
        panel.quicken(self.id)
        self.process = None
        self.start()

    def start(self):
        """Start the agent (again)."""
        command = ("-m", "fleet.agent", "run", *self.state)
        self.process = Process("run", *command, directory=self.directory, environment=self.environment)

    def stop(self):
        return self.process.stop()

    def server(self):
        """Return the server as the API tells it."""
        self.process.check()
        return self.panel.get(f"servers/{self.id}/")

    def gpus(self):
        """Return its GPUs by index, instances and cards without an index last."""
        self.process.check()
        gpus = self.panel.results(f"gpus/?server={self.id}&limit=500")
        return sorted(gpus, key=lambda gpu: (gpu["index"] is None, gpu["index"] or 0))

    def gpu(self, uuid_):
        """Return one GPU in full."""
        [gpu] = [each for each in self.gpus() if each["uuid"] == uuid_]
        return self.panel.get(f"gpus/{gpu['id']}/")

    def latest(self, uuid_):
        """Return the latest values of one GPU, {} before the first."""
        return next((gpu["latest"] or {} for gpu in self.gpus() if gpu["uuid"] == uuid_), {})

    def until(self, ask, wanted=bool, seconds=PATIENCE_SECONDS):
        """Wait for an answer; on failure, show what the agent said."""
        try:
            return eventually(ask, wanted, seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\nThe agent said:\n{self.process.tail()}") from None
