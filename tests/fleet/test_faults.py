"""XIDs: joined to their card, counted once whoever tells them, bursts kept as one, graded by code."""

import itertools
import re
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleet.agent import wire
from fleet.models import FaultSighting, GpuFault
from fleet.pci import bus_id_key, same_bus_id
from fleet.services.faults import MAX_SIGHTINGS_PER_HOUR, faults_record, sightings_clear
from fleet.services.silence import gpu_health_refresh
from fleet.xids import XIDS, Step, fault_meaning, fault_severity
from panel.core.models import Event
from tests.fleet.factories import NOON, Machine, card, card_uuid, facts, joined, xid

SAMPLES = Path(__file__).parent.parent.parent.parent / "shared" / "samples"
MINUTE = timedelta(minutes=1)


def sample_text(name):
    path = SAMPLES / name
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return path.read_text()


@pytest.fixture
def machine(db):
    machine = Machine(joined()[0])
    machine.send(at=NOON)
    return machine


def send(machine, faults, at=NOON, **kwargs):
    machine.send(at=at, faults=faults, **kwargs)
    return list(GpuFault.objects.order_by("first_at", "id"))


def test_an_xid_of_the_kernel_log_is_joined_to_its_card_by_the_pci_address(machine):
    [fault] = send(machine, [xid(79, NOON, number=0, source="kernel_log", message="GPU has fallen off the bus")])
    assert fault.gpu == machine.gpu(0)
    assert (fault.code, fault.severity, fault.source, fault.count) == (79, "critical", "kernel_log", 1)
    event = Event.objects.get(kind="gpu.xid")
    assert (event.severity, event.subject_kind, event.subject_id) == ("critical", "gpu", fault.gpu_id)


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        ("0000:03:00", "00000000:03:00.0", True),
        ("PCI:0000:9b:00", "00000000:9B:00.0", True),
        ("0001:03:00.0", "00000000:03:00.0", False),
        ("03:00.0", "0000:03:00", True),
        ("", "", False),
        ("nonsense", "nonsense", False),
    ],
)
def test_pci_addresses_name_a_card_in_every_spelling(first, second, is_same):
    assert same_bus_id(first, second) is is_same


def test_a_fault_of_no_known_card_is_kept_with_its_address(machine):
    [fault] = send(machine, [xid(62, NOON, source="kernel_log", pci_bus_id="0000:ff:00")])
    assert (fault.gpu, fault.pci_bus_id) == (None, "0000:ff:00")
    assert Event.objects.get(kind="gpu.xid").subject_kind == "server"
    assert machine.server.gpu_health == "healthy"


def test_both_sources_of_one_second_count_once(machine):
    send(machine, [xid(48, NOON, source="nvml"), xid(48, NOON + timedelta(milliseconds=400), source="kernel_log")])
    [fault] = send(machine, [xid(48, NOON, source="kernel_log", message="DBE")])
    assert fault.count == 1


def test_the_source_that_saw_more_of_a_second_wins(machine):
    send(machine, [xid(31, NOON, source="nvml", count=2)])
    [fault] = send(machine, [xid(31, NOON, source="kernel_log", count=12)])
    assert fault.count == 12
    [fault] = send(machine, [xid(31, NOON, source="nvml", count=2)])
    assert fault.count == 12


def test_a_burst_is_one_fault_and_one_event_until_ten_quiet_minutes_pass(machine):
    for step in range(30):
        at = NOON + step * MINUTE
        send(machine, [xid(13, at)], at=at)
    [fault] = GpuFault.objects.all()
    assert (fault.count, fault.first_at, fault.last_at) == (30, NOON, NOON + 29 * MINUTE)
    later = fault.last_at + timedelta(minutes=10, seconds=1)
    assert len(send(machine, [xid(13, later)], at=later)) == 2
    assert Event.objects.filter(kind="gpu.xid").count() == 2


def test_codes_and_cards_are_counted_apart(machine):
    faults = send(machine, [xid(13, NOON), xid(31, NOON), xid(13, NOON, number=1)])
    assert Counter((fault.gpu_id, fault.code) for fault in faults).most_common(1)[0][1] == 1
    assert len(faults) == 3


def test_a_critical_fault_makes_the_card_failed_until_it_stops_repeating(machine):
    send(machine, [xid(119, NOON)])
    assert machine.server.gpu_health == "failed"
    assert machine.server.state == "ready"
    gpu_health_refresh(now=NOON + timedelta(minutes=9))
    assert machine.server.gpu_health == "failed"
    assert gpu_health_refresh(now=NOON + timedelta(minutes=10, seconds=1)) == 1
    assert machine.server.gpu_health == "healthy"


