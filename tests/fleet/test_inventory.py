"""What a report says of a machine and its cards, applied."""

from datetime import timedelta
from itertools import permutations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.agent import wire
from fleet.enums import ServerState
from fleet.models import AgentStream, Gpu, Server
from fleet.services.inventory import inventory_apply
from fleet.services.servers import server_end, server_maintenance_set
from panel.core.clock import now
from panel.core.errors import InvalidInput, NotAuthenticated
from panel.core.models import Event
from tests.fleet.factories import GIB, NOON, OPERATOR, Machine, card, card_uuid, facts, joined, sample, xid

pytestmark = pytest.mark.django_db


@pytest.fixture
def machine():
    return Machine(joined()[0])


def states(machine):
    return [gpu.state for gpu in machine.server.gpus.order_by("uuid")]


def test_the_first_report_makes_the_server_ready_with_its_cards(machine):
    ids = machine.send(at=NOON, host=wire.HostFacts(hostname="node", cpu_count=96))
    server = machine.server
    assert (server.state, server.gpu_health, server.driver_state) == ("ready", "healthy", "ok")
    assert (server.driver_version, server.cuda_version) == ("590.48.01", "13.1")
    assert server.facts == {"hostname": "node", "cpu_count": 96}
    assert server.facts_at == NOON
    gpu = machine.gpu(3)
    assert ids == {row.uuid: row.pk for row in server.gpus.all()}
    assert len(ids) == 8
    assert (gpu.name, gpu.index, gpu.memory_total_bytes, gpu.power_limit_watts) == ("NVIDIA H200", 3, 140 * GIB, 700.0)
    assert gpu.pci_bus_id == "00000000:06:00.0"
    assert Event.objects.get(kind="gpu.found").data["count"] == 8


def test_the_same_report_twice_changes_nothing(machine):
    report = machine.report(faults=[xid(79, NOON, number=2)], host=wire.HostFacts(hostname="node"))
    first = machine.send(at=NOON, report=report)
    before = (list(Gpu.objects.order_by("pk").values()), list(Server.objects.values()), Event.objects.count())
    assert machine.send(at=NOON, report=report) == first
    assert (list(Gpu.objects.order_by("pk").values()), list(Server.objects.values()), Event.objects.count()) == before


def test_a_report_behind_its_stream_is_not_applied_over_newer_ones(machine):
    old = machine.report(gpus=[card(0, state="lost", reason="gpu_lost")])
    machine.send(at=NOON)
    AgentStream.objects.create(agent=machine.agent, boot_id=machine.boot_id, last_seq=2, last_at=NOON)
    assert machine.send(at=NOON, report=old) == {card_uuid(number): machine.gpu(number).pk for number in range(8)}
    assert states(machine) == ["ok"] * 8


def test_a_card_that_no_longer_enumerates_is_missing_since_then_and_comes_back(machine):
    machine.send(at=NOON)
    gone = NOON + timedelta(minutes=1)
    machine.send(at=gone, gpus=[*machine.cards[:7], card(7, state="missing", facts=None, health=None)])
    gpu, server = machine.gpu(7), machine.server
    assert (gpu.state, gpu.state_changed_at) == ("missing", gone)
    assert (server.state, server.state_reason, server.gpu_health) == ("degraded", "gpu_missing", "failed")
    event = Event.objects.get(kind="gpu.state_changed")
    assert (event.severity, event.subject_id, event.data["uuid"]) == ("critical", gpu.pk, card_uuid(7))
    machine.send(at=gone + timedelta(minutes=1))
    assert (machine.gpu(7).state, machine.server.state, machine.server.gpu_health) == ("ok", "ready", "healthy")
    assert [event.severity for event in Event.objects.filter(kind="gpu.state_changed").order_by("id")] == [
        "critical",
        "info",
    ]


def test_a_card_that_the_agent_forgot_stays_listed(machine):
    machine.send(at=NOON)
    machine.send(at=NOON + timedelta(minutes=1), gpus=machine.cards[:7])
    assert (machine.gpu(7).state, machine.gpu(7).state_reason) == ("missing", "not_enumerated")


