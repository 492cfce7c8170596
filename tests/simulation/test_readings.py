"""What unmodified pynvml reads from a simulated card."""

import pynvml
import pytest

from fleet.simulation.cards import A100, H200, L40S, PROFILES, RTX_4090, T4
from fleet.simulation.nvml import SimulationError

MIB = 1 << 20


@pytest.fixture
def h200(nvml, host):
    card = host.add_card(H200)
    nvml.nvmlInit()
    return card, nvml.nvmlDeviceGetHandleByIndex(0)


def code(call, *arguments):
    """Return the NVML error code that a call answers, 0 when it answers a value."""
    try:
        call(*arguments)
    except pynvml.NVMLError as error:
        return error.value
    return 0


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_every_model_tells_its_identity(nvml, host, profile):
    host.add_card(profile)
    nvml.nvmlInit()
    handle = nvml.nvmlDeviceGetHandleByIndex(0)
    assert nvml.nvmlDeviceGetName(handle) == profile.name
    assert nvml.nvmlDeviceGetUUID(handle).startswith("GPU-")
    assert nvml.nvmlDeviceGetVbiosVersion(handle) == profile.vbios
    assert nvml.nvmlDeviceGetCudaComputeCapability(handle) == profile.compute_capability
    assert nvml.nvmlDeviceGetMemoryInfo(handle).total == profile.memory_mib * MIB
    assert nvml.nvmlDeviceGetNumGpuCores(handle) == profile.cores
    assert nvml.nvmlDeviceGetPciInfo(handle).busId == "00000000:19:00.0"
    assert nvml.nvmlDeviceGetPowerUsage(handle) == round(profile.idle_watts * 1000)
    assert nvml.nvmlDeviceGetMaxPcieLinkWidth(handle) == 16


def test_the_same_file_name_gives_the_same_identities(host, tmp_path):
    other = type(host).create(tmp_path / "elsewhere.nvml")
    again = type(host).create(tmp_path / host.path.name)
    first, stranger, second = (each.add_card(H200) for each in (host, other, again))
    assert first.uuid == second.uuid != stranger.uuid


def test_versions_of_driver_library_and_cuda(nvml, host):
    host.set_versions(driver_version="535.183.01", nvml_version="12.535.183.01", cuda_version=12020)
    nvml.nvmlInit()
    assert nvml.nvmlSystemGetDriverVersion() == "535.183.01"
    assert nvml.nvmlSystemGetNVMLVersion() == "12.535.183.01"
    assert nvml.nvmlSystemGetCudaDriverVersion() == 12020


def test_memory_v2_leaves_out_what_the_driver_reserves_and_v1_does_not(nvml, h200):
    card, handle = h200
    card.set(memory_used_bytes=1000 * MIB)
    assert nvml.nvmlDeviceGetMemoryInfo(handle).used == (1000 + H200.reserved_mib) * MIB
    v2 = nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)
    assert (v2.used, v2.reserved) == (1000 * MIB, H200.reserved_mib * MIB)
    assert v2.used + v2.reserved + v2.free == v2.total


def test_an_edit_is_seen_by_a_program_that_is_attached(nvml, h200):
    card, handle = h200
    card.set(
        utilization_percent=97,
        memory_busy_percent=41,
        power_milliwatts=612_345,
        temperature_celsius=61,
        sm_clock_mhz=1755,
        clock_event_reasons=0x4,
        performance_state=2,
    )
    rates = nvml.nvmlDeviceGetUtilizationRates(handle)
    assert (rates.gpu, rates.memory) == (97, 41)
    assert nvml.nvmlDeviceGetPowerUsage(handle) == 612_345
    assert nvml.nvmlDeviceGetTemperature(handle, 0) == nvml.nvmlDeviceGetTemperatureV(handle, 0) == 61
    assert nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM) == 1755
    assert nvml.nvmlDeviceGetCurrentClocksEventReasons(handle) == 4
    assert nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle) == 4
    assert nvml.nvmlDeviceGetPerformanceState(handle) == 2


