"""Rounds become batches: nothing twice, nothing lost, unchanged things once."""

import msgspec
import pytest

from fleet.agent import wire
from fleet.agent.batch import Batcher, Round
from fleet.agent.nvml.card import GpuReading

BOOT = "6f1c0c0e-8a5d-4a44-9f3a-0f5f4f3d2c1b"


def sample(number, **readings):
    return wire.GpuSample(1_700_000_000_000 + number * 1000, 5_000 + number * 1000, **readings)


def host_sample(number):
    return wire.HostSample(1_700_000_000_000 + number * 1000, 5_000 + number * 1000)


def reading(uuid="GPU-a", number=0, **fields):
    fields.setdefault("facts", wire.GpuFacts(name="NVIDIA H200"))
    fields.setdefault("sample", sample(number))
    return GpuReading(uuid, fields.pop("index", 0), **fields)


def taken(*readings, number=0, state="ok"):
    return Round(wire.Driver(state), list(readings), host_sample(number))


@pytest.fixture
def faults():
    return []


@pytest.fixture
def batcher(faults):
    def take(limit):
        given, faults[:] = faults[:limit], faults[limit:]
        return given

    return Batcher(BOOT, take)


def cut(batcher):
    return batcher.cut(spooled_batches=0, lost_samples=0).report


def test_batches_of_a_run_are_numbered_from_one(batcher):
    assert [cut(batcher).seq for _ in range(3)] == [1, 2, 3]
    assert cut(batcher).boot_id == BOOT


def test_a_batch_has_the_samples_since_the_one_before_and_the_last_of_that(batcher):
    for number in range(3):
        batcher.add(taken(reading(number=number), number=number))
    first = cut(batcher)
    assert len(first.gpus[0].samples) == len(first.host_samples) == 3
    assert first.gpus[0].previous is None
    batcher.add(taken(reading(number=3), number=3))
    second = cut(batcher)
    assert second.gpus[0].samples == [sample(3)]
    assert second.gpus[0].previous == sample(2)
    assert second.host_previous == host_sample(2)


def test_without_samples_a_batch_is_a_sign_of_life_that_lists_every_card(batcher):
    batcher.add(taken(reading()))
    cut(batcher)
    quiet = cut(batcher)
    assert [gpu.uuid for gpu in quiet.gpus] == ["GPU-a"]
    assert quiet.gpus[0].samples == []
    assert quiet.gpus[0].previous is None
    batcher.add(taken(reading(number=9), number=9))
    assert cut(batcher).gpus[0].previous == sample(0), "the reading before, however many signs of life ago"


def test_facts_and_reasons_are_sent_when_they_change(batcher):
    batcher.add(taken(reading(unsupported={"fan_percent": "not_supported"})))
    first = cut(batcher)
    assert first.gpus[0].facts.name == "NVIDIA H200"
    assert first.gpus[0].unsupported == {"fan_percent": "not_supported"}
    batcher.add(taken(reading(unsupported={"fan_percent": "not_supported"})))
    second = cut(batcher)
    assert second.gpus[0].facts is None
    assert second.gpus[0].unsupported is None
    batcher.add(taken(reading(unsupported={})))
    assert cut(batcher).gpus[0].unsupported == {}, "everything is there again"


def test_the_panel_gets_facts_again_when_it_lacks_them(batcher):
    batcher.add_host_facts(wire.HostFacts(hostname="box"))
    batcher.add(taken(reading()))
    assert cut(batcher).host.hostname == "box"
    assert cut(batcher).host is None
    batcher.resend_facts()
    again = cut(batcher)
    assert again.host.hostname == "box"
    assert again.gpus[0].facts is not None
    assert again.gpus[0].unsupported is not None


def test_host_facts_that_did_not_change_are_not_sent_again(batcher):
    batcher.add_host_facts(wire.HostFacts(hostname="box"))
    cut(batcher)
    batcher.add_host_facts(wire.HostFacts(hostname="box"))
    assert cut(batcher).host is None
    batcher.add_host_facts(wire.HostFacts(hostname="other"))
    assert cut(batcher).host.hostname == "other"


