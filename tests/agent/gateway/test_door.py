"""A gateway within a whole agent: ordered by its assignments, outliving it, ended when the machine leaves its panel."""

import json
import os
import signal
import subprocess
import sys

import httpx
import pytest

from fleet.agent.gateway.envoy.proc import start_ticks
from fleet.agent.orders import GatewayOrder
from fleet.agent.state import Identity
from tests.agent.gateway.panel import GatewayPanel
from tests.agent.gateway.place import HTTP, KEY, chat, rule
from tests.waiting import eventually, free_port

pytestmark = pytest.mark.e2e


def test_nothing_of_the_gateway_is_loaded_by_an_agent_that_is_none():
    script = "import sys, fleet.agent.runtime; print([name for name in sys.modules if name.startswith('fleet.agent.gateway')])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['fleet.agent.gateway', 'fleet.agent.gateway.door']"


def agent(state, command, *options):
    environment = {**os.environ, "FLEETDECK_NVML_LIBRARY": "none.so", "FLEETDECK_KERNEL_LOG": ""}
    return subprocess.Popen(
        [sys.executable, "-m", "fleet.agent", command, "--state-dir", str(state.path), *options],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=(state.path / "log").open("a"),
    )


def envoy_of(state):
    """The pid of the data plane, as its record says."""
    try:
        serving = json.loads((state.gateway_path / "envoy" / "process.json").read_bytes())["serving"]
    except FileNotFoundError:
        return None
    return serving and serving["pid"]


def test_the_data_plane_outlives_its_agent_and_ends_when_the_machine_leaves(state, replicas):
    panel = GatewayPanel()
    state.write_identity(Identity(panel.url, "fda_abcdefgh_secret", 7, "gate"))
    version = panel.say(chat("chat", replicas[0].upstream(1)), keys=[rule(1)])
    panel.order, panel.orders = GatewayOrder(free_port(), version, host="127.0.0.1"), 1
    url = f"http://127.0.0.1:{panel.order.port}/chat/echo"

    def answers():
        return HTTP.get(url, headers={"authorization": f"Bearer {KEY}"}).status_code

    first = agent(state, "run")
    try:
        eventually(answers, lambda status: status == 200, passing=httpx.TransportError)
        pid = envoy_of(state)
        first.send_signal(signal.SIGKILL)
        first.wait()
        assert answers() == 200
        runs = {report.run_id for report in panel.reports}
        second = agent(state, "run")
        eventually(
            lambda: [one for one in list(panel.reports) if one.run_id not in runs and one.applied_version == version]
        )
        assert (envoy_of(state), answers()) == (pid, 200)
    finally:
        assert agent(state, "leave", "--force").wait(30) == 0
    assert second.wait(10) == 0
    assert start_ticks(pid) is None
    assert not state.gateway_path.exists()
    panel.close()
