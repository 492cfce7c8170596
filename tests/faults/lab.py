"""Two namespaces with a line between them, an engine and what stands before it, and the agent’s own jobs on both ends."""

import contextlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec

from fleet.agent.jobs.task import Said, Task
from fleet.agent.probes.result import ProbeResult
from fleet.agent.rounds.plan import Found, Plan

CALLER, HOST = "10.77.0.1", "10.77.0.2"
ENGINE_PORT, FRONT_PORT = 8000, 8443
DEVICE = "line0"
_numbers = itertools.count()


def why_not():
    """Return why this machine cannot do it; "" when it can."""
    if os.geteuid() != 0:
        return "fault injection needs root, for network namespaces"
    if shutil.which("ip") is None:
        return "fault injection needs iproute2 (ip)"
    if not Path("/dev/net/tun").exists():
        return "fault injection needs TUN devices (/dev/net/tun)"
    name = f"fd-try-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        return f"this kernel gives no network namespaces: {made.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return ""


def ip(*arguments):
    """Run `ip`."""
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def go_ahead(pid):
    """Let a process go before everything else of this machine, so that its other work is in no figure.

    Once it has started: starting is work too, and nobody waits for it.
    """
    os.sched_setscheduler(pid, os.SCHED_RR, os.sched_param(5))


def wait_until(moment):
    """Return at a moment of the wall clock."""
    threading.Event().wait(max(moment - time.time(), 0))


class Lab:
    """Use as a context manager. line: see tests.faults.line.Line. directory: for configuration files."""

    def __init__(self, directory, **line):
        number = next(_numbers)
        self.caller, self.host = (f"fd-{os.getpid()}-{number}-{end}" for end in ("c", "h"))
        self.directory = Path(directory)
        self._line = line
        self._stack = contextlib.ExitStack()

    def __enter__(self):
        try:
            for namespace in (self.caller, self.host):
                ip("netns", "add", namespace)
                self._stack.callback(
                    lambda name=namespace: subprocess.run(
                        ["ip", "netns", "del", name], check=False, capture_output=True
                    )
                )
                ip("-n", namespace, "link", "set", "lo", "up")
            self.start(None, "tests.faults.line", self.caller, self.host, json.dumps(self._line))
            for namespace, address, other in ((self.caller, CALLER, HOST), (self.host, HOST, CALLER)):
                ip("-n", namespace, "addr", "add", f"{address}/32", "peer", other, "dev", DEVICE)
                ip("-n", namespace, "link", "set", DEVICE, "up")
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_):
        self._stack.close()

    def within(self, namespace, command):
        """Return a command that runs in a namespace."""
        return ["ip", "netns", "exec", namespace, *command]

    def start(self, namespace, module, *arguments):
        """Run a module until the end of the lab; returns when it says that it is ready."""
        command = [sys.executable, "-m", module, *arguments]
        command = self.within(namespace, command) if namespace else command
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._stack.callback(_end, process)
        if process.stdout.readline().strip() != "ready":
            raise RuntimeError(f"{module} did not start")
        go_ahead(process.pid)

    def engine(self, **settings):
        """Start the engine on the host."""
        self.start(self.host, "tests.faults.engine", str(ENGINE_PORT), json.dumps(settings))

    def front(self, **settings):
        """Start a front on the host."""
        self.start(self.host, "tests.faults.front", str(FRONT_PORT), str(ENGINE_PORT), json.dumps(settings))

    def nginx(self):
        """Start nginx on the host, which holds answers back until they are whole (its own default)."""
        file = self.directory / "nginx.conf"
        file.write_text(
            f"daemon off; master_process off; pid {self.directory}/nginx.pid; error_log stderr error;"
            " events { worker_connections 64; }"
            f" http {{ access_log off; server {{ listen {FRONT_PORT}; location / {{"
            f" proxy_pass http://127.0.0.1:{ENGINE_PORT}; }} }} }}\n"
        )
        command = self.within(self.host, ["nginx", "-c", str(file), "-p", str(self.directory)])
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._stack.callback(_end, process)
        self.wait_for(FRONT_PORT)

    def names(self, wait_ms):
        """Have the caller resolve names by a server that takes so long."""
        folder = Path("/etc/netns") / self.caller
        folder.mkdir(parents=True, exist_ok=True)
        self._stack.callback(shutil.rmtree, folder, ignore_errors=True)
        (folder / "resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:5 attempts:1\n")
        self.start(self.caller, "tests.faults.names", "53", HOST, str(wait_ms))

    def wait_for(self, port, seconds=5.0):
        """Return when something listens on the host."""
        script = f"import socket; socket.create_connection(('127.0.0.1', {port}), 1)"
        deadline = time.monotonic() + seconds
        while subprocess.run(
            self.within(self.host, [sys.executable, "-c", script]), check=False, capture_output=True
        ).returncode:
            if time.monotonic() > deadline:
                raise RuntimeError(f"nothing listens on {port}")

    def measure(self, outside, host, *, lead_seconds=2.5, meanwhile=None):
        """Measure both plans at the same time by the agent's own jobs; returns what they found.

        meanwhile: called with the process id of the job outside and the moment at which the rounds begin.
        """
        begin = time.time() + lead_seconds
        jobs = [
            Job(self.within(self.caller, _JOB), _task("probe_round", outside, begin)),
            Job(self.within(self.host, _JOB), _task("diagnose", host, begin)),
        ]
        wait_until(begin - 0.2)
        for job in jobs:
            go_ahead(job.pid)
        if meanwhile is not None:
            meanwhile(jobs[0].pid, begin)
        return [*(job.result() for job in jobs), begin]


_JOB = [sys.executable, "-m", "fleet.agent.jobs"]


def _task(kind, plan, begin):
    told = msgspec.to_builtins(msgspec.structs.replace(plan, begin_at=begin))
    return Task(
        job_id=1, kind=kind, arguments={"plan": told}, seconds=600, panel_url="http://127.0.0.1", agent_token="none",
        ca_file="", directory="/tmp", vantage=kind, probe_networks=["10.77.0.0/24"], own_ports=[ENGINE_PORT],
    )  # fmt: skip


class Job:
    """One of the agent's jobs, in a process of its own as always."""

    def __init__(self, command, task):
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.pid = self._process.pid
        self._output = []
        self._reader = threading.Thread(target=self._read, args=(msgspec.json.encode(task),), daemon=True)
        self._reader.start()

    def _read(self, task):
        self._output.append(self._process.communicate(task))

    def result(self):
        """Return what it found."""
        self._reader.join(300)
        out, errors = self._output[0]
        said = [msgspec.json.decode(line, type=Said) for line in out.splitlines()]
        if not said or said[-1].result is None:
            raise RuntimeError(f"the job found nothing: {errors.decode()[-2000:]}")
        return msgspec.convert(said[-1].result, Found)


def _end(process):
    process.stdin.close()
    try:
        process.wait(0.3)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(5)


__all__ = ["ENGINE_PORT", "FRONT_PORT", "HOST", "Lab", "Plan", "ProbeResult", "why_not"]
