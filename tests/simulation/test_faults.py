"""Cards and drivers that go wrong, processes, MIG and events, seen through unmodified pynvml."""

import threading
import time

import pynvml
import pytest

from fleet.simulation.cards import H100, H200, T4
from fleet.simulation.nvml import Process
from tests.nvml import reading
from tests.simulation.test_readings import code


@pytest.fixture
def pair(nvml, host):
    """Two cards, initialised: (cards, handles)."""
    cards = [host.add_card(H200), host.add_card(H200)]
    nvml.nvmlInit()
    return cards, [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(2)]


def uuids(nvml):
    return [
        nvml.nvmlDeviceGetUUID(nvml.nvmlDeviceGetHandleByIndex(index)) for index in range(nvml.nvmlDeviceGetCount())
    ]


def test_a_lost_card_does_not_touch_its_neighbour(nvml, pair):
    cards, (first, second) = pair
    cards[0].lose()
    assert code(nvml.nvmlDeviceGetPowerUsage, first) == nvml.NVML_ERROR_GPU_IS_LOST
    assert code(nvml.nvmlDeviceGetUUID, first) == nvml.NVML_ERROR_GPU_IS_LOST
    assert nvml.nvmlDeviceGetPowerUsage(second) == 77_700
    cards[0].recover()
    assert nvml.nvmlDeviceGetPowerUsage(first) == 77_700


def test_a_removed_card_leaves_the_list_when_the_driver_is_opened_afresh_and_indexes_shift(nvml, pair):
    cards, (first, _second) = pair
    cards[0].remove()
    assert code(nvml.nvmlDeviceGetPowerUsage, first) == nvml.NVML_ERROR_GPU_IS_LOST
    assert nvml.nvmlDeviceGetCount() == 2
    nvml.nvmlShutdown()
    nvml.nvmlInit()
    assert uuids(nvml) == [cards[1].uuid]


def test_cards_are_numbered_in_pci_order(nvml, host):
    late, early = host.add_card(H200, bus=0xDB), host.add_card(H200, bus=0x19)
    nvml.nvmlInit()
    assert uuids(nvml) == [early.uuid, late.uuid]
    assert nvml.nvmlDeviceGetIndex(nvml.nvmlDeviceGetHandleByUUID(late.uuid)) == 1
    assert nvml.nvmlDeviceGetUUID(nvml.nvmlDeviceGetHandleByPciBusId("0000:DB:00.0")) == late.uuid


def test_a_handle_can_be_refused(nvml, pair):
    cards, _handles = pair
    cards[0].refuse()
    assert code(nvml.nvmlDeviceGetHandleByIndex, 0) == nvml.NVML_ERROR_NO_PERMISSION
    assert code(nvml.nvmlDeviceGetHandleByIndex, 1) == 0


def test_a_mismatch_fails_every_new_start_and_lets_attached_programs_go_on(nvml, host, pair):
    _cards, (first, _second) = pair
    host.mismatch()
    assert nvml.nvmlDeviceGetPowerUsage(first) == 77_700
    nvml.nvmlShutdown()
    assert code(nvml.nvmlInit) == nvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH
    host.recover()
    assert code(nvml.nvmlInit) == 0


def test_an_unloaded_driver(nvml, host, pair):
    _cards, (first, _second) = pair
    host.unload()
    assert code(nvml.nvmlDeviceGetPowerUsage, first) == nvml.NVML_ERROR_DRIVER_NOT_LOADED


def test_nothing_can_be_read_before_the_first_and_after_the_last_initialisation(nvml, host):
    host.add_card(H200)
    assert code(nvml.nvmlDeviceGetCount) == nvml.NVML_ERROR_UNINITIALIZED
    nvml.nvmlInit()
    nvml.nvmlInit()
    nvml.nvmlShutdown()
    assert nvml.nvmlDeviceGetCount() == 1
    nvml.nvmlShutdown()
    assert code(nvml.nvmlDeviceGetCount) == nvml.NVML_ERROR_UNINITIALIZED


def test_a_hanging_card_holds_who_asks_it_and_nobody_else(nvml, pair):
    cards, (first, second) = pair
    cards[0].hang()
    answers = []
    asking = threading.Thread(target=lambda: answers.append(nvml.nvmlDeviceGetPowerUsage(first)), daemon=True)
    asking.start()
    assert nvml.nvmlDeviceGetPowerUsage(second) == 77_700
    asking.join(timeout=0.1)
    assert asking.is_alive()
    cards[0].recover()
    asking.join(timeout=5)
    assert answers == [77_700]


def test_a_hanging_driver_holds_a_new_start(nvml, host):
    host.add_card(H200)
    host.hang(0.1)
    before = time.monotonic()
    nvml.nvmlInit()
    assert time.monotonic() - before >= 0.09


# ---- processes


