"""Machines that serve, and callers: real agents with a real gateway, real engines as processes, the usual client."""

import signal
import subprocess
import sys
import threading

import httpx
import openai
import psutil

from tests.e2e.running import ROOT, wait_until
from tests.scenarios.running import Process

FAKE_ENGINE = ROOT / "tests" / "engines" / "fake_engine.py"
LLAMA_SERVER = ROOT / "tests" / "engines" / "llama_server.py"


class Rig:
    """A machine without cards whose agent runs engines, and with `gateway_port` the gateway."""

    def __init__(self, panel, api, name, directory, gateway_port=None):
        self.panel, self.name, self.directory = panel, name, directory
        directory.mkdir()
        self.environment = {**panel.environment, "PATH": f"{self._programs()}:{panel.environment['PATH']}"}
        self.state = ("--state-dir", str(directory / "agent"))
        token = api.post("/api/v1/join-tokens/", json={"name": name}).json()["token"]
        role = ("--role", "gateway", "--gateway-port", str(gateway_port)) if gateway_port else ()
        self._run("join", "--panel", panel.url, "--token", token, *role)
        self.agent = None
        self.start()
        self.id = wait_until(lambda: self._ready(api), seconds=60, what=f"{name} reports")

    def _programs(self):
        """Return a folder whose `llama-server` is the one of the tests."""
        folder = self.directory / "bin"
        folder.mkdir()
        program = folder / "llama-server"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{LLAMA_SERVER}" "$@"\n')
        program.chmod(0o755)
        return folder

    def _run(self, *command):
        done = subprocess.run(
            [sys.executable, "-m", "fleet.agent", *command, *self.state],
            cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self):
        """Start the agent (again)."""
        command = ("-m", "fleet.agent", "run", *self.state)
        self.agent = Process("run", *command, directory=self.directory, environment=self.environment)

    def kill(self):
        """End the agent as a crash does; its engines run on."""
        self.agent.process.kill()
        self.agent.process.wait()

    def _ready(self, api):
        self.agent.check()
        servers = api.get("/api/v1/servers/").json()["results"]
        return next((each["id"] for each in servers if each["name"] == self.name and each["state"] == "ready"), None)

    def leave(self):
        """Stop the agent and all that it runs."""
        self.agent.stop()
        self._run("leave", "--force")


def engine_process(replica):
    """Return the process of a replica's engine, by what its agent calls it."""
    return psutil.Process(int(replica["handle"].removeprefix("pid ")))


def fake_spec(*options, **changes):
    """The engine of the project's own, with options."""
    body = {"model": "fake", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1, "stream": True}
    custom = {
        "command": [sys.executable, str(FAKE_ENGINE), "--port", "{port}", "--host", "{host}", *options],
        "ready_kind": "chat_stream",
        "ready_path": "/v1/chat/completions",
        "ready_body": body,
        "health_path": "/health",
        "metrics_path": "/metrics",
    }
    return {"kind": "custom", "runtime": "process", "custom": custom, "drain_seconds": 60, **changes}


class Api:
    """What operators ask for over REST; a request that meets the panel's restart is sent again."""

    def __init__(self, client):
        self.client = client

    def get(self, path):
        answer = self.client.get(f"/api/v1/{path}")
        answer.raise_for_status()
        return answer.json()

    def post(self, path, body=None):
        answer = self.client.post(f"/api/v1/{path}", json=body or {})
        assert answer.is_success, answer.text
        return answer.json()

    def delete(self, path):
        self.client.delete(f"/api/v1/{path}").raise_for_status()

    def endpoint(self, name):
        return self.get(f"endpoints/{name}/")

    def replicas(self, name):
        """Its replicas that have not ended, the oldest first."""
        found = self.get(f"replicas/?is_open=true&endpoint={self.endpoint(name)['id']}")["results"]
        return sorted(found, key=lambda each: each["id"])

    def deploy(self, name, spec, replicas=1, **settings):
        """Make an endpoint without cards and wait until it is healthy and every gateway has it."""
        self.post("endpoints/", {"name": name, "spec": spec, "gpus": 0, "desired_replicas": replicas, **settings})
        self.until_phase(name, "healthy")

    def until_phase(self, name, *phases, seconds=90):
        """Wait until it is in one of the phases and gateways serve what the panel wants."""
        wanted = f"{name} is {' or '.join(phases)}"
        wait_until(
            lambda: self.endpoint(name)["phase"] in phases,
            seconds=seconds,
            what=lambda: f"{wanted}, and not {self.story(name)}",
        )
        wait_until(self.is_routed, seconds=30, what="Gateways that are up to date")

    def story(self, name):
        """How it is, for the sentence of a failure."""
        replicas = self.get(f"replicas/?endpoint={self.endpoint(name)['id']}")["results"]
        told = [(each["server_name"], each["state"], each["reason"], each["detail"]) for each in replicas[:4]]
        return f"{self.endpoint(name)['phase']}: {told}; {self.get(f'endpoints/{name}/rollouts/')['results'][:1]}"

    def is_routed(self):
        gateways = self.get("gateways/")["results"]
        return all(each["applied_version"] == each["routes_version"] for each in gateways)

    def remove(self, name):
        """Delete an endpoint and wait until nothing of it is left."""
        self.delete(f"endpoints/{name}/")
        gone = f"/api/v1/endpoints/{name}/"
        wait_until(lambda: self.client.get(gone).status_code == 404, seconds=90, what=f"{name} is gone")


class Callers:
    """So many callers at once, each asking one thing after the other until told to stop. What befell them is counted.

    outcomes: `ok`; `not started`: failed before the answer began, with its headers; `cut`: broke off after that.
    """

    def __init__(self, client, model, *, count, tokens):
        self.client, self.model, self.tokens = client, model, tokens
        self.outcomes, self.errors = {"ok": 0, "not started": 0, "cut": 0}, []
        self._lock, self._is_over = threading.Lock(), threading.Event()
        self._threads = [threading.Thread(target=self._ask_on, daemon=True) for _ in range(count)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._is_over.set()
        for thread in self._threads:
            thread.join(120)
        assert not any(thread.is_alive() for thread in self._threads), "a caller waits for ever"

    def _ask_on(self):
        while not self._is_over.is_set():
            outcome, error = self._ask()
            with self._lock:
                self.outcomes[outcome] += 1
                if error is not None:
                    self.errors.append(error)

    def _ask(self):
        has_begun, pieces = False, 0
        try:
            messages = [{"role": "user", "content": "w001"}]
            stream = self.client.chat.completions.create(
                model=self.model, messages=messages, max_tokens=self.tokens, stream=True, temperature=0
            )
            has_begun = True
            for chunk in stream:
                pieces += bool(chunk.choices and chunk.choices[0].delta.content)
        except (openai.OpenAIError, httpx.HTTPError) as error:
            return ("cut" if has_begun else "not started"), repr(error)
        if pieces < self.tokens:
            return "cut", f"{pieces} of {self.tokens} pieces"
        return "ok", None

    def until_ok(self, count, seconds=60):
        """Wait until so many more have been answered."""
        wanted = self.outcomes["ok"] + count
        wait_until(lambda: self.outcomes["ok"] >= wanted, seconds=seconds, what=f"{count} answers")


def freeze(process):
    """Stop a process in its tracks: its connections stay open and nothing comes."""
    process.send_signal(signal.SIGSTOP)


def thaw(process):
    process.send_signal(signal.SIGCONT)


def openai_client(url, key):
    """The client that callers use; it tries nothing twice."""
    return openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0, timeout=60)
