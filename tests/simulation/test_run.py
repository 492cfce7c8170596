"""Joining simulated servers to a panel, and keeping their agents running."""

import asyncio
import contextlib
import json
import os
import sys
import textwrap

import httpx
import pytest

from fleet.agent.policy import load_policy
from fleet.simulation import __main__ as command
from fleet.simulation import agents as agents_module
from fleet.simulation.agents import AgentRunner
from fleet.simulation.panel import PanelClient, PanelRefusedError, PanelUnreachableError
from fleet.simulation.plan import fleet_plan
from fleet.simulation.run import DemoFleet, Options
from tests.waiting import eventually_here

PLAN = fleet_plan(1)[0]


def client(answer):
    return PanelClient(url="http://panel.test/", token="fdt_x", transport=httpx.MockTransport(answer))


async def test_a_join_token_is_asked_for_with_the_name_provider_region_and_the_badge():
    asked = []

    def answer(request):
        asked.append((request.method, request.url.path, request.headers["Authorization"], json.loads(request.content)))
        return httpx.Response(201, json={"token": "fdj_y", "expires_at": "x", "command": "x"})

    panel = client(answer)
    assert await panel.join_token(PLAN) == "fdj_y"
    await panel.close()
    body = {"name": "hefei-h200-01", "provider": "合肥机房", "region": "安徽合肥", "is_simulated": True}
    assert asked == [("POST", "/api/v1/join-tokens/", "Bearer fdt_x", body)]


async def test_a_refusal_carries_the_panels_own_words():
    errors = {"type": "validation_error", "errors": [{"code": "name_taken", "detail": "There is one.", "attr": "name"}]}
    panel = client(lambda _request: httpx.Response(400, json=errors))
    with pytest.raises(PanelRefusedError, match=r"There is one\.") as raised:
        await panel.join_token(PLAN)
    assert raised.value.code == "name_taken"
    await panel.close()


def refused(code):
    error = {"code": code, "detail": "No.", "attr": "name"}
    return httpx.Response(400, json={"type": "validation_error", "errors": [error]})


async def test_a_server_that_joined_before_joins_again_as_itself():
    servers = [{"id": 7, "name": "hefei-h200-011"}, {"id": 8, "name": "hefei-h200-01"}]

    def answer(request):
        if request.url.path == "/api/v1/join-tokens/":
            return refused("name_taken")
        if request.url.path == "/api/v1/servers/":
            assert request.url.params["is_simulated"] == "true"
            return httpx.Response(200, json={"results": servers})
        assert request.url.path == "/api/v1/servers/8/rejoin/"
        return httpx.Response(201, json={"token": "fdj_again"})

    panel = client(answer)
    assert await panel.join_token(PLAN) == "fdj_again"
    servers.pop()
    with pytest.raises(PanelRefusedError) as raised:  # the name belongs to a real server
        await panel.join_token(PLAN)
    assert raised.value.code == "name_taken"
    await panel.close()


async def test_a_token_that_nobody_has_any_more_is_taken_back():
    rows = [
        {"id": 1, "name": "hefei-h200-01", "is_simulated": False},
        {"id": 2, "name": "hefei-h200-01", "is_simulated": True},
        {"id": 3, "name": "other", "is_simulated": True},
    ]
    removed = []

    def answer(request):
        if request.method == "DELETE":
            removed.append(request.url.path)
            return httpx.Response(204)
        if request.method == "GET":
            return httpx.Response(200, json={"results": rows})
        return httpx.Response(201, json={"token": "fdj_new"}) if removed else refused("name_promised")

    panel = client(answer)
    assert await panel.join_token(PLAN) == "fdj_new"
    assert removed == ["/api/v1/join-tokens/2/"]
    await panel.close()