def test_a_host_that_reports_no_cards_at_all_has_all_of_them_missing(machine):
    machine.send(at=NOON)
    machine.send(at=NOON + timedelta(minutes=1), gpus=[], driver=wire.Driver(state="no_gpu"))
    assert set(states(machine)) == {"missing"}
    assert (machine.server.state, machine.server.gpu_health) == ("degraded", "failed")


def test_an_agent_that_has_not_looked_yet_says_nothing_of_the_cards(machine):
    machine.send(at=NOON)
    machine.boot_id = "0b7c2e6e-9f0d-4b52-8a75-0d1f0f5f1c55"
    machine.send(at=NOON + timedelta(seconds=5), gpus=[], driver=wire.Driver(state="unknown"))
    assert states(machine) == ["ok"] * 8
    assert (machine.server.state, machine.server.gpu_health, machine.server.driver_state) == ("ready", "healthy", "ok")
    assert not Event.objects.filter(kind="gpu.state_changed").exists()
    assert Event.objects.filter(kind="server.driver_changed").count() == 1


def test_a_driver_mismatch_leaves_known_cards_listed_as_unknown_with_both_versions(machine):
    machine.send(at=NOON)
    mismatch = wire.Driver(
        state="version_mismatch", detail="Driver/library version mismatch", version="550.90", library_version="550.144"
    )
    machine.send(at=NOON + timedelta(minutes=1), gpus=[], driver=mismatch)
    server = machine.server
    assert states(machine) == ["unknown"] * 8
    assert (server.state, server.state_reason) == ("degraded", "driver_version_mismatch")
    assert (server.driver_version, server.driver_library_version) == ("550.90", "550.144")
    assert Event.objects.filter(kind="server.driver_changed").latest("id").severity == "warning"


def test_a_driver_that_fails_keeps_the_version_it_had_told(machine):
    machine.send(at=NOON)
    machine.send(at=NOON, driver=wire.Driver(state="not_answering", since_ms=int(NOON.timestamp() * 1000) - 60_000))
    server = machine.server
    assert server.driver_version == "590.48.01"
    assert server.driver_since == NOON - timedelta(minutes=1)


def test_when_the_drivers_state_began_is_moved_to_the_panels_clock(machine):
    since_ms = int((NOON + timedelta(minutes=3)).timestamp() * 1000)
    machine.send(at=NOON, skew=180.0, driver=wire.Driver(state="ok", since_ms=since_ms))
    assert machine.server.driver_since == NOON
    assert machine.agent.server.agent.clock_skew_seconds == 180.0


def test_an_unknown_state_is_unknown_and_no_error(machine):
    machine.send(at=NOON, gpus=[card(0, state="on_fire")], driver=wire.Driver(state="strange"))
    assert (machine.gpu(0).state, machine.server.driver_state) == ("unknown", "error")


@pytest.mark.parametrize("order", list(permutations(range(3)))[1:])
def test_values_follow_the_uuid_whatever_the_order_and_index(machine, order):
    machine.send(at=NOON, gpus=machine.cards[:3])
    before = {gpu.uuid: (gpu.pk, gpu.pci_bus_id) for gpu in Gpu.objects.all()}
    shuffled = [card(number, index=index) for index, number in enumerate(order)]
    machine.send(at=NOON, gpus=shuffled)
    assert {gpu.uuid: (gpu.pk, gpu.pci_bus_id) for gpu in Gpu.objects.all()} == before
    assert [machine.gpu(number).index for number in order] == [0, 1, 2]


def test_cards_of_one_model_are_so_many_cards(machine):
    same = [card(number, facts=facts(number, name="NVIDIA A10")) for number in range(4)]
    assert len(machine.send(at=NOON, gpus=same)) == 4


def test_one_refused_card_hides_none_of_its_neighbours(machine):
    machine.send(at=NOON, gpus=[card(0, state="degraded", reason="handle_refused", facts=None), *machine.cards[1:]])
    assert states(machine) == ["degraded"] + ["ok"] * 7
    assert machine.server.gpu_health == "warning"


