"""Processes that stand in for the programs on simulated cards."""

import subprocess
import sys

import psutil
import pytest

from fleet.simulation.workloads import Workloads
from tests.waiting import eventually


@pytest.fixture
def workloads(tmp_path):
    started = Workloads(tmp_path / "workloads")
    yield started
    started.stop()


@pytest.mark.parametrize("name", ["VLLM::EngineCore", "torchrun train.py", "ffmpeg", "a/b"])
def test_a_program_has_a_pid_and_its_name(workloads, name):
    process = psutil.Process(workloads.start(name))
    eventually(process.cmdline, what="the program itself")  # empty while a process becomes its program
    assert process.cmdline()[0] == name
    assert process.name() in {name, name.replace("/", "_")}
    assert process.memory_info().rss < 4 << 20


def test_programs_of_one_name_are_processes_of_their_own(workloads):
    assert workloads.start("ffmpeg") != workloads.start("ffmpeg")


def test_they_end_when_they_are_told_to(workloads):
    process = psutil.Process(workloads.start("ffmpeg"))
    workloads.stop()
    assert not process.is_running()


def test_they_end_with_a_simulation_that_was_killed(tmp_path):
    code = (
        "import sys; from pathlib import Path; from fleet.simulation.workloads import Workloads;"
        f"print(Workloads(Path({str(tmp_path / 'workloads')!r})).start('ffmpeg'), flush=True); sys.stdin.read()"
    )
    simulation = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process = psutil.Process(int(simulation.stdout.readline()))
    simulation.kill()
    simulation.communicate()
    assert psutil.wait_procs([process], timeout=10)[0] == [process]
