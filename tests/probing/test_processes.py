"""The panel's prober and an agent's, as processes: results arrive, a second prober stands by and takes over."""

import subprocess
import sys
import time

import pytest

from tests.scenarios.running import ROOT, Process
from tests.waiting import eventually
from tests.webpanel import WebPanel

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def panel(tmp_path_factory):
    allowed = {"FLEETDECK_EGRESS_ALLOW": "127.0.0.0/8"}
    with WebPanel(tmp_path_factory.mktemp("panel"), **allowed) as running:
        yield running


@pytest.fixture
def prober(panel, tmp_path):
    """Start a prober of this name; all are ended with the test."""
    started = []

    def start(name):
        started.append(Process(name, "manage.py", "prober", directory=tmp_path, environment=panel.environment))
        return started[-1]

    yield start
    for process in started:
        process.stop()


def probe(panel, name, vantage):
    target = {
        "kind": "http",
        "host": "127.0.0.1",
        "port": panel.port,
        "path": "/healthz",
        "connections": ["cold", "warm"],
    }
    body = {"name": name, "target": target, "vantages": [vantage], "interval_seconds": 1}
    return panel.post("probes/", body)["id"]


def good(panel, number):
    """Return the results of a probe that were ok, the newest first."""
    found = panel.get(f"probes/{number}/results/?limit=500")
    assert {each["outcome"] for each in found} <= {"ok"}, found
    return found


def test_the_panel_probes_and_a_second_prober_takes_over(panel, prober):
    number = probe(panel, "from the panel", "panel")
    first = prober("first")
    found = eventually(lambda: good(panel, number), lambda found: len(found) >= 4, what=first.tail)
    assert {each["connection"] for each in found} == {"cold", "warm"}
    cold = next(each["facts"] for each in found if each["connection"] == "cold")
    warm = next(each["facts"] for each in found if each["connection"] == "warm")
    assert cold["tcp_ms"] is not None
    assert warm.get("tcp_ms") is None
    second = prober("second")
    first.process.kill()
    first.process.wait()
    at = time.time()
    eventually(
        lambda: [each for each in good(panel, number) if each["facts"]["scheduled_ms"] > (at + 1) * 1000],
        what=second.tail,
    )
    assert second.stop() == 0


def test_an_agent_probes_what_its_policy_allows(panel, tmp_path):
    state = tmp_path / "agent"
    token = panel.post("join-tokens/", {"name": "vantage"})["token"]
    subprocess.run(
        [sys.executable, "-m", "fleet.agent", "join", "--panel", panel.url, "--token", token, "--state-dir", str(state)],
        cwd=ROOT, env=panel.environment, check=True, capture_output=True,
    )  # fmt: skip
    (state / "policy.toml").write_text('probe_networks = ["127.0.0.0/8"]\n')
    [server] = [each["id"] for each in panel.results("servers/") if each["name"] == "vantage"]
    number = probe(panel, "from there", f"server:{server}")
    command = ("-m", "fleet.agent", "run", "--state-dir", str(state))
    agent = Process("run", *command, directory=tmp_path, environment=panel.environment)
    try:
        found = eventually(lambda: good(panel, number), lambda found: len(found) >= 4, what=agent.tail)
    finally:
        agent.stop()
    assert {each["server"] for each in found} == {server}
    told = panel.get(f"probes/{number}/latency/")
    assert {each["connection"] for each in told["vantages"]} == {"cold", "warm"}
    assert all(each["percentiles"][2]["is_enough"] is False for each in told["vantages"])