def test_a_lost_card_stays_failed_however_quiet_it_is(machine):
    machine.send(at=NOON, gpus=[card(0, state="lost", reason="gpu_lost"), *machine.cards[1:]], faults=[xid(79, NOON)])
    gpu_health_refresh(now=NOON + timedelta(hours=1))
    assert machine.server.gpu_health == "failed"


def test_information_makes_no_card_ill(machine):
    send(machine, [xid(13, NOON), xid(43, NOON), xid(45, NOON)])
    assert machine.server.gpu_health == "healthy"


def test_times_are_moved_to_the_panels_clock_and_never_lie_ahead(machine):
    ahead = NOON + timedelta(minutes=3)
    [fault] = send(machine, [xid(79, ahead)], skew=180.0)
    assert fault.first_at == NOON
    faults = send(machine, [xid(62, NOON + timedelta(hours=1))], skew=None)
    assert faults[-1].first_at == NOON


def test_the_same_sighting_with_another_measure_of_the_skew_counts_once(machine):
    send(machine, [xid(79, NOON)], skew=1.2)
    [fault] = send(machine, [xid(79, NOON)], skew=-3.4)
    assert fault.count == 1


def test_old_news_is_listed_without_an_event_and_history_not_at_all(machine):
    yesterday = NOON - timedelta(hours=25)
    faults = send(machine, [xid(79, yesterday), xid(79, NOON - timedelta(days=31))])
    assert [fault.first_at for fault in faults] == [yesterday]
    assert not Event.objects.filter(kind="gpu.xid").exists()
    assert machine.server.gpu_health == "healthy"


def test_sightings_are_cleared_once_nothing_can_repeat_them(machine):
    send(machine, [xid(79, NOON)])
    assert sightings_clear(now=NOON + timedelta(days=34)) == 0
    assert sightings_clear(now=NOON + timedelta(days=36)) == 1
    assert GpuFault.objects.count() == 1


def test_a_machine_that_floods_fills_no_tables(machine, monkeypatch):
    monkeypatch.setattr("fleet.services.faults.MAX_SIGHTINGS_PER_HOUR", 10)
    for second in range(4):
        send(machine, [xid(100 + code, NOON + timedelta(seconds=second)) for code in range(4)])
    assert FaultSighting.objects.count() == 10
    send(machine, [xid(99, NOON + timedelta(minutes=61))], at=NOON + timedelta(minutes=61))
    assert FaultSighting.objects.count() == 11
    assert MAX_SIGHTINGS_PER_HOUR >= 500


def test_a_fault_with_many_sightings_costs_few_queries(machine, django_assert_max_num_queries):
    report = machine.report(faults=[xid(48, NOON + timedelta(seconds=step)) for step in range(300)])
    with django_assert_max_num_queries(16):
        machine.send(at=NOON + timedelta(minutes=6), report=report)
    assert GpuFault.objects.get().count == 300


# What an agent may send: sightings of a few cards and codes within two hours, each by one or both sources, the reports
# cut anywhere, sent again, and in any order.
_sighting = st.tuples(
    st.integers(0, 1),
    st.sampled_from([13, 79]),
    st.integers(0, 7200),
    st.sampled_from(["nvml", "kernel_log"]),
    st.integers(1, 9),
)


_numbers = itertools.count()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(told=st.lists(_sighting, min_size=1, max_size=25), data=st.data())
def test_however_reports_are_cut_repeated_and_ordered_every_sighting_counts_once(db, told, data):
    agent = joined(f"machine {next(_numbers)}")[0]
    Machine(agent, cards=2).send(at=NOON)
    gpus = list(agent.server.gpus.all())
    faults = [
        xid(code, NOON + timedelta(seconds=second), number=number, source=source, count=count)
        for number, code, second, source, count in told
    ]
    sent = data.draw(st.permutations(faults + data.draw(st.lists(st.sampled_from(faults), max_size=10))))
    cut = data.draw(st.integers(1, 6))
    for start in range(0, len(sent), cut):
        faults_record(
            server=agent.server,
            gpus=gpus,
            faults=sent[start : start + cut],
            received_at=NOON + timedelta(hours=3),
            clock_skew_seconds=0.0,
        )
    most: dict[tuple[int, int, int], int] = {}
    for number, code, second, _source, count in told:
        most[number, code, second] = max(most.get((number, code, second), 0), count)
    ids = {gpu.uuid: gpu.pk for gpu in gpus}
    for number in range(2):
        for code in (13, 79):
            rows = list(GpuFault.objects.filter(gpu_id=ids[card_uuid(number)], code=code))
            mine = {
                second: count for (card_number, c, second), count in most.items() if (card_number, c) == (number, code)
            }
            assert sum(row.count for row in rows) == sum(mine.values())
            seconds = [NOON + timedelta(seconds=second) for second in mine]
            assert all(any(row.first_at <= at <= row.last_at for row in rows) for at in seconds)
            if sent == sorted(sent, key=lambda fault: fault.at_ms):
                ordered = sorted(mine)
                gaps = sum(after - before > 600 for before, after in itertools.pairwise(ordered))
                assert len(rows) == (gaps + 1 if ordered else 0)