async def test_what_a_server_costs_is_written_down_once():
    server = {"id": 7, "name": PLAN.name, "created_at": "2026-11-30T12:00:00+00:00", "lease": None}
    written = []

    def answer(request):
        if request.method == "GET":
            return httpx.Response(200, json={"results": [server]})
        written.append(json.loads(request.content))
        server["lease"] = {"id": 1}
        return httpx.Response(201, json={"id": 1})

    panel = client(answer)
    assert await panel.contract(PLAN)
    assert not await panel.contract(PLAN)
    [body] = written
    assert (body["server"], body["landlord"], body["gpu_count"]) == (7, PLAN.provider, len(PLAN.cards))
    assert body["prices"] == [{"amount": "96000", "currency": "CNY", "unit": "month"}]
    assert body["renews_at"] == "2026-12-06T12:00:00+00:00"


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_panel_that_is_busy_or_broken_is_worth_another_try(status):
    panel = client(lambda _request: httpx.Response(status, text="later"))
    with pytest.raises(PanelUnreachableError, match=str(status)):
        await panel.join_token(PLAN)
    await panel.close()


async def test_a_panel_that_is_not_there_yet_is_worth_another_try():
    def answer(request):
        raise httpx.ConnectError("refused")

    panel = client(answer)
    with pytest.raises(PanelUnreachableError, match="refused"):
        await panel.join_token(PLAN)
    await panel.close()


# ---- agents, played by a small program that writes down what it was asked

PLAYER = """
    import os, pathlib, signal, sys, time
    here = pathlib.Path(sys.argv[sys.argv.index("--state-dir") + 1]).parent
    with (here / "asked").open("a") as file:
        file.write(" ".join(sys.argv[1:]) + " " + os.environ["FLEETDECK_NVML_LIBRARY"] + "\\n")
    if sys.argv[1] == "join":
        sys.exit(int((here / "join-code").read_text()) if (here / "join-code").exists() else 0)
    (here / "running").touch()
    signal.signal(signal.SIGTERM, lambda *_: ((here / "stopped").touch(), sys.exit(0)))
    while (here / "running").exists():
        time.sleep(0.01)
    sys.exit(3)
"""


@pytest.fixture
def tokens():
    return []


@pytest.fixture
def runner(tmp_path, monkeypatch, tokens):
    monkeypatch.setattr(agents_module, "FIRST_DELAY_SECONDS", 0.01)
    (tmp_path / "player.py").write_text(textwrap.dedent(PLAYER))

    def answer(request):
        if request.method == "GET":
            return httpx.Response(200, json={"results": []})
        tokens.append(f"fdj_{len(tokens)}")
        return httpx.Response(201, json={"token": tokens[-1]})

    said = []
    made = AgentRunner(
        PLAN,
        panel=client(answer),
        directory=tmp_path,
        environment={"FLEETDECK_NVML_LIBRARY": "/lib/fake"},
        starting=asyncio.Semaphore(1),
        say=said.append,
        command=(sys.executable, str(tmp_path / "player.py")),
    )
    made.said = said
    return made


@contextlib.asynccontextmanager
async def attended(runner):
    task = asyncio.create_task(runner.attend())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await runner.stop()
        await runner.panel.close()


async def test_an_agent_joins_once_and_runs_with_the_simulated_library(runner, tmp_path, tokens):
    async with attended(runner):
        await eventually_here((tmp_path / "running").exists)
    state = tmp_path / "state"
    assert (tmp_path / "asked").read_text().splitlines() == [
        f"join --panel http://panel.test --token fdj_0 --name hefei-h200-01 --replace --state-dir {state} /lib/fake",
        f"run --state-dir {state} /lib/fake",
    ]
    assert (tmp_path / "stopped").exists()
    assert not (tmp_path / "join-token").exists()
    assert "joined with 8 simulated GPUs" in runner.said[0]


async def test_an_agent_leaves_the_kernel_log_of_this_machine_alone(runner, tmp_path):
    async with attended(runner):
        await eventually_here((tmp_path / "running").exists)
    assert not load_policy(tmp_path / "state" / "policy.toml").read_kernel_log


async def test_an_agent_that_joined_before_only_runs(runner, tmp_path, tokens):
    (tmp_path / "joined").write_text("http://panel.test\n")
    async with attended(runner):
        await eventually_here((tmp_path / "running").exists)
    assert tokens == []


