"""A gateway on loopback with replicas behind it, for tests and the benchmark: the agent's lane, a real Envoy, real processes."""

import hashlib
import json
import signal
import subprocess
import sys
import time

import httpx

from fleet.agent.gateway.lane import GatewayLane
from fleet.agent.orders import GatewayOrder, KeyRule, Route, Upstream
from fleet.agent.state import Identity
from tests.agent.gateway.panel import GatewayPanel
from tests.waiting import eventually, free_port

# A connection for each request, so that all of Envoy's workers are met; made once, because certificates are slow to load.
HTTP = httpx.Client(verify=False, timeout=20, limits=httpx.Limits(max_keepalive_connections=0))
KEY = "fdk_testtest_0123456789abcdefghijklmnopqrstuvwxyzABCD"


def rule(number, key=KEY, **more):
    return KeyRule(number, hashlib.sha256(key.encode()).hexdigest(), **more)


class ReplicaProcess:
    """One replica as a process that can be killed and frozen."""

    def __init__(self, name, port=None):
        self.name, self.port = name, port or free_port()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.agent.gateway.upstream", str(self.port), name], stdout=subprocess.PIPE
        )
        assert self.process.stdout.readline() == b"listening\n"

    def upstream(self, number, **more):
        return Upstream(number, "127.0.0.1", self.port, **more)

    def signal(self, number):
        self.process.send_signal(number)

    def end(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Place:
    """The panel, the lane and the address of one gateway."""

    def __init__(self, folder):
        self.folder = folder
        self.panel = GatewayPanel()
        self.order = GatewayOrder(free_port(), 0, host="127.0.0.1")
        self.url = f"http://127.0.0.1:{self.order.port}"
        self.orders = 0
        self.lane = None

    def start(self, **options):
        """Begin a run of the agent's gateway."""
        self.lane = GatewayLane(self.folder, Identity(self.panel.url, "fda_abcdefgh_secret", 7, "gate"), **options)
        self.lane.start()
        return self

    def say(self, *routes, wait=True, **more):
        """Have the panel order these routes; returns when they are served."""
        version = self.panel.say(*routes, **more)
        self.follow(version)
        if wait:
            self.await_version(version)
        return version

    def follow(self, version):
        self.orders += 1
        self.order = GatewayOrder(
            self.order.port,
            version,
            host=self.order.host,
            certificate_file=self.order.certificate_file,
            key_file=self.order.key_file,
        )
        self.lane.follow(self.orders, self.order)

    def await_version(self, version, seconds=20.0):
        eventually(
            lambda: self.lane._reading,
            lambda reading: reading.applied_version >= version and reading.state == "serving",
            seconds=seconds,
        )

    def restart(self):
        """End this run of the agent and begin another one; the data plane is not told."""
        self.lane.close()
        return self.start()

    def end(self):
        self.lane.follow(self.orders + 1, None)
        eventually(lambda: self.lane.pid, lambda pid: pid is None)
        self.lane.close()
        self.panel.close()

    def get(self, path, key=KEY, **more):
        headers = {**({"authorization": f"Bearer {key}"} if key else {}), **more.pop("headers", {})}
        return HTTP.request(more.pop("method", "GET"), f"{self.url}{path}", headers=headers, **more)

    def post(self, path, value, key=KEY, **more):
        return self.get(path, key, method="POST", content=json.dumps(value), **more)


def words(text):
    """The events of a stream: how many words came, and whether it ended as streams end."""
    events = [line.removeprefix("data: ") for line in text.split("\n\n") if line.startswith("data: ")]
    return sum('"content"' in one for one in events), "[DONE]" in events


def chat(name, *upstreams, **more):
    """A route with health checks."""
    return Route(
        name, list(upstreams), **{"health_path": "/health", "idle_seconds": 5.0, "first_byte_seconds": 5.0, **more}
    )


def ready(place, path, seconds=20.0):
    """Wait until an endpoint answers with 200."""
    return eventually(
        lambda: place.get(path).status_code, lambda status: status == 200, seconds=seconds, passing=httpx.ConnectError
    )


def elapsed(begin):
    return time.monotonic() - begin