def refused(index):
    return wire.Gpu(uuid=f"unidentified-{index}", index=index, state="unknown", reason="no_permission")


def unidentified(machine):
    rows = machine.server.gpus.filter(uuid__startswith="unidentified-", removed_at=None)
    return set(rows.values_list("uuid", flat=True))


@pytest.mark.parametrize("was_known", [False, True])
def test_a_card_without_a_name_goes_once_its_index_has_one(machine, was_known):
    if was_known:
        machine.send(at=NOON)
    machine.send(at=NOON + timedelta(minutes=1), gpus=[*machine.cards[:5], refused(5), refused(6), machine.cards[7]])
    assert unidentified(machine) == {"unidentified-5", "unidentified-6"}
    machine.send(at=NOON + timedelta(minutes=2), gpus=[*machine.cards[:6], refused(6), machine.cards[7]])
    assert unidentified(machine) == {"unidentified-6"}
    machine.send(at=NOON + timedelta(minutes=3))
    assert unidentified(machine) == set()
    assert states(machine)[:8] == ["ok"] * 8
    assert (machine.server.state, machine.server.gpu_health) == ("ready", "healthy")
    machine.send(at=NOON + timedelta(minutes=4), gpus=[*machine.cards[:7], refused(7)])
    assert unidentified(machine) == {"unidentified-7"}


def test_a_card_without_a_name_that_is_gone_altogether_is_missing(machine):
    machine.send(at=NOON, gpus=[*machine.cards[:7], refused(7)])
    machine.send(at=NOON + timedelta(minutes=1), gpus=machine.cards[:7])
    gpu = machine.server.gpus.get(uuid="unidentified-7")
    assert (gpu.state, gpu.removed_at) == ("missing", None)


def test_the_place_of_a_lost_slice_names_no_card(machine):
    machine.send(at=NOON, gpus=[card(0), refused(1)])
    machine.send(at=NOON + timedelta(minutes=1), gpus=[card(0), slice_of(0, 1)])
    assert unidentified(machine) == {"unidentified-1"}


def test_a_uuid_claimed_by_two_servers_is_two_rows_and_neither_touches_the_other(machine):
    machine.send(at=NOON)
    thief = Machine(joined("thief")[0])
    thief.send(at=NOON, gpus=[card(0, state="lost", facts=facts(0, name="Fake"), processes=[])])
    assert (machine.gpu(0).state, machine.gpu(0).name) == ("ok", "NVIDIA H200")
    assert thief.gpu(0).pk != machine.gpu(0).pk
    assert machine.server.gpu_health == "healthy"
    thief.send(at=NOON, gpus=[])
    assert states(machine) == ["ok"] * 8


def test_a_limit_lowered_by_its_owner_is_the_cards_own(machine):
    machine.send(at=NOON, gpus=[card(0, health=wire.GpuHealth(enforced_power_limit_milliwatts=450_000))])
    assert machine.gpu(0).power_limit_watts == 450.0
    machine.send(at=NOON, gpus=[card(0, facts=None, health=None)])
    assert machine.gpu(0).power_limit_watts == 450.0


def test_what_a_batch_did_not_read_stays_as_it_was(machine):
    process = wire.GpuProcess(pid=4242, kinds=["compute"], name="python", memory_used_bytes=GIB)
    health = wire.GpuHealth(remapped_rows_pending=True)
    machine.send(at=NOON, gpus=[card(0, processes=[process], processes_visibility="visible", health=health)])
    machine.send(at=NOON + timedelta(seconds=5), gpus=[card(0, facts=None, health=None, processes=None)])
    gpu = machine.gpu(0)
    assert gpu.processes == [{"pid": 4242, "kinds": ["compute"], "name": "python", "memory_used_bytes": GIB}]
    assert (gpu.processes_visibility, gpu.processes_at, gpu.health_at) == ("visible", NOON, NOON)
    assert machine.server.gpu_health == "warning"


