"""`manage.py up` as a person runs it: real processes in a directory of their own."""

import contextlib
import http.client
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil
import psycopg
import pytest
import redis

from panel.core import liveness
from panel.up.datadir import BASE_DIR
from tests.waiting import eventually, free_port

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
PATIENCE_SECONDS = 120
NAMES = ("postgres", "valkey", "web", "worker", "beat", "prober", "agent")


class Panel:
    """A running `manage.py up`, its output so far, and its processes."""

    def __init__(self, data_dir, *options, **environment):
        self.data_dir = data_dir
        self.port = free_port()
        unwanted = {"DATABASE_URL", "REDIS_URL", "BROKER_URL", "XDG_RUNTIME_DIR", "DJANGO_SETTINGS_MODULE"}
        self.environment = {name: value for name, value in os.environ.items() if name not in unwanted}
        self.environment |= {"FLEETDECK_DATA_DIR": str(data_dir), "FLEETDECK_PORT": str(self.port), **environment}
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "up", *options],
            cwd=BASE_DIR,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.lines = []
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            with self._changed:
                self.lines.append(line.rstrip())
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    def until(self, pattern, *, since=0):
        """Return the first line that matches; fail with the whole output when it does not come."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        with self._changed:
            while True:
                for line in self.lines[since:]:
                    if re.search(pattern, line):
                        return line
                left = deadline - time.monotonic()
                if left <= 0 or (self.process.poll() is not None and not self._reader.is_alive()):
                    pytest.fail(f"no line matches {pattern!r} in:\n" + "\n".join(self.lines))
                self._changed.wait(min(left, 1.0))

    def password(self):
        return (self.data_dir / "admin-password").read_text()

    def post(self, path, **body):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def get(self, path, token=""):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
            response = connection.getresponse()
            return response.status, response.read().decode()
        except OSError as error:  # it starts again
            return 0, str(error)
        finally:
            connection.close()

    def until_ready(self):
        self.until(r"Fleetdeck runs at")
        self.eventually(lambda: self.get("/readyz"), lambda answer: answer[0] == 200, what="never ready")

    def eventually(self, ask, wanted=bool, *, what):
        """Wait for an answer; a failure shows the whole output."""
        return eventually(ask, wanted, seconds=PATIENCE_SECONDS, what=lambda: "\n".join([what, *self.lines]))

    def until_a_task_came_through(self, since):
        """Wait until a task that beat sent after `since` was done by a worker."""
        url = json.loads((self.data_dir / "services.json").read_text())["REDIS_URL"]
        with redis.Redis.from_url(url, decode_responses=True) as client:
            self.eventually(
                lambda: float((client.hget(liveness.QUEUE_KEY, "last") or "0 0").split()[0]),
                lambda sent_at: sent_at >= since,
                what="no task came through",
            )

    def descendants(self):
        return psutil.Process(self.process.pid).children(recursive=True)

    def child(self, name):
        """Return the process of one child, by what its command line says."""
        marks = {
            "postgres": "postgres -D",
            "valkey": "valkey-server",
            "web": "uvicorn",
            "worker": "panel.celery:app worker",
            "beat": "panel.celery:app beat",
            "prober": "manage.py prober",
            "agent": "fleet.agent run",
        }

        def found():
            for process in psutil.Process(self.process.pid).children():
                with contextlib.suppress(psutil.Error):
                    if marks[name] in " ".join(process.cmdline()) or marks[name] in process.name():
                        return process
            return None

        return self.eventually(
            found, what=f"no child {name}"
        )  # the agent's process joins first, then becomes the agent

    def stop(self, number=signal.SIGTERM):
        """Ask it to stop and return its exit code."""
        self.process.send_signal(number)
        code = self.process.wait(150)
        self._reader.join(10)
        self.process.stdout.close()
        return code

    def end(self):
        """End whatever a failed test left running."""
        try:
            left = self.descendants()
        except psutil.NoSuchProcess:
            left = []
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for process in left:
            if process.is_running():
                process.kill()
        psutil.wait_procs(left, timeout=10)


@pytest.fixture(scope="module")
def folder():
    """A folder that others can pass through. pytest's own closes itself again whenever another run begins."""
    path = Path(tempfile.mkdtemp(prefix="fleetdeck-up-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def up(folder, request):
    """Start panels on one data directory; end all of them."""
    panels = []

    def start(*options, data_dir=folder / request.node.name[:20], **environment):
        panels.append(Panel(data_dir, *options, **environment))
        return panels[-1]

    yield start
    for panel in panels:
        panel.end()


@pytest.fixture(scope="module")
def running(folder):
    """One panel for the tests that leave it running."""
    panel = Panel(folder / "data directory")
    try:
        panel.until_ready()
        yield panel
        assert panel.stop() == 0
    finally:
        panel.end()


def test_it_says_where_the_panel_is_who_logs_in_and_with_what(running):
    said = "\n".join(line for line in running.lines if line.startswith("up "))
    assert f"Fleetdeck runs at http://127.0.0.1:{running.port}" in said
    password = running.data_dir / "admin-password"
    assert f"User admin, password in {password} unless you changed it" in said
    assert password.stat().st_mode & 0o777 == 0o600
    assert running.get("/login/")[0] == 200
    assert running.get("/healthz") == (200, '{"status": "ok"}')


def test_this_machine_joins_by_itself_and_reports(running):
    token = running.post("/api/v1/auth/token/", username="admin", password=running.password())["token"]
    running.eventually(
        lambda: running.get("/metrics", token)[1],
        lambda metrics: 'fleetdeck_server_memory_used_bytes{server="' in metrics,
        what="never reported",
    )
    [server] = json.loads(running.get("/api/v1/servers/", token)[1])["results"]
    assert server["name"] == platform.node()
    assert server["is_simulated"] is False
    assert server["agent"]["last_seen_at"] is not None
    assert json.loads((running.data_dir / "run/agent.json").read_text())["is_joined"] is True


def test_each_child_that_is_killed_is_named_and_started_again(running):
    for name in NAMES:
        before, since = running.child(name), len(running.lines)
        before.kill()
        told = running.until(rf"up .*{name} \(process", since=since)
        assert f"{name} (process {before.pid}) was ended by SIGKILL" in told
    killed_at = time.time()
    running.until_ready()
    for name in NAMES:
        assert running.child(name).is_running()
    running.until_a_task_came_through(killed_at)


def test_a_second_panel_on_the_same_data_is_refused_and_the_first_goes_on(running, up):
    second = up("--no-agent", data_dir=running.data_dir)
    assert second.process.wait(60) == 1
    assert "A panel already runs on" in second.until("already runs")
    third = up("--no-agent", FLEETDECK_PORT=str(running.port))
    assert third.process.wait(60) == 1
    assert f"Port {running.port} on 127.0.0.1 is in use" in third.until("in use")
    assert running.process.poll() is None


def test_it_stops_cleanly_goes_on_with_its_data_and_survives_being_killed(up):
    panel = up("--no-agent")
    panel.until_ready()
    files = [panel.data_dir / name for name in ("admin-password", "secret-key", "valkey-password")]
    secrets = [path.read_text() for path in files]
    left = panel.descendants()
    assert panel.stop(signal.SIGINT) == 0
    assert psutil.wait_procs(left, timeout=5)[1] == []
    stopped = [line.split("stopping ")[1] for line in panel.lines if "| stopping" in line]
    assert stopped == ["prober", "beat", "worker", "web", "valkey", "postgres"]
    assert panel.lines[-1].endswith("Stopped; the data is kept")

    again = up("--no-agent")
    again.until_ready()
    assert [path.read_text() for path in files] == secrets
    assert not any(re.search(r"migrations|Made|Making|Gathering", line) for line in again.lines)
    left = again.descendants()
    again.process.kill()
    again.process.wait()

    third = up("--no-agent")
    third.until_ready()
    assert [process for process in left if process.is_running()] == []
    assert third.stop() == 0


def test_servers_that_exist_already_take_the_place_of_the_embedded_ones(up):
    name = f"up_{os.getpid()}"
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    url = os.environ["DATABASE_URL"].replace("/postgres?", f"/{name}?")
    panel = up("--no-agent", DATABASE_URL=url, REDIS_URL=os.environ["REDIS_URL"].rpartition("/")[0] + "/9")
    panel.until_ready()
    assert "postgres" not in {process.name() for process in panel.descendants()}
    assert not (panel.data_dir / "postgres").exists()
    assert not (panel.data_dir / "valkey").exists()
    assert panel.stop() == 0
    with psycopg.connect(url, autocommit=True) as connection:
        assert connection.execute("SELECT count(*) FROM accounts_user").fetchone() == (1,)
