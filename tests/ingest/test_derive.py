"""From readings to metrics: rates from counters, sentinels and nonsense to nothing, never an error."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.agent.wire import GpuSample, HostSample
from monitoring.ingest.derive import gpu_metrics, host_metrics
from monitoring.metrics import GPU_METRIC_INDEX, GPU_METRICS, HOST_METRIC_INDEX

FIELDS = GpuSample.__struct_fields__


def metrics(*samples, continues=None):
    """Return one dict of metrics for each sample, and the reasons; all are one card's unless said otherwise."""
    rows = [[getattr(sample, field) for field in FIELDS] for sample in samples]
    flags = np.array([False] + [True] * (len(rows) - 1)) if continues is None else np.array(continues)
    values, reasons, states = gpu_metrics(np.array(rows, dtype=np.float64), flags)
    named = [
        {name: None if np.isnan(row[i]) else float(row[i]) for name, i in GPU_METRIC_INDEX.items()} for row in values
    ]
    return named, reasons.tolist(), states.tolist()


def sample(seconds=0, **readings):
    return GpuSample(at_ms=1_700_000_000_000 + int(seconds * 1000), monotonic_ms=int(seconds * 1000), **readings)


def test_readings_become_metrics_in_the_units_of_the_catalogue():
    ((one,), _, states) = metrics(
        sample(utilization_percent=93, power_milliwatts=627_250, memory_used_bytes=2**36, performance_state=0)
    )
    assert one["utilization_percent"] == 93
    assert one["power_watts"] == 627.25
    assert one["memory_used_bytes"] == 2**36
    assert one["temperature_celsius"] is None
    assert states == [0]


def test_counters_become_rates_over_the_monotonic_clock():
    first = sample(
        0, energy_millijoules=10**12, pcie_tx_bytes=0, nvlink_rx_kib=100, thermal_violation_ns=0, power_violation_ns=0
    )
    second = sample(
        5,
        energy_millijoules=10**12 + 1_750_000,
        pcie_tx_bytes=5_000_000,
        nvlink_rx_kib=5_100,
        thermal_violation_ns=1_250_000_000,
        power_violation_ns=5_000_000_000,
    )
    second.at_ms += 3_600_000  # the wall clock was set meanwhile
    (before, after), _, _ = metrics(first, second)
    assert before["energy_power_watts"] is None
    assert after["energy_power_watts"] == 350
    assert after["pcie_tx_bytes_per_second"] == 1_000_000
    assert after["nvlink_rx_bytes_per_second"] == 1000 * 1024
    assert after["throttled_percent"] == 25
    assert after["power_capped_percent"] == 100


def test_a_counter_that_fell_gives_no_rate_for_that_step_alone():
    named, _, _ = metrics(
        sample(0, energy_millijoules=5_000_000),
        sample(5, energy_millijoules=1_000),
        sample(10, energy_millijoules=501_000),
    )
    assert [one["energy_power_watts"] for one in named] == [None, None, 100]


def test_a_reading_that_is_missing_gives_no_rate_on_either_side():
    named, _, _ = metrics(*(sample(5 * i, energy_millijoules=None if i == 1 else i * 10**6) for i in range(4)))
    assert [one["energy_power_watts"] for one in named] == [None, None, None, 200]


@pytest.mark.parametrize("seconds", [0, -5, 301])
def test_no_rate_without_time_backwards_or_over_a_long_hole(seconds):
    named, _, _ = metrics(sample(1000, energy_millijoules=0), sample(1000 + seconds, energy_millijoules=100))
    assert named[1]["energy_power_watts"] is None


def test_rates_never_cross_from_one_card_to_the_next():
    named, _, _ = metrics(
        sample(0, energy_millijoules=0), sample(5, energy_millijoules=500_000), continues=[False, False]
    )
    assert named[1]["energy_power_watts"] is None


@pytest.mark.parametrize(
    "blank",
    [2147483632, 2147483635, 9223372036854775792, 9223372036854775794, 140737488355328, 140737488355331, 2**64 - 1],
)
@pytest.mark.parametrize(
    "reading", ["memory_temperature_celsius", "memory_used_bytes", "power_milliwatts", "utilization_percent"]
)
def test_values_that_stand_for_not_available_are_none(blank, reading):
    (one,), _, _ = metrics(sample(**{reading: blank}))
    assert all(value is None for value in one.values())


def test_two_blanks_of_a_counter_are_not_a_rate_of_zero():
    blank = 9223372036854775794
    named, _, _ = metrics(sample(0, energy_millijoules=blank), sample(5, energy_millijoules=blank))
    assert named[1]["energy_power_watts"] is None


def test_impossible_values_are_none_and_possible_extremes_stay():
    (one,), _, _ = metrics(sample(utilization_percent=101, temperature_celsius=-51, fan_percent=130, decoder_percent=0))
    assert one["utilization_percent"] is None
    assert one["temperature_celsius"] is None
    assert one["fan_percent"] == 130
    assert one["decoder_percent"] == 0


@pytest.mark.parametrize(
    ("reasons", "throttled", "capped"), [(0x0, 0, 0), (0x4, 0, 100), (0x20, 100, 0), (0x48, 100, 0), (0x1, 0, 0)]
)
def test_a_card_without_counters_of_time_throttled_is_judged_by_its_reasons(reasons, throttled, capped):
    (one,), stored, _ = metrics(sample(clock_event_reasons=reasons))
    assert (one["throttled_percent"], one["power_capped_percent"]) == (throttled, capped)
    assert stored == [reasons]


def test_without_reasons_and_counters_throttling_is_unknown():
    (one,), stored, _ = metrics(sample())
    assert one["throttled_percent"] is None
    assert stored == [-1]


def test_a_first_reading_of_a_counter_is_not_judged_by_reasons():
    (one,), _, _ = metrics(sample(thermal_violation_ns=5, clock_event_reasons=0x20))
    assert one["throttled_percent"] is None


def test_host_counters_become_rates():
    rows = [
        HostSample(at_ms=0, monotonic_ms=0, cpu_percent=50.0, network_receive_bytes=0),
        HostSample(at_ms=0, monotonic_ms=2_000, cpu_percent=None, network_receive_bytes=4_000),
    ]
    readings = np.array(
        [[getattr(row, field) for field in HostSample.__struct_fields__] for row in rows], dtype=np.float64
    )
    values = host_metrics(readings, np.array([False, True]))
    assert values[0, HOST_METRIC_INDEX["cpu_percent"]] == 50
    assert np.isnan(values[1, HOST_METRIC_INDEX["cpu_percent"]])
    assert values[1, HOST_METRIC_INDEX["network_receive_bytes_per_second"]] == 2_000


anything = st.one_of(st.none(), st.floats(), st.integers(-(2**63), 2**64).map(float))


@given(st.lists(st.lists(anything, min_size=len(FIELDS) - 2, max_size=len(FIELDS) - 2), min_size=1, max_size=6))
def test_whatever_an_agent_sends_becomes_a_value_within_bounds_or_none(readings):
    rows = [[1e12 + i, 5000.0 * i, *row] for i, row in enumerate(readings)]
    values, reasons, states = gpu_metrics(
        np.array(rows, dtype=np.float64), np.array([False] + [True] * (len(rows) - 1))
    )
    for metric, column in zip(GPU_METRICS, values.T, strict=True):
        some = column[~np.isnan(column)]
        assert ((some >= np.float32(metric.minimum)) & (some <= np.float32(metric.maximum))).all()
    assert (reasons >= -1).all()
    assert ((states >= -1) & (states <= 15)).all()
