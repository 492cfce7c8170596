"""The agent as a process: its Celery worker, signals, kill −9, a panel that goes away, a driver that hangs."""

import shutil
import subprocess
import sys
from itertools import pairwise

import pynvml
import pytest
from msgspec.structs import replace

from fleet.agent.state import StateDirectory
from fleet.simulation.cards import H200
from fleet.simulation.nvml import SimulatedHost
from tests.agent.panel import SmallPanel
from tests.agent.process import Process
from tests.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


@pytest.fixture(scope="session")
def bytecode(tmp_path_factory):
    """Where the agents of this run keep compiled code: starting one takes half a second then."""
    return tmp_path_factory.mktemp("bytecode")


@pytest.fixture
def server(tmp_path):
    """A simulated server with two cards, for another process to read."""
    host = SimulatedHost.create(tmp_path / "server.nvml")
    host.add_card(H200)
    host.add_card(H200)
    yield host
    host.recover()


@pytest.fixture
def start(state, identity, server, library, bytecode):
    """Start an agent that has joined; all are ended with the test."""
    started = []

    def make(identity=identity, library=library):
        state.write_identity(identity)
        started.append(Process(state, server, library, bytecode))
        return started[-1]

    yield make
    server.recover()
    for each in started:
        if each.is_running():
            each.kill()


def at(identity, url):
    """The same agent, of a panel at another address."""
    return replace(identity, panel_url=url)


def samples_of(panel, uuid):
    return [
        sample.at_ms
        for report in list(panel.reports)
        for gpu in report.gpus
        if gpu.uuid == uuid
        for sample in gpu.samples
    ]


def test_samples_arrive_at_the_interval_and_a_last_report_at_the_end(start, panel, server):
    process = start()
    uuid = server.cards[0].uuid
    stamps = eventually(lambda: len(found := samples_of(panel, uuid)) >= 4 and found)
    steps = [after - before for before, after in pairwise(stamps[1:])]
    assert all(500 < step < 3_000 for step in steps), steps
    count = len(panel.reports)
    assert process.stop() == 0
    assert len(panel.reports) > count
    assert [report.seq for report in panel.reports] == list(range(1, len(panel.reports) + 1))
    assert len({report.boot_id for report in panel.reports}) == 1


def test_an_interval_that_the_panel_asks_for_holds_at_once(start, panel, state, identity, server):
    start(replace(identity, sample_interval_seconds=60.0, report_interval_seconds=60.0))
    eventually(lambda: len(samples_of(panel, server.cards[0].uuid)) >= 3)


def test_kill_nine_in_a_stream_of_reports_loses_nothing_spooled_and_repeats_nothing(start, panel, state):
    panel.answer_with.extend([(503, b"", {})] * 3)
    first = start()
    eventually(lambda: list(state.spool_path.glob("*.batch")))
    first.kill()
    spooled = len(list(state.spool_path.glob("*.batch")))
    assert spooled >= 1
    panel.answer_with.clear()
    second = start()
    eventually(lambda: len({report.boot_id for report in list(panel.reports)}) == 2)
    second.stop()
    runs = {}
    for report in panel.reports:
        runs.setdefault(report.boot_id, []).append(report.seq)
    assert len(runs) == 2
    assert all(seqs == sorted(set(seqs)) for seqs in runs.values())
    stamps = panel.host_samples
    assert len(stamps) == len(set(stamps)), "no sample came twice"
    assert list(state.spool_path.glob("*.batch")) == []


def test_an_agent_killed_again_and_again_delivers_every_batch_once(start, panel, state):
    for _ in range(3):
        process = start()
        count = len(panel.reports)
        eventually(lambda count=count: len(panel.reports) > count)
        process.kill()
    last = start()
    count = len(panel.reports)
    eventually(lambda: len(panel.reports) > count)
    last.stop()
    stamps = panel.host_samples
    assert len(stamps) == len(set(stamps))
    assert stamps == sorted(stamps)


def test_a_panel_that_was_away_gets_what_it_missed(start, state, identity, server):
    port = _free_port()
    process = start(at(identity, f"http://127.0.0.1:{port}"))
    eventually(lambda: len(list(state.spool_path.glob("*.batch"))) >= 3)
    with SmallPanel(port) as panel:
        eventually(lambda: len(panel.reports) >= 4)
        process.stop()
        assert [report.seq for report in panel.reports] == list(range(1, len(panel.reports) + 1))
        stamps = samples_of(panel, server.cards[0].uuid)
        assert len(stamps) == len(set(stamps)) >= 3
        assert panel.reports[-1].lost_samples == 0
    assert "does not answer" in process.log


