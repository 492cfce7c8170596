"""Kill −9 of the agent in the middle of a stream: what was acknowledged or spooled is stored, and stored once."""

import time
from collections import Counter

import pytest

from fleet.agent.panel import join
from fleet.agent.state import Identity, StateDirectory
from fleet.simulation.cards import H200
from fleet.simulation.nvml import SimulatedHost, build_library
from tests.agent.process import Process
from tests.e2e.running import RunningPanel, stored, wait_until
from tests.e2e.wiretap import Wiretap, decode_batch

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

CARDS = 4
INTERVAL_SECONDS = 1.0
# What a kill may cost: what was read since the last batch was cut, one report interval, and the round that was under way.
LOSS_SECONDS = 2 * INTERVAL_SECONDS
BUSY_SECONDS = 5.0  # the machine of a test run does other things as well


@pytest.fixture(scope="module")
def panel():
    with RunningPanel("--no-agent") as running:
        yield running


@pytest.fixture
def tap(panel):
    with Wiretap(panel.url) as tapped:
        yield tapped


@pytest.fixture
def state(panel, tap, tmp_path):
    """The state of an agent that has joined, and reports every second through the tap."""
    directory = StateDirectory(tmp_path / "state")
    directory.prepare()
    with panel.client() as client:
        token = client.post("/api/v1/join-tokens/", json={"name": "killed-agent"}).json()["token"]
        joined = join(panel.url, token)
        intervals = {"sample_interval_seconds": INTERVAL_SECONDS, "report_interval_seconds": INTERVAL_SECONDS}
        agent = client.get(f"/api/v1/servers/{joined.server_id}/").json()["agent"]["id"]
        client.patch(f"/api/v1/agents/{agent}/", json=intervals).raise_for_status()
    directory.write_identity(
        Identity(tap.url, joined.agent_token, joined.server_id, joined.server_name, INTERVAL_SECONDS, INTERVAL_SECONDS)
    )
    yield directory
    directory.unlock()


@pytest.fixture
def start(state, tmp_path):
    """Start the agent on a simulated server; the last one is ended with the test."""
    library = build_library(tmp_path / "library")
    host = SimulatedHost.create(tmp_path / "server.nvml")
    for _ in range(CARDS):
        host.add_card(H200)
    started = []

    def make():
        started.append(Process(state, host, library, tmp_path / "bytecode"))
        return started[-1]

    yield make
    for process in started:
        if process.is_running():
            process.kill()


def samples_of(reports):
    """Return (uuid, Unix ms) of every sample of a card."""
    return [(gpu.uuid, sample.at_ms) for report in reports for gpu in report.gpus for sample in gpu.samples]


def spooled(state):
    return [decode_batch(path.read_bytes()) for path in sorted(state.spool_path.glob("*.batch"))]


def runs_of(tap, state):
    return {report.boot_id for report in [*tap.acknowledged, *spooled(state)]}


def in_stream(tap, state, runs_before):
    """Whether a run that is not among `runs_before` has made at least three batches with readings."""
    reports = [report for report in [*tap.acknowledged, *spooled(state)] if report.boot_id not in runs_before]
    return len({report.seq for report in reports if samples_of([report])}) >= 3


def test_every_batch_acknowledged_or_spooled_is_stored_once_when_the_agent_is_killed(panel, tap, state, start):
    kept, killed = [], []  # reports that were on disk at a kill; when (Unix ms), and what was newest then
    for line in ("whole", "away", "deaf", "whole"):
        tap.is_away, tap.is_deaf = line == "away", line == "deaf"
        before = runs_of(tap, state)
        process = start()
        wait_until(lambda before=before: in_stream(tap, state, before), seconds=60, what=f"A stream, line {line}")
        process.kill()
        kept += spooled(state)
        newest = max(at for _uuid, at in samples_of([*tap.acknowledged, *kept]))
        killed.append((line, time.time() * 1000 - newest))
    tap.is_away = tap.is_deaf = False
    before, last = runs_of(tap, state), start()
    wait_until(
        lambda: not spooled(state) and any(report.boot_id not in before for report in tap.acknowledged),
        seconds=90,
        what="An empty spool and a report of the last run",
    )
    assert last.stop() == 0
    assert spooled(state) == []

    runs = {report.boot_id for report in tap.acknowledged}
    assert len(runs) == len(killed) + 1
    assert kept, "a kill met batches on disk"
    names = [(report.boot_id, report.seq) for report in tap.acknowledged]
    assert len(names) > len(set(names)), "an answer was lost, and the batch sent again"
    counts = stored(panel)
    expected = set(samples_of([*tap.acknowledged, *kept]))
    assert counts == Counter(expected), "every sample once, and no other"
    assert len({uuid for uuid, _at in expected}) == CARDS
    assert all(lost < (LOSS_SECONDS + BUSY_SECONDS) * 1000 for _line, lost in killed), killed
    assert _lost_samples(panel) == 0


def _lost_samples(panel):
    with panel.client() as client:
        return client.get("/api/v1/agents/").json()["results"][0]["lost_samples"]