def test_the_first_sample_is_noted_once(machine):
    machine.send(at=NOON)
    assert machine.server.first_sample_at is None
    machine.send(at=NOON + timedelta(seconds=5), gpus=[card(0, samples=[sample(NOON)])])
    machine.send(at=NOON + timedelta(seconds=10), gpus=[card(0, samples=[sample(NOON)])])
    assert machine.server.first_sample_at == NOON + timedelta(seconds=5)


def slice_of(parent, number, **kwargs):
    given = {
        "uuid": f"MIG-{number}",
        "index": number,
        "parent_uuid": card_uuid(parent),
        "facts": facts(parent, name="1g.18gb"),
    }
    return wire.Gpu(**(given | kwargs))


def test_slices_hang_on_their_card_and_do_not_count_as_cards(machine):
    ids = machine.send(at=NOON, gpus=[slice_of(0, 1), card(0), slice_of(0, 2)])
    assert set(ids) == {card_uuid(0), "MIG-1", "MIG-2"}
    parent = machine.gpu(0)
    assert set(parent.instances.values_list("uuid", flat=True)) == {"MIG-1", "MIG-2"}
    assert Event.objects.get(kind="gpu.found").data["count"] == 1


@pytest.mark.parametrize("told", [[], [slice_of(0, 2, state="missing")]])
def test_slices_that_were_taken_apart_are_no_missing_cards(machine, told):
    machine.send(at=NOON, gpus=[card(0), slice_of(0, 1), slice_of(0, 2)])
    machine.send(at=NOON, gpus=[card(0), slice_of(0, 1), *told])
    assert Gpu.objects.get(uuid="MIG-2").removed_at == NOON
    assert (machine.server.state, machine.server.gpu_health) == ("ready", "healthy")
    machine.send(at=NOON, gpus=[card(0), slice_of(0, 1), slice_of(0, 2)])
    assert Gpu.objects.get(uuid="MIG-2").removed_at is None


def test_slices_of_a_lost_card_stay_listed(machine):
    machine.send(at=NOON, gpus=[card(0), slice_of(0, 1)])
    machine.send(at=NOON, gpus=[card(0, state="lost", reason="gpu_lost", facts=None, health=None)])
    assert Gpu.objects.get(uuid="MIG-1").removed_at is None
    assert Gpu.objects.get(uuid="MIG-1").state == "missing"


def test_a_slice_cannot_hang_on_another_servers_card_or_on_itself(machine):
    machine.send(at=NOON)
    other = Machine(joined("other")[0])
    itself = wire.Gpu(uuid="MIG-9", parent_uuid="MIG-9")
    other.send(at=NOON, gpus=[slice_of(0, 1), itself, card(5)])
    assert [gpu.parent_id for gpu in other.server.gpus.all()] == [None, None, None]


def test_maintenance_is_a_persons_word_that_reports_do_not_change(machine):
    machine.send(at=NOON)
    server_maintenance_set(server_id=machine.agent.server_id, is_on=True, actor=OPERATOR, reason="new fans")
    machine.send(at=NOON, gpus=[card(0, state="lost", reason="gpu_lost")])
    assert (machine.server.state, machine.server.state_reason) == ("maintenance", "new fans")
    assert machine.server.gpu_health == "failed"


@pytest.mark.parametrize("state", [ServerState.UNREACHABLE, ServerState.NOT_REPORTING])
def test_reporting_is_proof_enough_that_a_server_is_there(machine, state):
    machine.send(at=NOON)
    Server.objects.update(state=state, state_reason="probe_failed")
    machine.send(at=NOON)
    assert (machine.server.state, machine.server.state_reason) == ("ready", "")


def test_a_retired_server_refuses_reports(machine):
    machine.send(at=NOON)
    server_end(server_id=machine.agent.server_id, reason="retired", actor=OPERATOR)
    with pytest.raises(NotAuthenticated):
        machine.send(at=NOON)


def test_a_boot_id_that_is_none_is_refused(machine):
    machine.boot_id = "yesterday"
    with pytest.raises(InvalidInput):
        machine.send(at=NOON)


