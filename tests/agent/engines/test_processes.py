"""Engines as plain processes, started, watched and ended for real."""

import signal

import httpx
import pytest

from fleet.agent.engines import keeper
from tests.agent.engines.conftest import changed, engine_order, is_alive, kill, pid_of
from tests.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]


def test_an_engine_is_ready_once_it_answered_and_not_before(machine):
    box = machine()
    order = engine_order(1, "--load-seconds", 0.8)
    box.follow(order)
    starting = box.until("starting")
    assert starting.health == "starting"
    ready = box.until("ready", health="ok")
    assert ready.answered_ms > 0
    assert (ready.running, ready.waiting) == (0.0, 0.0)
    assert is_alive(pid_of(ready))


def test_its_environment_holds_what_was_ordered_and_nothing_of_the_agent(machine, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgres://panel:canary@db/panel")
    names = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "MODEL_REPO", "DATABASE_URL")
    said = [word for name in names for word in ("--say-environment", name)]
    box = machine()
    box.gpus = {"GPU-a": "ok", "GPU-b": "ok"}
    box.follow(
        engine_order(1, *said, gpu_uuids=["GPU-b", "GPU-a"], environment={"MODEL_REPO": "org/model"}),
        engine_order(2, *said),  # without cards it sees none
    )
    box.until("ready")
    box.until("ready", replica=2)
    assert box.log(2).splitlines()[:2] == ["CUDA_VISIBLE_DEVICES=", "NVIDIA_VISIBLE_DEVICES=void"]
    assert box.log().splitlines()[:4] == [
        "CUDA_VISIBLE_DEVICES=GPU-b,GPU-a",
        "NVIDIA_VISIBLE_DEVICES=GPU-b,GPU-a",
        "MODEL_REPO=org/model",
        "DATABASE_URL=None",
    ]


def test_a_card_that_is_not_here_keeps_it_from_starting_until_it_comes_back(machine):
    box = machine()
    box.gpus = {"GPU-a": "lost"}
    box.follow(engine_order(1, gpu_uuids=["GPU-a"]))
    assert "GPU-a" in box.until("pending", reason="gpu_missing").detail
    box.gpus = {"GPU-a": "ok"}
    box.until("ready")


def test_a_killed_engine_is_started_again_after_a_pause_and_its_end_is_told(machine):
    box = machine()
    box.follow(engine_order())
    first = pid_of(box.until("ready"))
    kill(first)
    again = box.until("ready", restarts=1)
    assert pid_of(again) != first
    assert again.exit_code == 128 + signal.SIGKILL
    assert any(status.reason == "exited" and "signal 9" in status.detail for status in box.told())


def test_one_that_cannot_start_is_given_up_after_a_few_tries_with_the_last_line_of_its_log(machine):
    box = machine()
    box.follow(engine_order(1, "--crash-at-start", 41))
    failed = box.until("failed", reason="crash_loop")
    assert failed.exit_code == 41
    assert "cannot start, as it was told" in failed.detail
    assert len(box.log().splitlines()) == 4
    assert failed.health == "down"


def test_a_program_that_does_not_exist_is_said_to_be_so_at_once(machine):
    box = machine()
    box.follow(changed(engine_order(), command=["/nonexistent/engine", "--flag"]))
    failed = box.until("failed", reason="spawn_failed")
    assert "b'" not in failed.detail, "a name, and not its bytes"
    assert failed.detail == "/nonexistent/engine: No such file or directory."


def test_one_that_never_answers_is_stopped_at_its_start_limit(machine):
    box = machine()
    box.follow(
        engine_order(1, "--never-ready", "--drain-seconds", 0, "--say", "loading weights", start_limit_seconds=1.0)
    )
    pid = pid_of(eventually(box.status, lambda status: status is not None and status.handle))
    failed = box.until("failed", reason="start_limit")
    assert "within 1 s" in failed.detail
    eventually(lambda: not is_alive(pid))
    assert box.until("failed").reason == "start_limit"


def test_a_taken_port_is_named_before_anything_is_started(machine):
    box = machine()
    order = engine_order(1)
    box.follow(order)
    box.until("ready")
    box.follow(order, engine_order(2, port=order.port))
    taken = box.until("pending", replica=2, reason="port_in_use")
    assert f"Port {order.port} is taken by python" in taken.detail
    assert box.log(replica=2) == ""