def test_processes_by_kind_with_memory_that_may_be_unknown(nvml, pair):
    cards, (first, second) = pair
    cards[0].set_processes(
        [
            Process(pid=41, name="python train.py", memory_bytes=10 << 30, sm_percent=80),
            Process(pid=42, kinds=("graphics", "compute"), memory_bytes=None),
            Process(pid=43, kinds=("mps",), memory_bytes=7),
        ]
    )
    compute = [(each.pid, each.usedGpuMemory) for each in nvml.nvmlDeviceGetComputeRunningProcesses(first)]
    assert compute == [(41, 10 << 30), (42, None)]
    assert [each.pid for each in nvml.nvmlDeviceGetGraphicsRunningProcesses(first)] == [42]
    assert [each.pid for each in nvml.nvmlDeviceGetMPSComputeRunningProcesses(first)] == [43]
    assert nvml.nvmlDeviceGetComputeRunningProcesses(second) == []
    assert nvml.nvmlSystemGetProcessName(41) == "python train.py"


def test_use_per_process(nvml, pair):
    cards, (first, second) = pair
    cards[0].set_processes([Process(pid=41, sm_percent=80, decoder_percent=3)])
    sample = nvml.nvmlDeviceGetProcessUtilization(first, 0)[0]
    assert (sample.pid, sample.smUtil, sample.decUtil) == (41, 80, 3)
    assert code(nvml.nvmlDeviceGetProcessUtilization, first, sample.timeStamp + 10**12) == nvml.NVML_ERROR_NOT_FOUND
    assert code(nvml.nvmlDeviceGetProcessUtilization, second, 0) == nvml.NVML_ERROR_NOT_FOUND


def test_an_old_driver_answers_processes_in_the_second_version_only(legacy_library, host):
    card = host.add_card(T4)
    card.set_processes([Process(pid=9, memory_bytes=1 << 20)])
    with reading(legacy_library, host) as nvml:
        nvml.nvmlInit()
        handle = nvml.nvmlDeviceGetHandleByIndex(0)
        with pytest.raises(Exception, match="Unversioned") as raised:
            nvml.nvmlDeviceGetComputeRunningProcesses(handle)
        assert not isinstance(raised.value, pynvml.NVMLError)
        assert [each.pid for each in nvml.nvmlDeviceGetComputeRunningProcesses_v2(handle)] == [9]
        assert code(nvml.nvmlDeviceGetMemoryInfo, handle, nvml.nvmlMemory_v2) == nvml.NVML_ERROR_FUNCTION_NOT_FOUND
        assert nvml.nvmlDeviceGetMemoryInfo(handle).total == 15360 << 20


# ---- MIG


def test_a_divided_card_answers_for_its_instances_and_not_for_its_own_load(nvml, host):
    card = host.add_card(H100)
    card.set(utilization_percent=50)
    instances = card.divide(
        [{"profile": "3g.40gb", "memory_mib": 40448, "streaming_multiprocessors": 60, "slices": 3}]
        + [{"profile": "1g.10gb", "memory_mib": 9984}] * 2
    )
    instances[0].set(memory_used_bytes=5 << 30)
    instances[0].set_processes([Process(pid=77, memory_bytes=5 << 30)])
    nvml.nvmlInit()
    parent = nvml.nvmlDeviceGetHandleByIndex(0)
    assert nvml.nvmlDeviceGetCount() == 1
    assert nvml.nvmlDeviceGetMigMode(parent) == [1, 1]
    assert code(nvml.nvmlDeviceGetUtilizationRates, parent) == nvml.NVML_ERROR_NOT_SUPPORTED
    handle = nvml.nvmlDeviceGetMigDeviceHandleByIndex(parent, 0)
    assert nvml.nvmlDeviceGetUUID(handle) == instances[0].uuid
    assert nvml.nvmlDeviceGetUUID(handle).startswith("MIG-")
    assert nvml.nvmlDeviceGetName(handle) == "NVIDIA H100 80GB HBM3 MIG 3g.40gb"
    assert nvml.nvmlDeviceGetMemoryInfo(handle).total == 40448 << 20
    assert nvml.nvmlDeviceGetMemoryInfo(handle).used == 5 << 30
    assert [each.gpuInstanceId for each in nvml.nvmlDeviceGetComputeRunningProcesses(handle)] == [1]
    assert [each.pid for each in nvml.nvmlDeviceGetComputeRunningProcesses(parent)] == [77]
    assert nvml.nvmlDeviceGetAttributes(handle).multiprocessorCount == 60
    back = nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle)
    assert nvml.nvmlDeviceGetUUID(back) == card.uuid
    assert code(nvml.nvmlDeviceGetMigDeviceHandleByIndex, parent, 3) == nvml.NVML_ERROR_NOT_FOUND
    assert code(nvml.nvmlDeviceGetPowerUsage, handle) == nvml.NVML_ERROR_NOT_SUPPORTED


