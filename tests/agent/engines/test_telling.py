"""What the panel is told: at once when something changes, again until it listens, logs beside it, and no secret ever."""

from dataclasses import replace

import msgspec
import pytest

from tests.agent.engines.conftest import QUICK, changed, engine_order
from tests.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]


def test_changes_are_told_at_once_and_the_present_state_when_the_panel_listens_again(machine, panel):
    box = machine(replace(QUICK, report=60.0))
    box.follow(engine_order())
    box.until("ready")
    eventually(lambda: "ready" in [status.state for status in box.told()])
    reports = list(panel.replica_reports)
    assert [report.seq for report in reports] == list(range(1, len(reports) + 1))
    assert reports[-1].orders_version == 1
    assert reports[-1].runtimes["process"] == "ok"
    panel.is_away = True
    box.follow()
    eventually(lambda: box.engines.replicas() == [])
    panel.replica_reports.clear()
    panel.is_away = False
    eventually(lambda: [status.state for status in box.told()] == ["stopped"])
    assert box.engines.statuses() == []  # told once, then forgotten
    assert [path.name for path in box.folder.iterdir()] == ["owner"]


def test_no_secret_leaves_the_machine_and_nobody_else_can_read_it_here(machine, panel):
    box = machine()
    canary = "canary-3f9a-secret"
    order = engine_order(
        1,
        "--say-environment",
        "HF_TOKEN",
        "--say",
        f"using {canary}",
        "--crash-at-start",
        3,
        secrets={"HF_TOKEN": canary},
    )
    box.follow(order, engine_order(2, secrets={"TOKEN": canary}))
    failed = box.until("failed", reason="crash_loop")
    box.until("ready", replica=2)
    eventually(lambda: [chunk for chunk in panel.log_chunks if "as it was told" in chunk.text])
    assert canary in box.log()  # the engine itself has it
    said = msgspec.json.encode([panel.replica_reports, panel.log_chunks]).decode()
    assert canary not in said
    assert "[secret]" in said
    assert failed.exit_code == 3
    for path in box.folder.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0 or path.parent.stat().st_mode & 0o077 == 0, path
    assert (box.folder / "orders.json").stat().st_mode & 0o777 == 0o600
    assert (box.folder / "1" / "record.json").stat().st_mode & 0o777 == 0o600
    pids = [status.handle.removeprefix("pid ") for status in box.engines.statuses() if status.handle]
    assert all(canary not in _command_line(pid) for pid in pids)


def test_logs_arrive_in_order_with_places_that_fit_together(machine, panel):
    box = machine()
    lines = [f"line {number}" for number in range(200)]
    box.follow(engine_order(1, *[word for line in lines for word in ("--say", line)]))
    box.until("ready")
    eventually(lambda: any("listening" in chunk.text for chunk in panel.log_chunks))
    chunks = list(panel.log_chunks)
    text = "".join(chunk.text for chunk in chunks)
    assert text.splitlines()[:200] == lines
    offsets = [chunk.offset for chunk in chunks]
    assert offsets == [sum(len(chunk.text) for chunk in chunks[:place]) for place in range(len(chunks))]


def test_a_runtime_that_cannot_be_used_is_named_with_what_to_do(machine, panel):
    box = machine(container_socket="unix:///nonexistent/docker.sock", allow_processes=False)
    box.follow(engine_order(1), changed(engine_order(2), runtime="container", image="org/engine"))
    assert "allow_processes" in box.until("failed", reason="policy").detail
    assert "/nonexistent/docker.sock" in box.until("pending", replica=2, reason="no_runtime").detail
    report = eventually(lambda: panel.replica_reports and panel.replica_reports[-1])
    assert report.runtimes == {}
    assert set(report.unusable) == {"process", "container"}


def _command_line(pid):
    from pathlib import Path

    return Path(f"/proc/{pid}/cmdline").read_text()