def test_another_generation_stops_what_runs_and_starts_anew(machine):
    box = machine()
    order = engine_order()
    box.follow(order)
    first = pid_of(box.until("ready"))
    box.follow(changed(order, generation=2))
    second = box.until("ready", generation=2)
    assert pid_of(second) != first
    assert not is_alive(first)
    assert "stopped" in box.log(generation=1)


def test_what_no_order_names_any_more_is_stopped_with_all_that_it_started(machine):
    box = machine()
    order, other = engine_order(), engine_order(2)
    script = ["sh", "-c", 'sleep 300 & "$@"', "sh"]
    box.follow(changed(order, command=[*script, *order.command]), other)
    box.until("ready")
    box.until("ready", replica=2)
    marker = f"{box.engines.book.owner()}/1/1/{box.nonce()}"
    assert len(keeper.marked(marker)) == 3  # the shell, what it left in the background, the engine
    box.follow(other)
    eventually(lambda: box.status(1), lambda status: status is None or status.state == "stopped")
    assert keeper.marked(marker) == []
    assert box.status(2).state == "ready"
    eventually(lambda: not (box.folder / "1").exists())


def test_a_drain_waits_for_running_requests_and_cuts_none(machine, streaming):
    box = machine()
    order = engine_order(1, "--ms-per-token", 50)
    box.follow(order)
    box.until("ready")
    stream = streaming(order, tokens=16)
    box.follow(changed(order, wanted="drain"))
    box.until("draining")
    box.until("stopped")
    assert stream.result() == [f" t{number}" for number in range(16)]


def test_a_drain_waits_for_queued_work_whose_caller_has_gone_away(machine):
    box = machine()
    order = engine_order(1, "--prompt-seconds", 0.6, "--no-metrics", metrics_path="", queue_path="/queue")
    box.follow(order)
    box.until("ready")
    for _ in range(2):
        httpx.post(f"http://127.0.0.1:{order.port}/prompt", timeout=5).raise_for_status()
    waiting = box.until("ready", health="saturated")
    assert (waiting.running, waiting.waiting) == (1.0, 1.0)
    box.follow(changed(order, wanted="drain"))
    box.until("stopped")
    assert [line for line in box.log().splitlines() if "executed" in line] == ["prompt 0 executed", "prompt 1 executed"]


def test_a_drain_ends_at_its_limit(machine, streaming):
    box = machine()
    order = engine_order(1, "--ms-per-token", 50, "--drain-seconds", 0, drain_limit_seconds=0.5)
    box.follow(order)
    pid = pid_of(box.until("ready"))
    stream = streaming(order, tokens=1000)
    box.follow(changed(order, wanted="drain"))
    box.until("stopped")
    assert not is_alive(pid)
    assert 0 < len(stream.result()) < 1000


def test_without_metrics_a_drain_looks_at_the_connections(machine, streaming):
    box = machine()
    order = engine_order(1, "--ms-per-token", 50, "--no-metrics", metrics_path="")
    box.follow(order)
    box.until("ready")
    stream = streaming(order, tokens=16)
    box.follow(changed(order, wanted="drain"))
    box.until("stopped")
    assert len(stream.result()) == 16


def test_one_that_ignores_sigterm_is_killed_after_its_grace(machine):
    box = machine()
    order = engine_order(1, "--ignore-sigterm")
    box.follow(order)
    pid = pid_of(box.until("ready"))
    box.follow(changed(order, wanted="drain"))
    box.until("stopped")
    assert not is_alive(pid)


def test_one_that_outgrows_its_memory_is_ended_and_said_to_have(machine):
    box = machine()
    box.follow(engine_order(1, "--memory-mb", 200, memory_limit_bytes=100 << 20))
    assert "memory" in box.until("pending", reason="out_of_memory", seconds=30).detail
    assert box.status().exit_code == 128 + signal.SIGKILL


def test_an_engine_whose_folder_is_gone_is_not_left_running_unknown(machine):
    box = machine()
    box.follow(engine_order())
    pid = pid_of(box.until("ready"))
    runtime = box.engines.runtimes.by_name["process"]
    nonce = box.nonce()
    (box.folder / "1" / "run.json.new").mkdir()  # nothing can be written down here
    kill(pid)
    assert "is there room" in box.until("pending", reason="spawn_failed").detail
    assert keeper.marked(f"{box.engines.book.owner()}/1/1/{nonce}") == []
    (box.folder / "1" / "run.json.new").rmdir()
    again = box.until("ready")
    assert runtime.look(1).handle == again.handle
