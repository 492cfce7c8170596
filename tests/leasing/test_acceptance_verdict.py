"""Ordered against found: what passes, what fails, what is not proven, and that no answer of a machine breaks the report."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.agent.acceptance.found import CardFound, CopyFound, DiskFound, Found, RouteFound
from fleet.leasing.acceptance import judge, overall
from fleet.leasing.acceptance_cards import LANE_BYTES_PER_SECOND
from fleet.leasing.acceptance_lines import Line, Ordered, Source, Verdict, Wishes
from fleet.leasing.gpu_figures import _FIGURES, figures_of
from fleet.providers.gpu_models import gpu_model

GIB = 1024**3


def copied(rate=50e9, variation=0.01):
    return CopyFound(90, 10.0, rate, rate * 0.9, variation)


def a_card(index=0, **kwargs):
    given = {
        "uuid": f"GPU-{index}",
        "index": index,
        "name": "NVIDIA H100 80GB HBM3",
        "is_busy": False,
        "memory_total_bytes": 81_559 << 20,
        "pcie_generation": 5,
        "pcie_generation_maximum": 5,
        "pcie_width": 16,
        "pcie_width_maximum": 16,
        "is_link_loaded": True,
        "nvlink_links": 18,
        "nvlink_active_links": 18,
        "power_limit_default_milliwatts": 700_000,
        "power_limit_enforced_milliwatts": 700_000,
        "persistence_mode": True,
        "ecc_mode": True,
        "remapped_rows_pending": False,
        "remapped_rows_failure": False,
        "copy": copied(),
    }
    return CardFound(**(given | kwargs))


def a_machine(*cards, **kwargs):
    given = {
        "at_ms": 1,
        "seconds": 40.0,
        "agent_version": "0.1.0",
        "driver_state": "ok",
        "driver_version": "590.48.01",
        "cuda_version": "13.1",
        "cpu_model": "AMD EPYC",
        "cpu_count": 64,
        "memory_total_bytes": 503 * GIB,
        "clock_skew_ms": 12.0,
        "clock_skew_error_ms": 3.0,
        "cards": list(cards) or [a_card(0), a_card(1)],
        "disk": DiskFound(
            directory="/", kind="nvme", total_bytes=1800 * GIB, read_bytes_per_second=3e9, method="direct"
        ),
        "panel": RouteFound(
            host="p", port=443, round_trip_ms=20.0, hops=9, downlink_bytes_per_second=60e6, uplink_bytes_per_second=30e6
        ),
    }
    return Found(**(given | kwargs))


ORDERED = Ordered(
    gpu_model="H100 SXM 80GB", gpu_count=2, gpu_memory_bytes=80 * GIB, cpu_count=64, memory_bytes=512 * GIB
)


def report(found, ordered=ORDERED, **typed):
    return judge(Wishes(Ordered(**typed), ordered), found)


def line(found, code, subject=None, **typed):
    [wanted] = [each for each in report(found, **typed).lines if (each.code, each.subject) == (code, subject)]
    return wanted


def test_a_machine_that_is_what_was_ordered_passes():
    made = report(a_machine())
    assert made.verdict == Verdict.PASS, [each for each in made.lines if each.verdict not in {"pass", "noted"}]
    assert made.counts[Verdict.PASS] > 20


WRONG = {
    "a card too few": (a_machine(a_card()), "gpu_count", None, 2, 1, Source.LEASE),
    "another model": (
        a_machine(a_card(name="NVIDIA A100-SXM4-80GB"), a_card(1)), "model", 0, "H100 SXM 80GB", "A100 SXM 80GB", Source.LEASE,
    ),
    "less memory": (a_machine(a_card(memory_total_bytes=60 * GIB)), "memory", 0, 80 * GIB, 60 * GIB, Source.LEASE),
    "half the lanes": (a_machine(a_card(pcie_width=8)), "pcie_width", 0, 16, 8, Source.MAKER),
    "an old slot under load": (a_machine(a_card(pcie_generation=4)), "pcie_generation", 0, 5, 4, Source.MAKER),
    "an old slot at rest": (
        a_machine(a_card(pcie_generation=1, pcie_generation_maximum=3, is_link_loaded=False)),
        "pcie_generation", 0, 5, 3, Source.MAKER,
    ),
    "a link down": (a_machine(a_card(), a_card(1, nvlink_active_links=12)), "nvlink", 1, 18, 12, Source.MAKER),
    "a lower power limit": (
        a_machine(a_card(power_limit_enforced_milliwatts=450_000)), "power_enforced", 0, 700.0, 450.0, Source.CARD,
    ),
    "a card of less power": (
        a_machine(a_card(power_limit_default_milliwatts=350_000)), "power_default", 0, 700, 350.0, Source.MAKER,
    ),
    "no error correction": (a_machine(a_card(ecc_mode=False)), "ecc", 0, True, False, Source.MAKER),
    "rows that could not be remapped": (
        a_machine(a_card(remapped_rows_failure=True)), "remapped_rows", 0, True, False, Source.RULE,
    ),
    "a slow copy": (
        a_machine(a_card(copy=copied(20e9))), "copy_rate", 0, 16 * LANE_BYTES_PER_SECOND[5], 20e9, Source.RULE,
    ),
    "a shared card": (a_machine(a_card(copy=copied(variation=0.3))), "steadiness", 0, 0.05, 0.3, Source.RULE),
    "fewer cores for the container": (a_machine(cpu_limit=16.0), "cpu_count", None, 64, 16.0, Source.LEASE),
    "a clock that is off": (a_machine(clock_skew_ms=-90_000.0), "clock_skew", None, 1000.0, 90_000.0, Source.RULE),
}  # fmt: skip


@pytest.mark.parametrize(("found", "code", "subject", "ordered", "is_found", "source"), WRONG.values(), ids=WRONG)
def test_what_is_not_as_ordered_fails_with_both_values_and_where_they_are_from(
    found, code, subject, ordered, is_found, source
):
    wrong = line(found, code, subject)
    assert (wrong.verdict, wrong.ordered, wrong.found, wrong.source) == (Verdict.FAIL, ordered, is_found, source)
    assert report(found).verdict == Verdict.FAIL


UNPROVEN = {
    "a link at rest": (a_card(pcie_generation=1, is_link_loaded=False), "pcie_generation", "link_idle"),
    "no CUDA": (a_card(copy=None, missing={"copy": "no_cuda"}), "steadiness", "no_cuda"),
    "a busy card": (a_card(copy=None, missing={"copy": "busy"}), "copy_rate", "busy"),
    "a width that is not told": (
        a_card(pcie_width=None, missing={"pcie_width": "not_supported"}), "pcie_width", "not_supported",
    ),
    "a restless copy": (a_card(copy=copied(variation=0.1)), "steadiness", "between"),
    "a middling copy": (a_card(copy=copied(38e9)), "copy_rate", "between"),
    "a card without an answer": (
        CardFound("GPU-9", 0, state="unknown", missing={"card": "not_answering"}), "memory", "not_answering",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("card", "code", "reason"), UNPROVEN.values(), ids=UNPROVEN)
def test_what_could_not_be_measured_is_not_proven_and_says_why(card, code, reason):
    unproven = line(a_machine(card), code, 0)
    assert (unproven.verdict, unproven.reason) == (Verdict.NOT_PROVEN, reason)


def test_without_a_driver_nothing_about_cards_is_proven():
    found = a_machine(driver_state="no_library", cards=[], missing={"cards": "no_library"})
    found.cards = []
    count = line(found, "gpu_count")
    assert (count.verdict, count.found, count.reason) == (Verdict.NOT_PROVEN, None, "no_library")
    assert report(found).verdict == Verdict.NOT_PROVEN


def test_a_driver_that_lists_no_card_proves_that_there_is_none():
    found = a_machine(driver_state="ok")
    found.cards = []
    assert (line(found, "gpu_count").verdict, line(found, "gpu_count").found) == (Verdict.FAIL, 0)


def test_what_nobody_ordered_is_noted_and_judged_by_the_model_alone():
    made = judge(Wishes(Ordered(), Ordered()), a_machine())
    by_code = {each.code: each for each in made.lines if each.subject in {None, 0}}
    assert by_code["gpu_count"].verdict == Verdict.NOTED
    assert by_code["model"].verdict == Verdict.NOTED
    assert (by_code["memory"].verdict, by_code["memory"].source) == (Verdict.PASS, Source.TABLE)
    assert (by_code["pcie_width"].verdict, by_code["pcie_width"].source) == (Verdict.PASS, Source.MAKER)


def test_what_was_typed_goes_before_the_lease():
    wrong = line(a_machine(), "gpu_count", gpu_count=4)
    assert (wrong.verdict, wrong.ordered, wrong.source) == (Verdict.FAIL, 4, Source.TYPED)


@pytest.mark.parametrize(
    ("code", "typed", "verdict"),
    [
        ("driver", {"driver_version": "580.10"}, "pass"),
        ("driver", {"driver_version": "590.48.02"}, "fail"),
        ("driver", {"driver_version": "newest"}, "not_proven"),
        ("cuda", {"cuda_version": "12.8"}, "pass"),
        ("cuda", {"cuda_version": "13.2"}, "fail"),
        ("disk_kind", {"disk_kind": "ssd"}, "pass"),
        ("disk_read", {"disk_read_bytes_per_second": 3_200_000_000}, "pass"),
        ("disk_read", {"disk_read_bytes_per_second": 7_000_000_000}, "fail"),
        ("disk_size", {"disk_bytes": 2_000_000_000_000}, "pass"),
        ("panel_downlink", {"downlink_bytes_per_second": 125_000_000}, "fail"),
        ("panel_round_trip", {"round_trip_ms": 18.0}, "pass"),
        ("panel_hops", {"hops": 5}, "fail"),
    ],
    ids=lambda value: str(value).replace(" ", ""),
)
def test_what_was_typed_is_judged(code, typed, verdict):
    assert line(a_machine(), code, **typed).verdict == verdict


def test_a_slow_or_virtual_disk_is_told_apart():
    slow = DiskFound(kind="rotational", read_bytes_per_second=150e6, method="direct")
    assert line(a_machine(disk=slow), "disk_kind", disk_kind="nvme").verdict == Verdict.FAIL
    virtual = DiskFound(kind="virtual", read_bytes_per_second=1e9, method="direct")
    assert line(a_machine(disk=virtual), "disk_kind", disk_kind="nvme").reason == "virtual"
    cached = DiskFound(kind="nvme", read_bytes_per_second=9e9, method="cached")
    read = line(a_machine(disk=cached), "disk_read", disk_read_bytes_per_second=1_000_000_000)
    assert (read.verdict, read.found, read.reason) == (Verdict.NOT_PROVEN, None, "cached")


def test_bandwidth_is_expected_of_the_chosen_address_when_there_is_one():
    found = a_machine(target=RouteFound(host="cdn", port=443, downlink_bytes_per_second=200e6))
    assert line(found, "panel_downlink", downlink_bytes_per_second=125_000_000).verdict == Verdict.NOTED
    assert line(found, "target_downlink", downlink_bytes_per_second=125_000_000).verdict == Verdict.PASS


def test_a_skew_within_the_error_of_its_measurement_is_not_proven():
    found = a_machine(clock_skew_ms=1_040.0, clock_skew_error_ms=60.0)
    assert line(found, "clock_skew").verdict == Verdict.NOT_PROVEN


def test_every_figure_is_of_a_model_that_is_known():
    for name in _FIGURES:
        model = gpu_model(name)
        assert model is not None, name
        assert figures_of(f"NVIDIA {name}") is not None, name


# ---- whatever a machine answers

MAYBE = st.one_of(st.none(), st.integers(0, 2**53))
FLAGS = st.one_of(st.none(), st.booleans())
FLOATS = st.one_of(st.none(), st.floats(0, 1e15, allow_nan=False))
CODES = st.sampled_from(["", "not_supported", "busy", "no_cuda"])
CARDS = st.builds(
    CardFound,
    uuid=st.text(max_size=8),
    index=st.one_of(st.none(), st.integers(0, 64)),
    name=st.sampled_from(["", "NVIDIA H200", "NVIDIA GeForce RTX 4090", "Tesla T4", "something"]),
    state=st.sampled_from(["ok", "degraded", "lost", "unknown"]),
    is_busy=FLAGS,
    memory_total_bytes=MAYBE,
    pcie_generation=MAYBE,
    pcie_generation_maximum=MAYBE,
    pcie_width=MAYBE,
    pcie_width_maximum=MAYBE,
    is_link_loaded=st.booleans(),
    nvlink_links=MAYBE,
    nvlink_active_links=MAYBE,
    power_limit_default_milliwatts=MAYBE,
    power_limit_enforced_milliwatts=MAYBE,
    persistence_mode=FLAGS,
    ecc_mode=FLAGS,
    remapped_rows_pending=FLAGS,
    remapped_rows_failure=FLAGS,
    copy=st.one_of(
        st.none(),
        st.builds(
            CopyFound,
            rounds=st.integers(1, 100),
            seconds=st.floats(0, 60),
            mean_bytes_per_second=st.floats(0, 1e12),
            lowest_bytes_per_second=st.floats(0, 1e12),
            variation=st.floats(0, 10),
        ),
    ),
    missing=st.dictionaries(st.sampled_from(["copy", "card", "nvlink_links", "remapped_rows_pending"]), CODES),
)
FOUND = st.builds(
    Found,
    at_ms=st.integers(0, 2**50),
    seconds=st.floats(0, 200),
    agent_version=st.just("1"),
    driver_state=st.sampled_from(["", "ok", "no_gpu", "no_library"]),
    driver_version=st.text(max_size=8),
    cuda_version=st.text(max_size=8),
    cpu_count=MAYBE,
    cpu_limit=FLOATS,
    memory_total_bytes=MAYBE,
    clock_skew_ms=st.one_of(st.none(), st.floats(-1e12, 1e12)),
    clock_skew_error_ms=FLOATS,
    cards=st.lists(CARDS, max_size=3),
    disk=st.one_of(
        st.none(), st.builds(DiskFound, read_bytes_per_second=FLOATS, method=st.sampled_from(["", "cached"]))
    ),
    panel=st.one_of(st.none(), st.builds(RouteFound, round_trip_ms=FLOATS, hops=MAYBE)),
    target=st.one_of(st.none(), st.builds(RouteFound, downlink_bytes_per_second=FLOATS)),
)
ORDERS = st.builds(
    Ordered,
    gpu_model=st.sampled_from(["", "H200", "RTX 4090", "an abacus"]),
    gpu_count=st.one_of(st.none(), st.integers(1, 16)),
    has_nvlink=FLAGS,
    pcie_generation=st.one_of(st.none(), st.integers(1, 8)),
    driver_version=st.text(max_size=6),
    disk_kind=st.sampled_from(["", "nvme", "ssd", "rotational"]),
)


@given(found=FOUND, typed=ORDERS, lease=ORDERS)
def test_any_answer_of_a_machine_gives_a_report_whose_lines_hold_together(found, typed, lease):
    made = judge(Wishes(typed, lease), found)
    for each in made.lines:
        if each.verdict == Verdict.NOTED:
            assert each.ordered is None
        else:
            assert each.ordered is not None
            assert each.source is not None
        if each.verdict in {Verdict.PASS, Verdict.FAIL}:
            assert each.found is not None
            assert not each.reason
        if each.verdict == Verdict.NOT_PROVEN:
            assert each.reason
    assert len({(each.code, each.subject, index) for index, each in enumerate(made.lines)}) == len(made.lines)
    # What travels and is stored gives the same report again.
    again = msgspec.convert(msgspec.to_builtins(found), Found)
    assert judge(Wishes(typed, lease), again) == made


@given(st.lists(st.sampled_from(list(Verdict)), max_size=12))
def test_one_failure_fails_and_only_judged_lines_that_all_pass_pass(verdicts):
    verdict = overall(Line("x", "text", each) for each in verdicts)
    judged_ones = [each for each in verdicts if each != Verdict.NOTED]
    if Verdict.FAIL in verdicts:
        assert verdict == Verdict.FAIL
    elif judged_ones and set(judged_ones) == {Verdict.PASS}:
        assert verdict == Verdict.PASS
    else:
        assert verdict == Verdict.NOT_PROVEN