def _free_port():
    with SmallPanel() as panel:
        return panel.port


def test_a_panel_that_is_killed_in_mid_stream_is_found_again(start, state, identity, server):
    panel = SmallPanel()
    port = panel.port
    with panel:
        start(at(identity, panel.url))
        eventually(lambda: len(panel.reports) >= 2)
    with SmallPanel(port) as later:
        eventually(lambda: len(later.reports) >= 2)
        seqs = [report.seq for report in [*panel.reports, *later.reports]]
        assert seqs == sorted(seqs)
        assert seqs[-1] - seqs[0] + 1 == len(set(seqs)), "no batch is missing"


def test_signs_of_life_go_on_while_no_driver_call_returns(start, panel, server):
    start()
    eventually(lambda: samples_of(panel, server.cards[0].uuid))
    server.hang()
    report = eventually(
        lambda: next((each for each in list(panel.reports) if each.driver.state == "not_answering"), None)
    )
    assert {gpu.reason for gpu in report.gpus} == {"not_answering"}
    count = len(panel.reports)
    eventually(lambda: len(panel.reports) >= count + 3)
    server.recover()
    eventually(lambda: panel.reports[-1].driver.state == "ok" and panel.reports[-1].gpus[0].state == "ok")


def test_an_agent_ends_although_a_driver_call_never_returns(start, panel, server):
    process = start()
    eventually(lambda: samples_of(panel, server.cards[0].uuid))
    server.cards[0].hang()
    eventually(lambda: any(gpu.reason == "not_answering" for report in list(panel.reports) for gpu in report.gpus))
    assert process.stop() == 0


def test_leaving_ends_the_running_agent(start, panel, state, library):
    process = start()
    eventually(lambda: panel.reports)
    run = subprocess.run(
        [sys.executable, "-m", "fleet.agent", "leave", "--state-dir", str(state.path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    eventually(lambda: not process.is_running())
    assert panel.has_left
    assert StateDirectory(state.path).identity() is None


def test_the_status_of_a_running_agent(start, panel, state):
    process = start()
    eventually(lambda: panel.reports and state.status() and state.status().gpus)
    run = subprocess.run(
        [sys.executable, "-m", "fleet.agent", "status", "--state-dir", str(state.path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"runs as process {process.pid}" in run.stdout
    assert "Driver   ok" in run.stdout
    assert "GPUs     2 of 2 ok" in run.stdout


def test_an_upgraded_driver_is_read_by_its_new_library_in_the_same_process(start, panel, server, library, tmp_path):
    own_copy = tmp_path / "libnvidia-ml.so.1"
    shutil.copy(library, own_copy)
    process = start(library=own_copy)
    eventually(lambda: samples_of(panel, server.cards[0].uuid))
    shutil.copy(library, tmp_path / "new")
    (tmp_path / "new").replace(own_copy)
    server.mismatch()
    server.fail_calls(pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH)
    eventually(lambda: any(report.driver.state == "version_mismatch" for report in list(panel.reports)))
    server.recover()
    eventually(lambda: len({report.boot_id for report in list(panel.reports)}) == 2)
    eventually(lambda: panel.reports[-1].driver.state == "ok" and panel.reports[-1].gpus[0].samples)
    assert process.is_running()
    assert "starts itself again" in process.log


def test_a_mismatch_without_a_new_library_is_no_reason_to_start_again(start, panel, server):
    start()
    eventually(lambda: samples_of(panel, server.cards[0].uuid))
    server.mismatch()
    server.fail_calls(pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH)
    eventually(lambda: sum(report.driver.state == "version_mismatch" for report in list(panel.reports)) >= 3)
    assert len({report.boot_id for report in panel.reports}) == 1


def test_an_agent_stays_within_its_memory(start, panel, server):
    process = start()
    eventually(lambda: len(samples_of(panel, server.cards[0].uuid)) >= 5)
    resident = panel.reports[-1].host_samples[-1].agent_memory_bytes
    assert resident < 64 * 1024 * 1024
    assert process.stop() == 0
