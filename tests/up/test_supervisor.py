"""All children together: order, readiness, and that nothing outlives the supervisor."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from panel.up import datadir, leftovers
from panel.up.child import ChildSpec
from panel.up.errors import UpError
from panel.up.supervisor import Supervisor
from tests.waiting import eventually_here

SLEEP = "print('up', flush=True); import time; time.sleep(60)"
# A supervisor of its own process, to be killed: two children, one of which ignores every polite signal.
VICTIM = """
import asyncio, os, signal, sys
from pathlib import Path
from panel.up import datadir
from panel.up.child import ChildSpec
from panel.up.supervisor import Supervisor

async def main():
    data = Path(sys.argv[1])
    supervisor = Supervisor(data)
    codes = {"polite": "import time; time.sleep(60)", "stubborn": (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)")}
    for name, code in codes.items():
        supervisor.start(ChildSpec(name=name, command=(sys.executable, "-c", code), environment=dict(os.environ),
                                   directory=data))
    while len([child for child in supervisor.children if child.pid]) < 2:
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.5)
    print("ready", *[child.pid for child in supervisor.children], flush=True)
    await asyncio.sleep(60)

datadir.prepare(Path(sys.argv[1]))
asyncio.run(main())
"""


@pytest.fixture
def data(tmp_path):
    datadir.prepare(tmp_path)
    return tmp_path


def spec(name, code=SLEEP, **options):
    return ChildSpec(
        name=name, command=(sys.executable, "-c", code), environment=dict(os.environ), directory=Path("/"), **options
    )


async def test_the_last_one_started_is_the_first_one_stopped(data, capsys):
    supervisor = Supervisor(data)
    for name in ("postgres", "web", "agent"):
        supervisor.start(spec(name))
    await eventually_here(lambda: all(child.last_line == "up" for child in supervisor.children))
    await supervisor.stop()
    said = [line.split("| ")[1] for line in capsys.readouterr().out.splitlines() if line.startswith("up ")]
    assert said == ["stopping agent", "stopping web", "stopping postgres"]
    assert not (data / "run" / "sessions.json").exists()


async def test_a_child_that_keeps_ending_before_it_answers_is_an_error_with_its_last_words(data, monkeypatch):
    monkeypatch.setattr("panel.up.child.FIRST_DELAY_SECONDS", 0.01)
    supervisor = Supervisor(data)
    child = supervisor.start(spec("web", "print('No module named x'); raise SystemExit(1)"))

    async def never():
        return False

    with pytest.raises(UpError, match=r"The web process does not start: No module named x\. .*web\.log"):
        await supervisor.until_ready(child, never, seconds=60, what="The web process")
    await supervisor.stop()


async def test_a_child_that_never_answers_is_an_error_after_its_time(data):
    supervisor = Supervisor(data)
    child = supervisor.start(spec("web"))

    async def never():
        return False

    with pytest.raises(UpError, match="did not answer within 0 s"):
        await supervisor.until_ready(child, never, seconds=0.1, what="The web process")
    await supervisor.stop()


async def test_a_step_that_fails_ends_the_start(data):
    supervisor = Supervisor(data)
    with pytest.raises(UpError, match="prepare ended with code 3"):
        await supervisor.run_once(spec("prepare", "print('bad'); raise SystemExit(3)"))
    assert (data / "logs" / "prepare.log").read_text() == "bad\n"


async def test_everything_can_be_ended_at_once(data):
    supervisor = Supervisor(data)
    child = supervisor.start(spec("stubborn", "import signal; signal.signal(15, signal.SIG_IGN);" + SLEEP))
    await eventually_here(lambda: child.last_line == "up")
    stopping = asyncio.create_task(supervisor.stop())
    await asyncio.sleep(0)
    supervisor.kill()
    async with asyncio.timeout(5):
        await stopping


def victim(data):
    process = subprocess.Popen(
        [sys.executable, "-c", VICTIM, str(data)], stdout=subprocess.PIPE, text=True, cwd=datadir.BASE_DIR
    )
    for line in process.stdout:
        if line.startswith("ready"):
            return process, [psutil.Process(int(pid)) for pid in line.split()[1:]]
    raise AssertionError("the supervisor did not start")


def test_children_end_when_the_supervisor_is_killed_and_the_next_start_ends_those_that_would_not(tmp_path):
    process, (polite, stubborn) = victim(tmp_path)
    process.kill()
    process.wait()
    process.stdout.close()
    try:
        polite.wait(10)
        assert stubborn.is_running()
        said = []
        leftovers.end(tmp_path / "run" / "sessions.json", say=said.append, patience_seconds=0.2)
        assert said == ["An earlier run left 1 processes behind; ending them first"]
        assert not stubborn.is_running()
        assert not (tmp_path / "run" / "sessions.json").exists()
    finally:
        for child in (polite, stubborn):
            with suppress(psutil.NoSuchProcess):
                child.kill()


def test_a_number_that_another_process_has_now_is_left_alone(data):
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
    try:
        began = psutil.Process(bystander.pid).create_time()
        record = data / "run" / "sessions.json"
        record.write_text(json.dumps({str(bystander.pid): began + 1000}))
        said = []
        leftovers.end(record, say=said.append, patience_seconds=0.1)
        assert said == []
        assert bystander.poll() is None
    finally:
        bystander.send_signal(signal.SIGKILL)
        bystander.wait()


def test_a_record_that_cannot_be_read_is_no_obstacle(data):
    record = data / "run" / "sessions.json"
    record.write_text("{half")
    leftovers.end(record, say=print)