def test_instances_are_lost_with_their_card_and_gone_after_merging(nvml, host):
    card = host.add_card(H100)
    card.set(utilization_percent=50)
    card.divide([{"profile": "1g.10gb", "memory_mib": 9984}])
    nvml.nvmlInit()
    parent = nvml.nvmlDeviceGetHandleByIndex(0)
    instance = nvml.nvmlDeviceGetMigDeviceHandleByIndex(parent, 0)
    card.lose()
    assert code(nvml.nvmlDeviceGetMemoryInfo, instance) == nvml.NVML_ERROR_GPU_IS_LOST
    card.recover()
    card.merge()
    assert code(nvml.nvmlDeviceGetMigDeviceHandleByIndex, parent, 0) == nvml.NVML_ERROR_NOT_FOUND
    assert nvml.nvmlDeviceGetUtilizationRates(parent).gpu == 50


# ---- events


@pytest.fixture
def events(nvml, pair):
    """An event set that watches XIDs of both cards."""
    event_set = nvml.nvmlEventSetCreate()
    for handle in pair[1]:
        nvml.nvmlDeviceRegisterEvents(handle, nvml.nvmlEventTypeXidCriticalError, event_set)
    yield event_set
    nvml.nvmlEventSetFree(event_set)


def test_an_xid_wakes_who_waits_for_it(nvml, pair, events):
    cards, _handles = pair
    raising = threading.Timer(0.05, cards[1].xid, [79])
    raising.start()
    before = time.monotonic()
    event = nvml.nvmlEventSetWait_v2(events, 5000)
    assert time.monotonic() - before < 2
    assert (event.eventType, event.eventData) == (nvml.nvmlEventTypeXidCriticalError, 79)
    assert nvml.nvmlDeviceGetUUID(event.device) == cards[1].uuid
    raising.join()


def test_xids_come_one_by_one_in_order_and_older_ones_not_at_all(nvml, host, pair, events):
    cards, handles = pair
    for xid in (31, 43, 94):
        cards[0].xid(xid)
    late = nvml.nvmlEventSetCreate()
    nvml.nvmlDeviceRegisterEvents(handles[0], nvml.nvmlEventTypeXidCriticalError, late)
    assert [nvml.nvmlEventSetWait_v2(events, 100).eventData for _ in range(3)] == [31, 43, 94]
    assert code(nvml.nvmlEventSetWait_v2, events, 1) == nvml.NVML_ERROR_TIMEOUT
    assert code(nvml.nvmlEventSetWait_v2, late, 1) == nvml.NVML_ERROR_TIMEOUT
    nvml.nvmlEventSetFree(late)


def test_more_events_than_the_ring_holds_lose_the_oldest(nvml, pair, events):
    cards, _handles = pair
    for number in range(300):
        cards[0].xid(number)
    assert nvml.nvmlEventSetWait_v2(events, 100).eventData == 300 - 256


def test_a_wait_on_a_lost_card_returns_at_once(nvml, pair, events):
    cards, _handles = pair
    cards[0].lose()
    assert code(nvml.nvmlEventSetWait_v2, events, 60_000) == nvml.NVML_ERROR_GPU_IS_LOST


def test_events_that_a_model_lacks_cannot_be_registered(nvml, host):
    card = host.add_card(H200)
    card.set(event_types=0x4)
    nvml.nvmlInit()
    handle, event_set = nvml.nvmlDeviceGetHandleByIndex(0), nvml.nvmlEventSetCreate()
    wanted = nvml.nvmlEventTypeXidCriticalError
    assert code(nvml.nvmlDeviceRegisterEvents, handle, wanted, event_set) == nvml.NVML_ERROR_NOT_SUPPORTED
    nvml.nvmlEventSetFree(event_set)


# ---- consistency


def test_readers_never_see_half_of_an_edit(nvml, pair):
    cards, (first, _second) = pair
    stop = threading.Event()

    def write():
        number = 0
        while not stop.is_set():
            number = (number + 1) % 100
            cards[0].set(utilization_percent=number, memory_busy_percent=number)
            cards[0].set_processes([Process(pid=1000 + number, memory_bytes=number)] * (number % 3 + 1))

    writing = threading.Thread(target=write)
    writing.start()
    try:
        for _ in range(3000):
            for process in nvml.nvmlDeviceGetComputeRunningProcesses_v3(first):
                assert process.usedGpuMemory == process.pid - 1000
    finally:
        stop.set()
        writing.join()


def test_a_writer_that_died_half_way_does_not_hold_readers_for_ever(nvml, host, pair):
    _cards, (first, _second) = pair
    host._layout.sequence += 1
    assert nvml.nvmlDeviceGetPowerUsage(first) == 77_700
