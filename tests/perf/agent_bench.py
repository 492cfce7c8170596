"""What the agent costs beside nvitop-exporter: CPU and memory, on the same eight simulated H200, in the same minute.

Both read every 5 s; the agent reports each reading, the exporter is scraped each time. The exporter is fetched by package
name into an environment of its own; where that cannot be had its column stays empty and the note says so.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
import venv

import psutil

from fleet.simulation.nvml import build_library
from fleet.simulation.plan import fleet_plan
from fleet.simulation.server import SimulatedServer
from tests.perf.harness import Row
from tests.perf.live_bench import free_port

INTERVAL_SECONDS = 5
WARM_UP_SECONDS = 20
MEASURE_SECONDS = 60
MEMORY_GOAL_MB = 64
PEER = "nvitop-exporter"


def fetch_peer(directory):
    """Return the exporter's program, installed by name when it is not there yet; (None, why) when it cannot be had."""
    program = directory / "bin" / PEER
    if not program.exists():
        venv.create(directory, with_pip=True, clear=True)
        pip = (directory / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", PEER)
        done = subprocess.run(pip, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return None, f"{PEER} could not be installed: {done.stderr.strip().splitlines()[-1]}"
    return program, ""


class Measured:
    """A process and its children, with what they used between two moments."""

    def __init__(self, process):
        self.process = psutil.Process(process.pid)
        self.before = 0.0
        self.peak_bytes = 0

    def family(self):
        return [self.process, *self.process.children(recursive=True)]

    def cpu_seconds(self):
        return sum(times.user + times.system for times in (each.cpu_times() for each in self.family()))

    def start(self):
        self.before = self.cpu_seconds()

    def look(self):
        self.peak_bytes = max(self.peak_bytes, sum(each.memory_info().rss for each in self.family()))

    def cpu_seconds_per_minute(self, seconds):
        return (self.cpu_seconds() - self.before) * 60 / seconds


def fetch(url):
    """Return the body of a page of loopback."""
    with urllib.request.urlopen(url, timeout=10) as response:
        return response.read()


def until_answering(url, process, seconds=40):
    """Wait until a server of ours answers."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"server ended with {process.returncode}")
        with contextlib.suppress(OSError):
            return fetch(url)
        time.sleep(0.2)
    raise TimeoutError(f"{url} does not answer")


@contextlib.contextmanager
def running(*command, environment, log):
    """Run one process, its output in a file; end it afterwards."""
    with log.open("ab") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextlib.contextmanager
def agent(directory, environment):
    """Run a joined agent against the panel of the benchmark: (process, address of the panel)."""
    port = free_port()
    panel_url = f"http://127.0.0.1:{port}"
    with running(
        *(sys.executable, "-m", "uvicorn", "tests.perf.agent_panel:application", "--port", str(port)),
        *("--log-level", "warning", "--no-access-log"),
        environment={**environment, "FLEETDECK_BENCH_INTERVAL": str(INTERVAL_SECONDS)},
        log=directory / "panel.log",
    ) as panel:
        until_answering(f"{panel_url}/received/", panel)
        program = (sys.executable, "-m", "fleet.agent")
        state = ("--state-dir", str(directory / "agent-state"))
        subprocess.run(
            (*program, "join", "--panel", panel_url, "--token", "fdj_bench000_x", *state),
            env=environment,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        with running(*program, "run", *state, environment=environment, log=directory / "agent.log") as process:
            yield process, panel_url


@contextlib.contextmanager
def exporter(program, directory, environment):
    """Run the peer: (process, its page)."""
    port = free_port()
    with running(
        *(str(program), "--port", str(port), "--interval", str(INTERVAL_SECONDS)),
        environment=environment,
        log=directory / "peer.log",
    ) as process:
        page = f"http://127.0.0.1:{port}/metrics"
        until_answering(page, process)
        yield process, page


def watch(server, seconds, measured, page=None):
    """Move the simulated server on once a second, look at memory, and scrape the peer at its interval."""
    for second in range(seconds):
        server.step(time.time(), 1.0)
        for each in measured:
            each.look()
        if page and second % INTERVAL_SECONDS == 0:
            fetch(page)
        time.sleep(1)


def rows(ours, peer, seconds, why):
    """Return the table of one run."""
    cpu, memory = ours.cpu_seconds_per_minute(seconds), ours.peak_bytes / 1e6
    peer_cpu = peer.cpu_seconds_per_minute(seconds) if peer else None
    peer_memory = peer.peak_bytes / 1e6 if peer else None
    beside = {"cpu": f"{PEER} {peer_cpu:.2f}", "memory": f"{PEER} {peer_memory:.0f}"} if peer else {}
    return [
        Row(
            "agent CPU, 8 x H200, every 5 s",
            cpu,
            "CPU s/min",
            peer=beside.get("cpu", PEER),
            ratio=cpu / peer_cpu if peer_cpu else None,
            goal="<= 1.0",
            note=why or "reporting included; the peer scraped at the same interval",
        ),
        Row(
            "agent memory, resident",
            memory,
            "MB",
            peer=beside.get("memory", PEER),
            ratio=memory / peer_memory if peer_memory else None,
            goal=f"<= {MEMORY_GOAL_MB} MB",
            note=why,
        ),
    ]


def run(out_dir):
    """Return the rows of the agent benchmark."""
    directory = (out_dir / "agent-run").resolve()
    shutil.rmtree(directory / "agent-state", ignore_errors=True)  # of an earlier run
    directory.mkdir(parents=True, exist_ok=True)
    library = build_library(directory / "library")
    server = SimulatedServer(fleet_plan(1)[0], directory, seed=1, now=time.time())
    environment = {
        **os.environ,
        "FLEETDECK_NVML_LIBRARY": str(library),
        "LD_LIBRARY_PATH": str(library.parent),
        "FLEETDECK_SIMULATION_FILE": str(server.host.path),
    }
    program, why = fetch_peer(out_dir.resolve() / "peers" / PEER)
    with contextlib.ExitStack() as stack:
        process, panel_url = stack.enter_context(agent(directory, environment))
        ours, peer, page = Measured(process), None, None
        if program:
            other, page = stack.enter_context(exporter(program, directory, environment))
            peer = Measured(other)
        measured = [each for each in (ours, peer) if each]
        watch(server, WARM_UP_SECONDS, measured, page)
        before = json.loads(fetch(f"{panel_url}/received/"))
        began = time.monotonic()
        for each in measured:
            each.start()
        watch(server, MEASURE_SECONDS, measured, page)
        seconds = time.monotonic() - began
        result = rows(ours, peer, seconds, why)
        after = json.loads(fetch(f"{panel_url}/received/"))
    samples = after["gpu_samples"] - before["gpu_samples"]
    expected = 8 * seconds / INTERVAL_SECONDS
    result.append(
        Row(
            "agent samples that arrived",
            samples,
            "samples",
            peer="8 GPUs x the interval",
            ratio=samples / expected,
            goal=">= 0.9",
            note=f"{(after['bytes'] - before['bytes']) / seconds * 60 / 1e3:.1f} kB/min sent",
        )
    )
    return result
