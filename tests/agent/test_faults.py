"""XIDs from two sources, each told once."""

import pynvml
import pytest

from fleet.agent import clock
from fleet.agent.faults.kernel_log import KernelLog, parse_line
from fleet.agent.faults.ledger import FaultLedger, Sighting
from fleet.agent.faults.pci import canonical_bus_id
from fleet.simulation.cards import H200
from tests.waiting import eventually

NOW = 1_740_327_858_000
BUS = "0000:9b:00.0"


def nvml(at_ms=NOW, code=79, uuid="GPU-a", bus=BUS):
    return Sighting(at_ms, code, "nvml", uuid=uuid, pci_bus_id=bus)


def kernel(at_ms=NOW, code=79, bus=BUS, message="GPU has fallen off the bus"):
    return Sighting(at_ms, code, "kernel_log", pci_bus_id=bus, message=message)


@pytest.fixture
def ledger():
    made = FaultLedger(hold_seconds=0.0)
    made.learn_cards({BUS: "GPU-a"})
    return made


# ---- the ledger


@pytest.mark.parametrize("order", ["nvml first", "kernel first"])
def test_one_fault_that_both_sources_tell_is_one(ledger, order):
    sightings = [nvml(), kernel(NOW + 900)]
    for sighting in sightings if order == "nvml first" else reversed(sightings):
        ledger.note(sighting)
    (fault,) = ledger.take(10)
    assert fault.count == 1
    assert fault.uuid == "GPU-a"
    assert fault.pci_bus_id == BUS
    assert fault.source == "kernel_log"
    assert fault.message == "GPU has fallen off the bus"


def test_twins_meet_across_the_edge_of_a_second(ledger):
    ledger.note(nvml(NOW - 1))
    ledger.note(kernel(NOW + 1))
    assert len(ledger.take(10)) == 1


def test_a_sighting_waits_for_its_twin_before_it_is_told():
    ledger = FaultLedger(hold_seconds=60)
    ledger.note(nvml())
    assert ledger.take(10) == []
    assert ledger.has_untold()
    ledger.hold_seconds = 0.0
    assert len(ledger.take(10)) == 1
    assert not ledger.has_untold()


def test_a_burst_is_one_fault_that_counts(ledger):
    for _ in range(40):
        ledger.note(nvml())
        ledger.note(kernel())
    (fault,) = ledger.take(10)
    assert fault.count == 40


def test_what_comes_after_telling_is_told_under_the_same_key_with_the_larger_count(ledger):
    ledger.note(nvml())
    (first,) = ledger.take(10)
    assert ledger.take(10) == [], "told once"
    ledger.note(nvml(NOW + 200))
    (second,) = ledger.take(10)
    assert (second.key, second.at_ms) == (first.key, first.at_ms)
    assert (first.count, second.count) == (1, 2)


def test_a_twin_that_is_late_changes_nothing(ledger):
    ledger.note(nvml())
    ledger.take(10)
    ledger.note(kernel(NOW + 1_500))
    assert ledger.take(10) == []


def test_other_seconds_codes_and_cards_are_other_faults(ledger):
    ledger.note(kernel(NOW))
    ledger.note(kernel(NOW + 6_000))
    ledger.note(kernel(NOW, code=48))
    ledger.note(kernel(NOW, bus="0000:19:00.0"))
    faults = ledger.take(10)
    assert len({fault.key for fault in faults}) == 4


def test_keys_are_the_same_whoever_tells(ledger):
    ledger.note(nvml())
    (from_nvml,) = ledger.take(10)
    other_run = FaultLedger(hold_seconds=0.0)
    other_run.note(kernel())
    (from_kernel,) = other_run.take(10)
    assert from_nvml.key == from_kernel.key == f"xid:{BUS}:79:{NOW // 1000}"


def test_an_xid_without_a_number_is_the_one_that_the_kernel_names(ledger):
    ledger.note(nvml(code=999))
    ledger.note(kernel(code=119))
    assert [fault.code for fault in ledger.take(10)] == [119]