def kernel_faults(text, at_of):
    line = re.compile(r"NVRM: Xid \(PCI:([0-9a-f:]+)\): (\d+), (.*)")
    found = []
    for number, row in enumerate(text.splitlines()):
        match = line.search(row)
        if match:
            at = at_of(row)
            found.append(
                wire.Fault(
                    key=f"{number}",
                    at_ms=int(at.timestamp() * 1000),
                    code=int(match[2]),
                    source="kernel_log",
                    pci_bus_id=match[1],
                    message=match[3],
                )
            )
    return found


@pytest.mark.django_db
def test_the_severity_of_published_kernel_lines(machine):
    lines = kernel_faults(sample_text("xid_lines.txt"), lambda _row: NOON)
    addresses = sorted({fault.pci_bus_id for fault in lines})
    cards = [card(number, facts=facts(number, pci_bus_id=f"0000{bus}.0")) for number, bus in enumerate(addresses)]
    machine.send(at=NOON, gpus=cards)
    send(machine, lines, gpus=cards)
    found = {fault.code: fault for fault in GpuFault.objects.all()}
    assert {code: str(fault.severity) for code, fault in found.items()} == {
        79: "critical",
        64: "critical",
        94: "warning",
        63: "warning",
        45: "info",
        145: "info",
    }
    assert all(fault.gpu_id for fault in found.values())
    assert found[79].gpu.pci_bus_id == "00000000:03:00.0"


@pytest.mark.django_db
def test_five_gsp_timeouts_of_six_minutes_are_one_critical_incident(machine):
    def at_of(row):
        return datetime.strptime(row[1:25] + " +0000", "%a %b %d %H:%M:%S %Y %z")

    lines = kernel_faults(sample_text("xid119_dmesg.log"), at_of)
    at = max(fault.at_ms for fault in lines) / 1000
    received = datetime.fromtimestamp(at, tz=NOON.tzinfo) + timedelta(seconds=5)
    broken = card(0, facts=facts(0, pci_bus_id="00000000:9B:00.0"))
    machine.send(at=received - timedelta(minutes=10), gpus=[broken])
    [fault] = send(machine, lines, at=received, gpus=[broken])
    assert (fault.code, fault.severity, fault.count) == (119, "critical", 5)
    assert (fault.first_at.strftime("%H:%M:%S"), fault.last_at.strftime("%H:%M:%S")) == ("16:24:18", "16:30:13")
    assert fault.gpu.uuid == card_uuid(0)
    assert Event.objects.filter(kind="gpu.xid").count() == 1
    assert fault_meaning("xid", 119).step is Step.RESET


@pytest.mark.parametrize(
    ("code", "message", "severity"),
    [
        (145, "", "info"),
        (145, "RLW_REMAP Nonfatal XC0 i0 Link 00", "info"),
        (145, "RLW_REMAP Fatal XC0 i0 Link 00", "critical"),
        (149, "NETIR_LINK_EVT Fatal XC0 i0 Link 08", "critical"),
        (144, "", "warning"),
        (79, "Nonfatal", "critical"),
        (9999, "", "warning"),
    ],
)
def test_nvlink_codes_are_graded_by_their_text_where_it_says(code, message, severity):
    assert fault_severity("xid", code, message) == severity


def test_a_switch_fault_is_graded_by_its_text():
    assert fault_severity("sxid", 12028, "Non-fatal, Link 32") == "info"
    assert fault_severity("sxid", 20034, "Fatal, Link 30") == "critical"
    assert fault_severity("sxid", 1, "") == "warning"


def test_every_code_has_words_and_a_next_step():
    assert len(XIDS) > 90
    for code, meaning in XIDS.items():
        assert str(meaning.sentence).endswith("."), code
        assert str(meaning.step.value).endswith("."), code


def test_what_the_catalogue_calls_a_reset_is_no_mere_information():
    rows = [row.split("\t") for row in sample_text("xid-catalog.tsv").splitlines()[1:]]
    resets = {int(row[0]) for row in rows if len(row) > 3 and row[3] in {"RESET_GPU", "RESTART_BM"}}
    assert resets
    for code in resets:
        assert fault_severity("xid", code, "") != "info", code
    used = {int(row[0]) for row in rows if len(row) > 3 and row[2] != "Unused"}
    assert used <= set(XIDS)


@given(st.text(max_size=40))
def test_any_text_is_an_address_or_none(text):
    key = bus_id_key(text)
    assert key is None or len(key) == 3
