"""Ordered machines: run by their start-up script once, silent when their provider stops them, forgotten when they end."""

import contextlib
import sys
import textwrap

import pytest

from fleet.agent_package.installer import join_command
from fleet.providers.simulated.adapter import KINDS
from fleet.simulation import agents as agents_module
from fleet.simulation.machines import CARDS, Machines, OrderedMachine, StartupLine
from fleet.simulation.panel import PanelRefusedError
from tests.simulation.test_run import PLAYER
from tests.waiting import eventually_here

TOKEN = "fdj_abcdefgh_x-y_z0"
SCRIPT = f"#!/bin/sh\n{join_command(url='http://panel.test:8000', token=TOKEN)}\n"


def machine(**changes):
    values = {"name": "sim-7", "is_running": True, "gpu": "RTX 4090 24GB", "gpu_count": 2, "startup_script": SCRIPT}
    return OrderedMachine(**{**values, **changes})


@pytest.fixture
def said():
    return []


@pytest.fixture
async def machines(tmp_path, monkeypatch, library, said):
    monkeypatch.setattr(agents_module, "FIRST_DELAY_SECONDS", 0.01)
    monkeypatch.setenv("DATABASE_URL", "postgres://secret")
    (tmp_path / "player.py").write_text(textwrap.dedent(PLAYER))
    command = (sys.executable, str(tmp_path / "player.py"))
    made = Machines(tmp_path / "machines", library=library, say=said.append, command=command)
    yield made
    with contextlib.suppress(Exception):
        await made.stop()


async def test_a_machine_joins_with_the_line_of_its_script_and_has_the_cards_that_were_ordered(machines, tmp_path):
    await machines.follow([machine()])
    here = tmp_path / "machines" / "sim-7"
    await eventually_here((here / "running").exists)
    asked = (here / "asked").read_text().splitlines()
    assert asked[0].startswith(f"join --panel http://panel.test:8000 --token {TOKEN} --name sim-7 --replace")
    [running] = machines.machines.values()
    assert [card.plan.profile.name for card in running.server.runners] == ["NVIDIA GeForce RTX 4090"] * 2
    assert "DATABASE_URL" not in running.runner.environment
    machines.step(1_000_000.0, 1.0)


async def test_a_machine_that_is_stopped_is_silent_and_comes_back_as_the_same_agent(machines, tmp_path):
    await machines.follow([machine()])
    here = tmp_path / "machines" / "sim-7"
    await eventually_here((here / "running").exists)
    await machines.follow([machine(is_running=False)])
    assert (here / "stopped").exists()
    (here / "running").unlink()
    await machines.follow([machine(startup_script="")])
    await eventually_here((here / "running").exists)
    assert (here / "asked").read_text().count("join ") == 1


async def test_a_machine_that_is_over_leaves_nothing(machines, tmp_path, said):
    await machines.follow([machine()])
    await eventually_here((tmp_path / "machines" / "sim-7" / "running").exists)
    await machines.follow([])
    assert list((tmp_path / "machines").iterdir()) == []
    assert said[-1] == "sim-7: ended"


async def test_a_machine_goes_on_where_it_was_when_its_host_is_started_again(machines, tmp_path, library, said):
    await machines.follow([machine()])
    here = tmp_path / "machines" / "sim-7"
    await eventually_here((here / "running").exists)
    await machines.stop()
    (here / "running").unlink()
    later = Machines(tmp_path / "machines", library=library, say=said.append, command=machines.command)
    await later.follow([machine()])
    await eventually_here((here / "running").exists)
    await later.stop()
    assert (here / "asked").read_text().count("join ") == 1


async def test_a_script_is_run_at_the_first_start_alone():
    line = StartupLine(SCRIPT)
    assert line.is_complete
    assert line.url == "http://panel.test:8000"
    assert await line.join_token(None) == TOKEN
    with pytest.raises(PanelRefusedError, match="run already"):
        await line.join_token(None)


@pytest.mark.parametrize(
    "changes", [{"startup_script": ""}, {"startup_script": "#!/bin/sh\ntrue\n"}, {"gpu": "B200 180GB"}]
)
async def test_a_machine_that_cannot_be_run_is_told_once(machines, said, changes):
    await machines.follow([machine(**changes)])
    await machines.follow([machine(**changes)])
    [line] = said
    assert line.startswith("sim-7: not run: ")
    assert machines.machines == {}


def test_everything_that_can_be_had_at_the_simulated_provider_can_be_run():
    assert {kind.gpu for kind in KINDS.values() if kind.stock != "none"} <= set(CARDS)