async def test_an_agent_that_joined_at_another_address_joins_again(runner, tmp_path, tokens):
    (tmp_path / "joined").write_text("http://panel.test:8001\n")
    async with attended(runner):
        await eventually_here((tmp_path / "running").exists)
    assert len(tokens) == 1
    assert (tmp_path / "joined").read_text() == "http://panel.test\n"


async def test_an_agent_that_ends_is_started_again(runner, tmp_path):
    (tmp_path / "joined").write_text("http://panel.test\n")
    async with attended(runner):
        await eventually_here((tmp_path / "running").exists)
        (tmp_path / "running").unlink()
        await eventually_here((tmp_path / "running").exists)
    assert any("ended with code 3" in line for line in runner.said)


async def test_a_join_token_that_was_not_used_is_kept_for_the_next_start(runner, tmp_path, tokens):
    (tmp_path / "join-token").write_text("fdj_kept")
    async with attended(runner):
        await eventually_here((tmp_path / "running").exists)
    assert "--token fdj_kept" in (tmp_path / "asked").read_text()
    assert tokens == []


async def test_a_join_that_fails_asks_for_a_new_token_and_tries_again(runner, tmp_path, tokens):
    (tmp_path / "join-code").write_text("1")
    async with attended(runner):
        await eventually_here(lambda: len(tokens) >= 2)
        (tmp_path / "join-code").unlink()
        await eventually_here((tmp_path / "running").exists)
    assert any("could not join (code 1)" in line for line in runner.said)


async def test_the_token_file_is_for_the_owner_only(runner, tmp_path):
    (tmp_path / "join-code").write_text("1")
    await runner._join_token()
    await runner.panel.close()
    assert (tmp_path / "join-token").stat().st_mode & 0o777 == 0o600


# ---- the command


def test_options_come_from_the_command_line_and_the_token_from_a_file_or_the_environment(tmp_path, monkeypatch):
    (tmp_path / "token").write_text("fdt_file\n")
    arguments = ["run", "--panel", "http://p", "--data-dir", str(tmp_path), "--servers", "3"]
    monkeypatch.setenv("FLEETDECK_DEMO_TOKEN", "fdt_environment")
    assert command.parse(arguments) == Options(
        panel_url="http://p", token="fdt_environment", directory=tmp_path, servers=3, seed=1
    )
    assert command.parse([*arguments, "--token-file", str(tmp_path / "token")]).token == "fdt_file"


def test_without_a_token_the_command_says_where_to_give_one(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("FLEETDECK_DEMO_TOKEN", raising=False)
    with pytest.raises(SystemExit):
        command.parse(["run", "--panel", "http://p", "--data-dir", str(tmp_path)])
    assert "--token-file" in capsys.readouterr().err


async def test_the_fleet_moves_its_cards_and_stops_on_sigterm(tmp_path, monkeypatch):
    monkeypatch.setattr(AgentRunner, "attend", lambda _self: asyncio.Event().wait())
    monkeypatch.setattr("fleet.simulation.run.TICK_SECONDS", 0.01)
    said = []
    fleet = DemoFleet(
        Options(panel_url="http://p", token="fdt_x", directory=tmp_path / "demo", servers=2), say=said.append
    )
    moved = []
    monkeypatch.setattr(fleet.servers[0], "step", lambda now, seconds: moved.append(seconds))
    running = asyncio.create_task(fleet.run())
    await eventually_here(lambda: len(moved) > 3)
    os.kill(os.getpid(), 15)
    await asyncio.wait_for(running, 10)
    assert said[0].startswith("2 servers with 16 GPUs")


async def test_a_server_that_cannot_be_moved_ends_the_fleet_with_its_error(tmp_path, monkeypatch):
    monkeypatch.setattr(AgentRunner, "attend", lambda _self: asyncio.Event().wait())
    monkeypatch.setattr("fleet.simulation.run.TICK_SECONDS", 0.01)
    fleet = DemoFleet(
        Options(panel_url="http://p", token="fdt_x", directory=tmp_path, servers=1), say=lambda _line: None
    )

    def fail(now, seconds):
        raise ZeroDivisionError

    monkeypatch.setattr(fleet.servers[0], "step", fail)
    with pytest.raises(ZeroDivisionError):
        await asyncio.wait_for(fleet.run(), 10)
