"""State machines and verdicts: the tables are total, and nobody else assigns a state."""

import ast
from pathlib import Path

import pytest

from fleet.enums import DriverState, GpuHealth, GpuState, LeaseState, ServerState
from fleet.leasing.lifecycle import LEASE_TRANSITIONS
from fleet.lifecycle import (
    GPU_TRANSITIONS,
    SERVER_TRANSITIONS,
    gpu_health_of,
    server_settled_state,
    silent_after_seconds,
    worst_gpu_health,
)
from fleet.models import Server
from fleet.services.transitions import server_transition
from panel.core.enums import Severity
from panel.core.errors import Conflict, Stale
from panel.core.models import Event
from tests.fleet.factories import NOON, OPERATOR

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize(("table", "states"), [(SERVER_TRANSITIONS, ServerState), (GPU_TRANSITIONS, GpuState)])
def test_every_state_has_a_row_and_leads_only_to_known_other_states(table, states):
    assert set(table) == set(states)
    for state, following in table.items():
        assert following <= set(states)
        assert state not in following


@pytest.mark.parametrize(
    ("table", "start"),
    [
        (SERVER_TRANSITIONS, ServerState.PENDING),
        (GPU_TRANSITIONS, GpuState.UNKNOWN),
        (LEASE_TRANSITIONS, LeaseState.REQUESTED),
    ],
)
def test_every_state_can_be_reached_and_left(table, start):
    reached, edge = {start}, {start}
    while edge:
        edge = set().union(*(table[state] for state in edge)) - reached
        reached |= edge
    assert reached == set(table)
    assert all(table.values())


def _assigns_state(tree):
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        flat = [part for target in targets for part in getattr(target, "elts", [target])]
        if any(isinstance(part, ast.Attribute) and part.attr == "state" for part in flat):
            return True
        name = getattr(getattr(node, "func", None), "attr", getattr(getattr(node, "func", None), "id", ""))
        if name in {"Server", "Gpu", "update", "create"} and any(word.arg == "state" for word in node.keywords):
            return True
    return False


def test_states_are_assigned_in_one_module_only():
    sources = [path for part in ("fleet", "monitoring", "panel") for path in (ROOT / part).rglob("*.py")]
    sources = [path for path in sources if not {"agent", "simulation", "migrations"} & set(path.parts)]
    assert len(sources) > 50
    found = {str(path.relative_to(ROOT)) for path in sources if _assigns_state(ast.parse(path.read_text()))}
    # transitions change servers and cards, leases and operations their own; the others give a new row its first state
    fleet = {
        f"fleet/services/{name}.py"
        for name in ("transitions", "operations", "inventory_gpus", "joining", "ordering", "contracts")
    }
    # diagnoses, go-live tests and rules have states of their own, changed by those who follow, start, end or judge them
    followed = {f"monitoring/{name}.py" for name in ("diagnosing/following", "alerts/evaluator")}
    tested = {f"monitoring/golive_runs/{name}.py" for name in ("following", "starting", "verdict")}
    assert found == fleet | followed | tested


@pytest.fixture
def server(db):
    return Server.objects.create(name="rack-1", state=ServerState.READY, state_changed_at=NOON, created_at=NOON)


def test_a_transition_is_stored_with_its_event(server):
    server_transition(server=server, to=ServerState.DEGRADED, reason="gpu_lost", actor=OPERATOR, at=NOON)
    server.refresh_from_db()
    assert (server.state, server.state_reason, server.version) == ("degraded", "gpu_lost", 1)
    event = Event.objects.get()
    assert (event.kind, event.severity, event.subject_id) == ("server.state_changed", "warning", server.pk)
    assert event.data == {"from": "ready", "to": "degraded", "reason": "gpu_lost", "by": "operator"}


def test_the_second_of_two_that_read_the_same_row_is_stale(server):
    other = Server.objects.get(pk=server.pk)
    server_transition(server=server, to=ServerState.MAINTENANCE, reason="", actor=OPERATOR, at=NOON)
    with pytest.raises(Stale):
        server_transition(server=other, to=ServerState.RETIRED, reason="", actor=OPERATOR, at=NOON)
    server.refresh_from_db()
    assert server.state == ServerState.MAINTENANCE


def test_a_transition_that_the_table_does_not_have_is_refused(server):
    server_transition(server=server, to=ServerState.RETIRED, reason="", actor=OPERATOR, at=NOON)
    with pytest.raises(Conflict) as caught:
        server_transition(server=server, to=ServerState.READY, reason="", actor=OPERATOR, at=NOON)
    assert caught.value.code == "transition_refused"


