"""Real agents on a real panel, as processes: what the scenarios drive and ask.

The agent is `python -m fleet.agent`, joined with a token from the panel's API. Nothing is called from inside: values are
read where people read them.
"""

import subprocess
import sys

import psycopg

from tests.waiting import PATIENCE_SECONDS, eventually
from tests.webpanel import ROOT, WebPanel


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


class Panel(WebPanel):
    """A running panel whose servers' agents can be made quick, and that tells how quick they were."""

    def quicken(self, server_id):
        """Let a server's agent read and report every second."""
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            connection.execute(
                "UPDATE fleet_agent SET sample_interval_seconds = 1, report_interval_seconds = 1 WHERE server_id = %s",
                [server_id],
            )

    def seconds_until_cards(self, server_id):
        """Return, for each card of a server, how long after its agent joined the panel first knew of it."""
        with psycopg.connect(self.database_url) as connection:
            rows = connection.execute(
                "SELECT extract(epoch FROM g.first_seen_at - a.joined_at)::float8"
                " FROM fleet_gpu g JOIN fleet_agent a USING (server_id) WHERE server_id = %s",
                [server_id],
            ).fetchall()
        return [seconds for (seconds,) in rows]


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
            return eventually(ask, wanted, seconds=seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\nThe agent said:\n{self.process.tail()}") from None