def test_an_xid_without_a_number_that_nobody_names_is_told(ledger):
    ledger.note(nvml(code=999))
    assert [fault.code for fault in ledger.take(10)] == [999]


def test_more_than_a_report_holds_waits_for_the_next(ledger):
    for number in range(12):
        ledger.note(kernel(NOW + number * 10_000))
    assert len(ledger.take(5)) == 5
    assert ledger.has_untold()
    assert len(ledger.take(10)) == 7


# ---- addresses and lines


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("0000:03:00", "0000:03:00.0"),
        ("00000000:03:00.0", "0000:03:00.0"),
        ("00000000:9B:00.0", "0000:9b:00.0"),
        ("03:00.0", "0000:03:00.0"),
        ("00010000:81:00.0", "10000:81:00.0"),
    ],
)
def test_addresses_of_the_kernel_and_of_nvml_meet(written, meant):
    assert canonical_bus_id(written) == meant


@pytest.mark.parametrize("text", ["", "GPU-a", "0000:03", "0000:03:00.9", "../03:00.0"])
def test_other_text_is_no_address(text):
    with pytest.raises(ValueError, match="PCI"):
        canonical_bus_id(text)


@pytest.mark.parametrize(
    ("line", "code", "bus", "message"),
    [
        (
            "NVRM: Xid (PCI:0000:03:00): 79, GPU has fallen off the bus",
            79,
            "0000:03:00.0",
            "GPU has fallen off the bus",
        ),
        (
            "NVRM: Xid (PCI:0000:9b:00): 119, pid=4242, name=nvidia-smi, Timeout after 6s of waiting for RPC response",
            119,
            "0000:9b:00.0",
            "pid=4242, name=nvidia-smi, Timeout after 6s of waiting for RPC response",
        ),
        ("NVRM: Xid (PCI:0000:61:00): 45", 45, "0000:61:00.0", ""),
    ],
)
def test_xids_in_lines_of_the_kernel_log(line, code, bus, message):
    sighting = parse_line(line, NOW)
    assert (sighting.kind, sighting.code, sighting.pci_bus_id, sighting.message) == ("xid", code, bus, message)


def test_an_nvswitch_s_fault_is_of_its_own_kind():
    sighting = parse_line("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 24007, Fatal, Link 46", NOW)
    assert (sighting.kind, sighting.code) == ("sxid", 24007)


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: GPU at PCI:0000:9b:00: GPU-00000014-0000-4000-8000-000000000014",
        "NVRM: Rate limiting GSP RPC error prints for GPU at PCI:0000:9b:00 (printing 1 of every 30).",
        "usb 1-1: new high-speed USB device",
    ],
)
def test_other_lines_are_no_faults(line):
    assert parse_line(line, NOW) is None


# ---- following the log


def record(sequence, message, microseconds=None):
    if microseconds is None:
        microseconds = int(clock.time.monotonic() * 1e6)
    return f"6,{sequence},{microseconds},-;{message}\n SUBSYSTEM=pci\n"


@pytest.fixture
def follow(tmp_path, monkeypatch):
    """Follow a file as if it were the kernel's log; returns what was noted."""
    monkeypatch.setattr("fleet.agent.faults.kernel_log.PAUSE_SECONDS", 0.01)
    log = tmp_path / "kmsg"
    log.touch()
    logs = []

    def start():
        noted = []
        logs.append(KernelLog(noted.append, tmp_path / "cursor.json", str(log)))
        assert logs[-1].start()
        return noted, logs[-1]

    start.log = log
    yield start
    for each in logs:
        each.stop()


def write(log, text):
    with log.open("a") as file:
        file.write(text)


def test_what_happened_before_the_agent_started_has_its_own_time(follow):
    minute_ago = int((clock.time.monotonic() - 60) * 1e6)
    write(follow.log, record(1, "NVRM: Xid (PCI:0000:9b:00): 79, GPU has fallen off the bus", minute_ago))
    noted, _ = follow()
    (sighting,) = eventually(lambda: noted)
    assert sighting.at_ms == pytest.approx(clock.now().at_ms - 60_000, abs=5_000)