def test_one_reading_fails_alone_and_comes_back(nvml, h200):
    card, handle = h200
    card.fail("power_milliwatts", nvml.NVML_ERROR_UNKNOWN)
    assert code(nvml.nvmlDeviceGetPowerUsage, handle) == nvml.NVML_ERROR_UNKNOWN
    assert code(nvml.nvmlDeviceGetTemperature, handle, 0) == 0
    card.heal("power_milliwatts")
    assert nvml.nvmlDeviceGetPowerUsage(handle) == 77_700


def test_a_name_that_no_reading_has_is_refused(host):
    with pytest.raises(SimulationError, match="powr"):
        host.add_card(H200).set(powr=1)


def test_what_a_model_lacks_is_not_supported_and_never_zero(nvml, host):
    for profile in (RTX_4090, T4, L40S, A100):
        host.add_card(profile)
    nvml.nvmlInit()
    geforce, t4, l40s, a100 = (nvml.nvmlDeviceGetHandleByIndex(index) for index in range(4))
    missing = nvml.NVML_ERROR_NOT_SUPPORTED
    assert code(nvml.nvmlDeviceGetSerial, geforce) == missing
    assert code(nvml.nvmlDeviceGetTotalEccErrors, geforce, 0, 0) == missing
    assert nvml.nvmlDeviceGetEccMode(geforce) == [0, 0]
    assert code(nvml.nvmlDeviceGetFanSpeed_v2, t4, 0) != 0
    assert nvml.nvmlDeviceGetFanSpeed_v2(geforce, 1) == 0
    assert code(nvml.nvmlDeviceGetRemappedRows, t4) == missing
    assert nvml.nvmlDeviceGetRetiredPages(t4, 0) == []
    assert code(nvml.nvmlDeviceGetRetiredPages, a100, 0) == missing
    assert code(nvml.nvmlDeviceGetMigMode, l40s) == missing
    assert nvml.nvmlDeviceGetMigMode(a100) == [0, 0]
    assert field(nvml, l40s, nvml.NVML_FI_DEV_MEMORY_TEMP).nvmlReturn == missing
    assert field(nvml, a100, nvml.NVML_FI_DEV_MEMORY_TEMP).value.uiVal == 38
    assert field(nvml, t4, nvml.NVML_FI_DEV_POWER_AVERAGE).nvmlReturn == missing


def field(nvml, handle, number, scope=0):
    return nvml.nvmlDeviceGetFieldValues(handle, [(number, scope)])[0]


def test_field_values_each_have_an_answer_of_their_own(nvml, h200):
    card, handle = h200
    card.set(memory_temperature_celsius=66, recovery_action=2, energy_millijoules=123_456_789_012)
    card.fail("pcie_replays", nvml.NVML_ERROR_UNKNOWN)
    values = nvml.nvmlDeviceGetFieldValues(handle, [82, 83, 230, 94, 290])
    assert [value.nvmlReturn for value in values] == [0, 0, 0, nvml.NVML_ERROR_UNKNOWN, nvml.NVML_ERROR_NOT_SUPPORTED]
    assert (values[0].value.uiVal, values[1].value.ullVal, values[2].value.uiVal) == (66, 123_456_789_012, 2)


def test_nvlink_traffic_of_a_card_is_the_sum_of_its_links(nvml, h200):
    card, handle = h200
    card.set(nvlink_tx_kib=18_000, nvlink_inactive_mask=1 << 3)
    assert field(nvml, handle, 138, 0xFFFFFFFF).value.ullVal == 18_000
    assert sum(field(nvml, handle, 138, link).value.ullVal for link in range(18)) == 18_000
    assert [nvml.nvmlDeviceGetNvLinkState(handle, link) for link in range(5)] == [1, 1, 1, 0, 1]
    assert code(nvml.nvmlDeviceGetNvLinkState, handle, 18) == nvml.NVML_ERROR_INVALID_ARGUMENT
    card.set(nvlink_replay_errors=7)
    assert nvml.nvmlDeviceGetNvLinkErrorCounter(handle, 0, nvml.NVML_NVLINK_ERROR_DL_REPLAY) == 7