def test_hostile_text_and_numbers_are_stored_without_harm(machine):
    bad = "a\x00b\x1b[31m" + "x" * 90
    machine.send(
        at=NOON,
        driver=wire.Driver(state="ok", detail=bad, version=bad[:60]),
        host=wire.HostFacts(hostname=bad, container_cpu_limit=float("nan"), memory_total_bytes=2**80),
        gpus=[
            card(0, facts=facts(0, name=bad, memory_total_bytes=2**63), health=wire.GpuHealth(pcie_replays=2**70)),
            card(1, facts=facts(1, memory_total_bytes=-1, power_limit_milliwatts=2**62), index=99_999),
            card(2, uuid="  "),
            card(1, state="lost"),
            card(
                3, processes=[wire.GpuProcess(pid=-1, kinds=["\x00"], name="<script>=1+1")], unsupported={"\x00": "x"}
            ),
        ],
        faults=[wire.Fault(key="k", at_ms=-5, code=79), wire.Fault(key="l", at_ms=2**60, code=79), xid(2**40, NOON)],
    )
    server = machine.server
    assert server.facts["hostname"] == ("ab[31m" + "x" * 90)
    assert (server.facts["container_cpu_limit"], server.facts["memory_total_bytes"]) == (None, None)
    assert machine.gpu(0).memory_total_bytes is None
    assert (machine.gpu(1).memory_total_bytes, machine.gpu(1).power_limit_watts, machine.gpu(1).index) == (
        None,
        None,
        None,
    )
    assert machine.gpu(1).state == "ok"
    assert machine.gpu(3).processes[0]["name"] == "<script>=1+1"
    assert server.gpus.count() == 3
    assert not server.faults.exists()


def test_a_server_whose_cards_flicker_fills_no_table_with_events(machine, monkeypatch):
    monkeypatch.setattr("fleet.services.transitions.GPU_EVENTS_PER_HOUR", 20)
    at = now()
    machine.send(at=at)
    for step in range(1, 7):
        state = "lost" if step % 2 else "ok"
        machine.send(at=at + timedelta(seconds=step), gpus=[card(number, state=state) for number in range(8)])
    assert Event.objects.filter(kind="gpu.state_changed").count() == 16
    summaries = Event.objects.filter(kind="gpu.states_changed").order_by("id")
    assert [(event.data["count"], event.severity) for event in summaries] == [
        (8, "critical" if step % 2 else "info") for step in range(3, 7)
    ]


def test_an_address_that_is_none_is_not_kept(machine):
    inventory_apply(
        agent_id=machine.agent.pk, report=machine.report(), received_at=NOON, clock_skew_seconds=None, address="unix:"
    )
    machine.agent.refresh_from_db()
    assert (machine.agent.last_seen_at, machine.agent.last_address) == (NOON, None)


def statements(captured):
    return [query["sql"] for query in captured if "SAVEPOINT" not in query["sql"]]


@pytest.mark.parametrize("cards", [1, 8, 64])
def test_a_report_costs_the_same_few_queries_for_any_number_of_cards(cards):
    machine = Machine(joined()[0], cards=cards)
    machine.send(at=NOON)
    process = wire.GpuProcess(pid=1, kinds=["compute"])
    slow = [card(number, facts=None, processes=[process]) for number in range(cards)]
    with CaptureQueriesContext(connection) as captured:
        machine.send(at=NOON + timedelta(seconds=5), gpus=slow)
    assert len(statements(captured)) == 6, "\n".join(statements(captured))


def test_the_first_report_of_64_cards_costs_few_queries():
    machine = Machine(joined()[0], cards=64)
    with CaptureQueriesContext(connection) as captured:
        machine.send(at=NOON, host=wire.HostFacts(hostname="node"))
    assert len(statements(captured)) <= 12, "\n".join(query[:200] for query in statements(captured))


def test_nothing_is_applied_for_an_agent_that_is_none(machine):
    with pytest.raises(NotAuthenticated):
        inventory_apply(agent_id=0, report=machine.report(), received_at=NOON, clock_skew_seconds=None, address=None)