def test_what_happens_now_is_stamped_now_whatever_the_kernel_s_clock_says(follow):
    noted, log = follow()
    eventually(lambda: log.is_live)
    write(follow.log, record(2, "NVRM: Xid (PCI:0000:9b:00): 31, pid=1", microseconds=5))
    (sighting,) = eventually(lambda: noted)
    assert sighting.at_ms == pytest.approx(clock.now().at_ms, abs=5_000)


def test_a_second_run_tells_nothing_that_the_first_told(follow):
    write(follow.log, record(7, "NVRM: Xid (PCI:0000:9b:00): 79, off the bus"))
    first, log = follow()
    eventually(lambda: first)
    log.save_cursor()
    log.stop()
    write(follow.log, record(8, "NVRM: Xid (PCI:0000:9b:00): 48, double bit"))
    second, _ = follow()
    assert [sighting.code for sighting in eventually(lambda: second)] == [48]


def test_a_run_that_ended_before_its_batch_was_on_disk_is_told_again(follow):
    write(follow.log, record(7, "NVRM: Xid (PCI:0000:9b:00): 79, off the bus"))
    first, log = follow()
    eventually(lambda: first)
    log.stop()
    second, _ = follow()
    assert [sighting.code for sighting in eventually(lambda: second)] == [79]


def test_a_log_that_is_not_readable_is_a_no_not_an_error(tmp_path):
    log = KernelLog([].append, tmp_path / "cursor.json", str(tmp_path / "absent"))
    assert log.start() is False
    log.stop()


def test_a_log_that_is_switched_off_is_not_followed(tmp_path, monkeypatch):
    monkeypatch.setenv("FLEETDECK_KERNEL_LOG", "")
    assert KernelLog([].append, tmp_path / "cursor.json").start() is False


# ---- events of the driver


def test_an_xid_that_nvml_tells_reaches_the_ledger(host, watch):
    first, second = host.add_card(H200), host.add_card(H200)
    watched = watch()
    watched.round()
    eventually(lambda: host.calls().get("nvmlDeviceRegisterEvents") == 2)
    second.xid(79)
    (fault,) = eventually(lambda: watched.ledger.take(10))
    assert (fault.code, fault.uuid, fault.source) == (79, second.uuid, "nvml")
    assert fault.pci_bus_id == canonical_bus_id(second.pci_bus_id)
    assert first.uuid != second.uuid


def test_a_wait_that_fails_at_once_does_not_spin(host, watch):
    host.add_card(H200)
    host.fail_wait(pynvml.NVML_ERROR_GPU_IS_LOST)
    watched = watch()
    watched.round()
    eventually(lambda: host.calls().get("nvmlEventSetWait_v2"))
    host.forget_calls()
    eventually(lambda: host.calls().get("nvmlEventSetWait_v2"), seconds=15)
    assert host.calls()["nvmlEventSetWait_v2"] == 1


def test_events_go_on_after_a_wait_that_failed(host, watch):
    card = host.add_card(H200)
    host.fail_wait(pynvml.NVML_ERROR_UNKNOWN)
    watched = watch()
    watched.round()
    eventually(lambda: host.calls().get("nvmlEventSetWait_v2"))
    host.recover()
    card.xid(48)
    assert eventually(lambda: watched.ledger.take(10))[0].code == 48


def test_a_card_without_xid_events_does_not_keep_the_others_from_having_them(host, watch):
    without, with_events = host.add_card(H200), host.add_card(H200)
    without.fail("event_types", pynvml.NVML_ERROR_NOT_SUPPORTED)
    watched = watch()
    watched.round()
    eventually(lambda: host.calls().get("nvmlDeviceRegisterEvents"))
    with_events.xid(94)
    assert eventually(lambda: watched.ledger.take(10))[0].uuid == with_events.uuid