def test_the_slow_tier_is_in_the_batch_in_which_it_was_read(batcher):
    process = wire.GpuProcess(pid=7, kinds=["compute"])
    health = wire.GpuHealth(pcie_replays=3)
    batcher.add(taken(reading(health=health, processes=[process], processes_visibility="visible")))
    batcher.add(taken(reading(number=1), number=1))
    first = cut(batcher).gpus[0]
    assert (first.health, first.processes, first.processes_visibility) == (health, [process], "visible")
    batcher.add(taken(reading(number=2), number=2))
    second = cut(batcher).gpus[0]
    assert (second.health, second.processes, second.processes_visibility) == (None, None, "")


def test_an_empty_list_of_processes_is_told(batcher):
    batcher.add(taken(reading(processes=[], processes_visibility="hidden")))
    gpu = cut(batcher).gpus[0]
    assert gpu.processes == []
    assert gpu.processes_visibility == "hidden"


def test_a_lost_card_is_listed_without_samples(batcher):
    batcher.add(taken(reading("GPU-a"), reading("GPU-b", index=1)))
    cut(batcher)
    batcher.add(taken(reading("GPU-a"), reading("GPU-b", index=1, state="lost", reason="gpu_lost", sample=None)))
    lost = cut(batcher).gpus[1]
    assert (lost.uuid, lost.state, lost.reason, lost.samples) == ("GPU-b", "lost", "gpu_lost", [])


def test_an_instance_that_is_gone_is_told_until_its_samples_are_out(batcher):
    batcher.add(taken(reading("GPU-a"), reading("MIG-1", parent_uuid="GPU-a")))
    batcher.add(taken(reading("GPU-a", number=1), number=1))
    assert [gpu.uuid for gpu in cut(batcher).gpus] == ["GPU-a", "MIG-1"]
    batcher.add(taken(reading("GPU-a", number=2), number=2))
    assert [gpu.uuid for gpu in cut(batcher).gpus] == ["GPU-a"]


def test_faults_over_a_report_s_bound_wait_for_the_next(batcher, faults):
    faults.extend(wire.Fault(key=str(number), at_ms=1, code=79) for number in range(wire.LIMITS["faults"] + 5))
    assert len(cut(batcher).faults) == wire.LIMITS["faults"]
    assert len(cut(batcher).faults) == 5


def test_samples_that_nobody_cuts_are_bounded_and_counted(batcher):
    limit = wire.LIMITS["samples_per_gpu"]
    for number in range(limit + 10):
        batcher.add(taken(reading(number=number), number=number))
    report = cut(batcher)
    assert len(report.gpus[0].samples) == limit
    assert report.gpus[0].samples[0] == sample(10)
    assert report.gpus[0].previous == sample(9)
    assert len(report.host_samples) == wire.LIMITS["host_samples"]
    assert report.lost_samples == 10


def test_more_cards_than_a_report_may_name_are_left_out(batcher):
    count = wire.LIMITS["gpus"] + 3
    batcher.add(taken(*(reading(f"GPU-{number}", index=number) for number in range(count))))
    assert len(cut(batcher).gpus) == wire.LIMITS["gpus"]


def test_a_batch_tells_how_many_readings_are_lost_with_it(batcher):
    batcher.add(taken(reading("GPU-a"), reading("GPU-b", index=1)))
    batcher.add(taken(reading("GPU-a"), reading("GPU-b", index=1), number=1))
    assert batcher.cut(spooled_batches=0, lost_samples=0).samples == 4
    batcher.add(taken(number=2))
    assert batcher.cut(spooled_batches=0, lost_samples=0).samples == 1, "a machine without cards loses host samples"


def test_a_report_keeps_the_bounds_of_the_wire_and_survives_it(batcher):
    batcher.add_host_facts(wire.HostFacts(hostname="box"))
    batcher.add(taken(reading(health=wire.GpuHealth(pcie_replays=3))))
    report = batcher.cut(spooled_batches=4, lost_samples=5).report
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(report), type=wire.Report)
    assert again == report
    assert (again.spooled_batches, again.lost_samples) == (4, 5)
    assert again.protocol == wire.PROTOCOL