def test_another_reason_for_the_same_state_is_stored_and_no_event(server):
    server_transition(server=server, to=ServerState.READY, reason="said so", actor=OPERATOR, at=NOON)
    server.refresh_from_db()
    assert server.state_reason == "said so"
    assert not Event.objects.exists()


@pytest.mark.parametrize(
    ("driver", "gpus", "expected"),
    [
        (DriverState.OK, [GpuState.OK] * 8, (ServerState.READY, "")),
        (DriverState.OK, [GpuState.OK] * 7 + [GpuState.MISSING], (ServerState.DEGRADED, "gpu_missing")),
        (DriverState.OK, [GpuState.MISSING, GpuState.LOST], (ServerState.DEGRADED, "gpu_lost")),
        (DriverState.VERSION_MISMATCH, [GpuState.UNKNOWN], (ServerState.DEGRADED, "driver_version_mismatch")),
        (DriverState.NO_GPU, [GpuState.MISSING], (ServerState.DEGRADED, "driver_no_gpu")),
        (DriverState.UNKNOWN, [GpuState.OK], (ServerState.READY, "")),
        (DriverState.UNKNOWN, [], (ServerState.READY, "")),
        (DriverState.NO_LIBRARY, [], (ServerState.READY, "")),
        (DriverState.NO_GPU, [], (ServerState.READY, "")),
        (DriverState.NOT_LOADED, [], (ServerState.DEGRADED, "driver_not_loaded")),
    ],
)
def test_a_reporting_server_is_ready_or_degraded_by_its_driver_and_cards(driver, gpus, expected):
    assert server_settled_state(driver, gpus) == expected


@pytest.mark.parametrize(
    ("state", "reason", "health", "fault", "expected"),
    [
        (GpuState.OK, "", {}, None, GpuHealth.HEALTHY),
        (GpuState.OK, "", {"recovery_action": 0, "ecc_uncorrected_volatile": 0}, None, GpuHealth.HEALTHY),
        (GpuState.LOST, "gpu_lost", {}, None, GpuHealth.FAILED),
        (GpuState.MISSING, "", {}, None, GpuHealth.FAILED),
        (GpuState.DEGRADED, "reset_required", {}, None, GpuHealth.FAILED),
        (GpuState.DEGRADED, "handle_refused", {}, None, GpuHealth.WARNING),
        (GpuState.OK, "", {"remapped_rows_pending": True}, None, GpuHealth.WARNING),
        (GpuState.OK, "", {"remapped_rows_failure": True}, None, GpuHealth.FAILED),
        (GpuState.OK, "", {"recovery_action": 1}, None, GpuHealth.FAILED),
        (GpuState.OK, "", {"recovery_action": 3}, None, GpuHealth.WARNING),
        (GpuState.OK, "", {"ecc_uncorrected_volatile": 2}, None, GpuHealth.WARNING),
        (GpuState.OK, "", {"ecc_uncorrected_volatile": None}, Severity.WARNING, GpuHealth.WARNING),
        (GpuState.OK, "", {}, Severity.CRITICAL, GpuHealth.FAILED),
        (GpuState.UNKNOWN, "not_answering", {"remapped_rows_failure": True}, None, GpuHealth.UNKNOWN),
    ],
)
def test_a_cards_verdict(state, reason, health, fault, expected):
    assert gpu_health_of(state, reason, health, fault) == expected


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([], GpuHealth.UNKNOWN),
        ([GpuHealth.UNKNOWN, GpuHealth.UNKNOWN], GpuHealth.UNKNOWN),
        ([GpuHealth.HEALTHY, GpuHealth.UNKNOWN], GpuHealth.WARNING),
        ([GpuHealth.HEALTHY, GpuHealth.WARNING], GpuHealth.WARNING),
        ([GpuHealth.HEALTHY, GpuHealth.FAILED, GpuHealth.WARNING], GpuHealth.FAILED),
        ([GpuHealth.HEALTHY], GpuHealth.HEALTHY),
    ],
)
def test_a_server_is_as_ill_as_its_worst_card(verdicts, expected):
    assert worst_gpu_health(verdicts) == expected


def test_two_missed_reports_make_silence_and_one_does_not():
    assert 10 < silent_after_seconds(5) <= 15
    assert 2 < silent_after_seconds(1) < 6
    assert silent_after_seconds(60) == 150
