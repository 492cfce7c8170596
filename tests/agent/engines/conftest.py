"""What tests of engines share: the loop with short spans of time, orders for the project's own test engine, its controls."""

import json
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import msgspec
import pytest

from fleet.agent.engines.pace import Pace
from fleet.agent.engines.reconcile import Engines
from fleet.agent.orders import ReadyCheck, ReplicaOrder
from fleet.agent.panel import PanelClient
from fleet.agent.policy import Policy
from tests.waiting import eventually, free_port

ENGINE = Path(__file__).resolve().parents[2] / "engines" / "fake_engine.py"
CHAT = ReadyCheck(
    "stream",
    "/v1/chat/completions",
    "POST",
    {"model": "fake", "stream": True, "max_tokens": 1, "messages": [{"role": "user", "content": "hi"}]},
    timeout_seconds=1.0,
)
QUICK = Pace(
    look=0.1,
    check=0.3,
    recheck=0.1,
    metrics=0.1,
    first_answer=5.0,
    grace=0.8,
    quiet=0.2,
    unannounced_quiet=0.3,
    first_backoff=0.05,
    report=1.0,
    logs=0.05,
    step=0.05,
    stale=3.0,
)


def engine_order(replica=1, *options, **fields):
    """Return an order for the test engine, on a port of its own unless one is named."""
    port = fields.pop("port", None) or free_port()
    command = [sys.executable, str(ENGINE), "--port", str(port), *map(str, options)]
    wanted = {
        "id": replica,
        "generation": 1,
        "endpoint": "chat",
        "revision": 1,
        "wanted": "run",
        "runtime": "process",
        "command": command,
        "port": port,
        "ready": CHAT,
        "metrics_path": "/metrics",
        "health_path": "/health",
        "start_limit_seconds": 30.0,
    }
    return ReplicaOrder(**{**wanted, **fields})


def control(order, **options):
    """Change the options of a running test engine."""
    httpx.post(f"http://127.0.0.1:{order.port}/control", json=options, timeout=5).raise_for_status()


def pid_of(status):
    """Return the engine's process of a status."""
    return int(status.handle.removeprefix("pid "))


def is_alive(pid):
    """Whether there is such a process and it is no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state != "Z"


class Machine:
    """The engines of one state directory, by an agent's loop that can be ended and begun again."""

    def __init__(self, folder, panel, identity, policy, pace):
        self.panel = panel
        self.folder, self.identity, self.policy, self.pace = folder, identity, policy, pace
        self.version = 0
        self.gpus = None
        self.engines = None
        self.begin()

    def begin(self):
        client = PanelClient(self.identity.panel_url, self.identity.agent_token)
        self.engines = Engines(self.folder, self.policy, client, lambda: self.gpus, self.pace)
        self.engines.start()

    def follow(self, *orders):
        self.version += 1
        self.engines.follow(self.version, orders)

    def status(self, replica=1):
        """Return what is told of a replica, None when nothing is."""
        found = [status for status in self.engines.statuses() if status.id == replica]
        return found[0] if found else None

    def until(self, state, replica=1, *, seconds=20.0, **fields):
        """Return the status once a replica is in a state and its fields are such."""
        wanted = {"state": state, **fields}

        def has(status):
            return status is not None and all(getattr(status, name) == value for name, value in wanted.items())

        return eventually(lambda: self.status(replica), has, seconds=seconds, what=f"replica {replica} with {wanted}")

    def told(self):
        """Return every status that the panel was told."""
        return [status for report in list(self.panel.replica_reports) for status in report.replicas]

    def nonce(self, replica=1):
        """Return the name of the present start of a replica."""
        return msgspec.json.decode((self.folder / str(replica) / "run.json").read_bytes())["nonce"]

    def log(self, replica=1, generation=1):
        path = self.folder / str(replica) / f"{generation}.log"
        return path.read_text() if path.exists() else ""

    def end(self):
        self.engines.close(10)

    def clean(self):
        self.end()
        if self.folder.exists():
            Engines(self.folder, self.policy, None, pace=self.pace).stop_all(20)


@pytest.fixture
def machine(tmp_path, panel, identity):
    """A machine whose engines are all stopped afterwards; `machine.make` makes one with another policy or pace."""
    made = []

    def make(pace=QUICK, **policy):
        made.append(Machine(tmp_path / "engines", panel, identity, Policy(**policy), pace))
        return made[-1]

    yield make
    for each in made:
        each.clean()


@pytest.fixture
def streaming():
    """Begin a stream and return once its first token came; `result` gives all tokens that came."""
    with ThreadPoolExecutor(8) as pool:

        def begin(order, tokens):
            began = threading.Event()
            body = {"stream": True, "max_tokens": tokens, "prompt": "go"}
            stream = pool.submit(_tokens, f"http://127.0.0.1:{order.port}/v1/completions", body, began)
            assert began.wait(10)
            return stream

        yield begin


def _tokens(url, body, began):
    tokens = []
    try:
        with httpx.stream("POST", url, json=body, timeout=60) as response:
            for line in response.iter_lines():
                if line.startswith("data: {") and (text := json.loads(line[6:])["choices"][0]["text"]):
                    tokens.append(text)
                    began.set()
    except httpx.RemoteProtocolError:
        pass  # cut
    return tokens


def kill(pid, number=signal.SIGKILL):
    os.kill(pid, number)


def changed(order, **fields):
    """Return an order with other fields."""
    return msgspec.structs.replace(order, **fields)