def test_a_counter_grows_between_two_edits(nvml, h200):
    card, handle = h200
    card.set(energy_millijoules=1_000)
    card.grow(energy_millijoules=1e9)
    first = nvml.nvmlDeviceGetTotalEnergyConsumption(handle)
    second = nvml.nvmlDeviceGetTotalEnergyConsumption(handle)
    assert 1_000 < first < second
    card.set(energy_millijoules=5)  # a driver reload
    assert nvml.nvmlDeviceGetTotalEnergyConsumption(handle) == 5


def test_health_counters(nvml, h200):
    card, handle = h200
    card.set(
        ecc_corrected_volatile=1,
        ecc_uncorrected_volatile=2,
        ecc_corrected_aggregate=3,
        ecc_uncorrected_aggregate=4,
        remapped_rows_correctable=5,
        remapped_rows_pending=1,
    )
    counts = [nvml.nvmlDeviceGetTotalEccErrors(handle, error, counter) for counter in (0, 1) for error in (0, 1)]
    assert counts == [1, 2, 3, 4]
    assert nvml.nvmlDeviceGetRemappedRows(handle) == (5, 0, 1, 0)


def test_gpm_gives_activity_between_two_samples(nvml, h200):
    card, handle = h200
    card.set(gpm_sm_millipercent=41_500, gpm_tensor_millipercent=12_250)
    first, second = nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()
    nvml.nvmlGpmSampleGet(handle, first)
    nvml.nvmlGpmSampleGet(handle, second)
    request = nvml.c_nvmlGpmMetricsGet_t()
    request.version, request.numMetrics, request.sample1, request.sample2 = 1, 2, first, second
    request.metrics[0].metricId = nvml.NVML_GPM_METRIC_SM_UTIL
    request.metrics[1].metricId = nvml.NVML_GPM_METRIC_ANY_TENSOR_UTIL
    nvml.nvmlGpmMetricsGet(request)
    assert [request.metrics[index].value for index in (0, 1)] == [41.5, 12.25]
    assert nvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice == 1
    for sample in (first, second):
        nvml.nvmlGpmSampleFree(sample)


def test_gpm_is_for_hopper_and_later(nvml, host):
    host.add_card(A100)
    nvml.nvmlInit()
    handle = nvml.nvmlDeviceGetHandleByIndex(0)
    assert nvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice == 0
    assert code(nvml.nvmlGpmSampleGet, handle, nvml.nvmlGpmSampleAlloc()) == nvml.NVML_ERROR_NOT_SUPPORTED


def test_pcie_throughput_takes_its_time(nvml, h200, monkeypatch):
    card, handle = h200
    card.slow("pcie_tx_kib_per_second", 0.05)
    import time

    before = time.monotonic()
    nvml.nvmlDeviceGetPcieThroughput(handle, nvml.NVML_PCIE_UTIL_TX_BYTES)
    assert time.monotonic() - before >= 0.05


def test_calls_are_counted_so_that_a_test_can_tell_what_was_asked(nvml, host, h200):
    _card, handle = h200
    host.forget_calls()
    for _ in range(3):
        nvml.nvmlDeviceGetPowerUsage(handle)
    assert host.calls()["nvmlDeviceGetPowerUsage"] == 3
    assert host.calls().get("nvmlDeviceGetPcieThroughput", 0) == 0


def test_without_a_file_the_driver_is_not_loaded(nvml, host, monkeypatch):
    monkeypatch.setenv("FLEETDECK_SIMULATION_FILE", str(host.path) + ".missing")
    assert code(nvml.nvmlInit) == nvml.NVML_ERROR_DRIVER_NOT_LOADED


def test_a_file_of_another_layout_is_refused(nvml, host, monkeypatch, tmp_path, capfd):
    (tmp_path / "other").write_bytes(b"\0" * 4096)
    monkeypatch.setenv("FLEETDECK_SIMULATION_FILE", str(tmp_path / "other"))
    assert code(nvml.nvmlInit) == nvml.NVML_ERROR_UNKNOWN
    assert "another layout" in capfd.readouterr().err
