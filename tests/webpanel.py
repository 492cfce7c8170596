"""A panel's web process on a database of its own: what machines and API clients talk to, without worker and beat."""

import contextlib
import os
import subprocess
import sys
import uuid
from pathlib import Path

import httpx

from tests import databases
from tests.waiting import eventually, free_port

ROOT = databases.ROOT
PASSWORD = "correct-horse-battery"
VALKEY_DATABASE = 14  # of no worker of this run


class WebPanel:
    """Use as a context manager; `api` is an HTTP client of the admin."""

    def __init__(self, directory, **environment):
        self.log = Path(directory) / "web.log"
        self.database = f"web_{uuid.uuid4().hex[:12]}"
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "panel.settings.testing",
            "DATABASE_URL": databases.named(self.database),
            "REDIS_URL": f"{os.environ['REDIS_URL'].rpartition('/')[0]}/{VALKEY_DATABASE}",
            "FLEETDECK_DATA_DIR": str(Path(directory) / "data"),
            "FLEETDECK_PUBLIC_URL": self.url,
            "FLEETDECK_ADMIN_PASSWORD": PASSWORD,
            "PYTHONWARNINGS": "ignore",
            **environment,
        }

    @property
    def database_url(self):
        return self.environment["DATABASE_URL"]

    def __enter__(self):
        databases.create(self.database)
        subprocess.run(
            [sys.executable, "manage.py", "ensure_admin"],
            cwd=ROOT, env=self.environment, check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        command = ["-m", "uvicorn", "panel.asgi:application", "--port", str(self.port), "--log-level", "warning"]
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, *command], cwd=ROOT, env=self.environment, stdout=output, stderr=output
            )
        try:
            token = eventually(self._log_in, passing=httpx.TransportError, seconds=120, what=self.tail)
        except BaseException:
            self.__exit__()
            raise
        headers = {"Authorization": f"Bearer {token}"}
        self.api = httpx.Client(base_url=self.url, headers=headers, timeout=60)
        return self

    def __exit__(self, *_):
        if hasattr(self, "api"):
            self.api.close()
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(20)
        self.process.kill()
        self.process.wait()
        databases.drop(self.database)

    def _log_in(self):
        assert self.process.poll() is None, f"the panel ended with {self.process.returncode}:\n{self.tail()}"
        body = {"username": "admin", "password": PASSWORD}
        answer = httpx.post(f"{self.url}/api/v1/auth/token/", json=body, timeout=30)
        answer.raise_for_status()
        return answer.json()["token"]

    def tail(self):
        """Return the last of what the process said."""
        return self.log.read_text(errors="replace")[-3000:]

    def get(self, path):
        """Return the JSON of a page of the API; fails with the answer when it is an error."""
        return self._answer(self.api.get(f"/api/v1/{path}"))

    def post(self, path, body):
        """Post to the API; return the JSON of its answer."""
        return self._answer(self.api.post(f"/api/v1/{path}", json=body))

    def results(self, path):
        """Return the first page of a list."""
        return self.get(path)["results"]

    def _answer(self, answer):
        assert answer.is_success, (
            f"{answer.request.method} {answer.request.url}: {answer.status_code} {answer.text[:1000]}"
        )
        return answer.json() if answer.content else None
