"""The web process of a panel on a database of its own: what machines talk to, without worker, beat and pages' files."""

import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import psycopg
from django.conf import settings

ROOT = Path(__file__).resolve().parents[2]
PASSWORD = "correct-horse-battery"
START_SECONDS = 120


class LivePanel:
    """Use as a context manager; `api` is a client of the admin."""

    def __init__(self):
        self.directory = tempfile.TemporaryDirectory(prefix="fleetdeck-live-")
        self.database = f"live_{os.getpid()}_{time.monotonic_ns()}"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.server = settings.DATABASE_URL
        self.environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "panel.settings",
            "DATABASE_URL": re.sub(r"/[^/?]+(?=\?|$)", f"/{self.database}", self.server, count=1),
            "REDIS_URL": settings.REDIS_URL.rpartition("/")[0] + "/5",
            "FLEETDECK_DATA_DIR": self.directory.name,
            "FLEETDECK_ADMIN_PASSWORD": PASSWORD,
        }

    def _manage(self, *arguments):
        command = [sys.executable, "manage.py", *arguments]
        ran = subprocess.run(
            command, cwd=ROOT, env=self.environment, check=False, capture_output=True, text=True, timeout=START_SECONDS
        )
        assert ran.returncode == 0, ran.stderr

    def _sql(self, statement):
        with psycopg.connect(self.server, autocommit=True) as connection:
            connection.execute(statement)

    def __enter__(self):
        self._sql(f'CREATE DATABASE "{self.database}"')
        self._manage("migrate", "--verbosity", "0")
        self._manage("ensure_admin")
        self.log = (Path(self.directory.name) / "web.log").open("wb")
        command = ["-m", "uvicorn", "panel.asgi:application", "--port", str(self.port), "--log-level", "warning"]
        self.process = subprocess.Popen(
            [sys.executable, *command], cwd=ROOT, env=self.environment, stdout=self.log, stderr=self.log
        )
        try:
            self.api = self._log_in()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _log_in(self):
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                body = {"username": "admin", "password": PASSWORD}
                answer = httpx.post(f"{self.url}/api/v1/auth/token/", json=body, timeout=30)
                break
            except httpx.TransportError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise RuntimeError((Path(self.directory.name) / "web.log").read_text()[-3000:]) from None
                time.sleep(0.1)
        answer.raise_for_status()
        return httpx.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {answer.json()['token']}"}, timeout=30
        )

    def __exit__(self, *_):
        if hasattr(self, "api"):
            self.api.close()
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        self._sql(f'DROP DATABASE "{self.database}" WITH (FORCE)')
        self.directory.cleanup()
