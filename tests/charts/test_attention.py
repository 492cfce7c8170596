"""What needs somebody, and how many cards do what."""

from datetime import timedelta

import pytest

from frontend.attention import attention, counts
from monitoring.activity import Activity
from panel.core.enums import Severity
from tests.charts.rows import GIB, NOON, fault, fleet, gpu, server


def sentences(*servers):
    return [item.sentence for item in attention(fleet(*servers))]


def test_a_healthy_fleet_needs_nobody():
    assert sentences(server(gpus=[gpu(number) for number in range(8)])) == []


def test_a_silent_server_is_one_sentence_whatever_its_cards_were():
    cards = [gpu(number, state="unknown", activity=Activity.NO_DATA, is_fresh=False) for number in range(8)]
    found = attention(fleet(server(gpus=cards, state="not_reporting", is_fresh=False)))
    assert [item.sentence for item in found] == [
        "rack-1: The agent is silent. That says nothing about whether the server runs, or is billed."
    ]
    assert found[0].since == NOON - timedelta(minutes=4)


def test_missing_cards_are_critical_named_and_dated():
    cards = [gpu(0), gpu(1, state="missing", activity=Activity.MISSING), gpu(2, state="lost", activity=Activity.LOST)]
    (item,) = attention(fleet(server(gpus=cards)))
    assert item.sentence == "rack-1: 1 of 3 GPUs. Gone: #1 00010001, #2 00010002."
    assert item.severity == Severity.CRITICAL
    assert item.since == NOON - timedelta(hours=1)


def test_a_driver_that_fails_is_said_instead_of_what_follows_from_it():
    cards = [
        gpu(number, state="unknown", state_reason="driver_unavailable", activity=Activity.NO_DATA)
        for number in range(4)
    ]
    (found,) = sentences(server(gpus=cards, driver_state="version_mismatch", state="degraded"))
    assert found.startswith("rack-1: Driver mismatch")


def test_a_machine_without_cards_and_driver_is_no_problem():
    assert sentences(server(driver_state="no_library")) == []


def test_a_machine_in_maintenance_calls_nobody():
    assert sentences(server(gpus=[gpu(0, state="missing", activity=Activity.MISSING)], state="maintenance")) == []


def test_several_cards_with_the_same_trouble_are_one_sentence():
    cards = [gpu(number, activity=Activity.GHOST, values={"memory_used_bytes": number * GIB}) for number in (1, 4)]
    (item,) = attention(fleet(server(gpus=cards)))
    assert item.sentence == "rack-1 #1, #4: memory is held and no process is there to own it"
    assert item.action == "Open server"
    (alone,) = attention(fleet(server(gpus=cards[:1])))
    assert alone.sentence.endswith("own it (1.0\N{NO-BREAK SPACE}GiB)")
    assert alone.action == "Open GPU"


def test_heat_is_judged_by_the_cards_own_threshold_and_its_reasons():
    hot = gpu(0, values={"temperature_celsius": 86.0})
    throttled = gpu(1, values={"temperature_celsius": 70.0}, reasons=0x40)
    power_capped = gpu(2, reasons=0x4)
    found = sentences(server(gpus=[hot, throttled, power_capped]))
    assert found == [
        "rack-1 #0: hot (86\N{NO-BREAK SPACE}°C)",
        "rack-1 #1: slowed down by heat or power supply (70\N{NO-BREAK SPACE}°C)",
    ]


def test_a_stale_reading_is_not_hot():
    card = gpu(0, values={"temperature_celsius": 95.0}, activity=Activity.NO_DATA, is_fresh=False)
    assert not any("hot" in sentence for sentence in sentences(server(gpus=[card])))


def test_a_card_of_which_nothing_comes_while_its_server_reports_is_said():
    card = gpu(3, activity=Activity.NO_DATA, is_fresh=False)
    assert sentences(server(gpus=[gpu(0), card])) == ["rack-1 #3: the server reports and no readings of this card come"]
    assert sentences(server(gpus=[gpu(0), card], is_fresh=False)) == []


@pytest.mark.parametrize(
    ("code", "severity", "minutes", "expected"),
    [(48, "critical", 5, 1), (63, "warning", 60 * 23, 1), (63, "warning", 60 * 25, 0), (31, "info", 5, 0)],
)
def test_faults_of_a_day_that_matter_are_said_and_applications_are_not_blamed_on_the_card(
    code, severity, minutes, expected
):
    card = gpu(2, fault=fault(code, severity=severity, minutes_ago=minutes))
    assert len(sentences(server(gpus=[card]))) == expected


def test_what_the_slow_tier_asks_for_is_said_once():
    card = gpu(2, health={"recovery_action": 1, "remapped_rows_pending": True})
    assert sentences(server(gpus=[card])) == ["rack-1 #2: The driver asks for a reset of the card."]


def test_a_wrong_clock_is_said_in_its_direction():
    assert sentences(server(skew=95.0)) == ["The clock of rack-1 is 1 m 35 s ahead."]
    assert sentences(server(skew=-95.0)) == ["The clock of rack-1 is 1 m 35 s behind."]
    assert sentences(server(skew=29.0)) == []


def test_the_worst_comes_first_then_the_newest():
    bad = server("rack-2", 2, gpus=[gpu(0, server="rack-2", server_id=2, state="lost", activity=Activity.LOST)])
    old, new = (gpu(n, fault=fault(63, severity="warning", minutes_ago=minutes)) for n, minutes in ((0, 90), (1, 5)))
    found = attention(fleet(server(gpus=[old]), server("rack-3", 3, gpus=[new]), bad))
    assert [item.key for item in found] == ["gone.2", "fault.101", "fault.100"]


def test_totals_leave_out_what_did_not_report():
    cards = [gpu(number, values={"utilization_percent": 80.0}) for number in range(6)]
    absent = [gpu(6, activity=Activity.NO_DATA, is_fresh=False), gpu(7, activity=Activity.MISSING, state="missing")]
    found = counts(fleet(server(gpus=[*cards, *absent])))
    assert (found.total, found.reporting, found.mean_utilization_percent) == (8, 6, 80.0)
    assert (found.busy, found.gone, found.silent) == (6, 1, 1)


def test_a_card_without_utilisation_counts_as_reporting_and_not_into_the_mean():
    mig = gpu(1, values={"utilization_percent": None}, activity=Activity.CANNOT_TELL)
    found = counts(fleet(server(gpus=[gpu(0, values={"utilization_percent": 50.0}), mig])))
    assert (found.reporting, found.unsure, found.mean_utilization_percent) == (2, 1, 50.0)


def test_nobody_reporting_has_no_mean():
    found = counts(fleet(server(gpus=[gpu(0, activity=Activity.NO_DATA, is_fresh=False)])))
    assert found.mean_utilization_percent is None


def test_ghost_memory_counts_as_held():
    found = counts(fleet(server(gpus=[gpu(0, activity=Activity.GHOST), gpu(1, activity=Activity.PARKED)])))
    assert (found.parked, found.idle) == (2, 0)


def test_a_card_that_came_back_is_to_be_watched_and_calls_for_no_reboot():
    back = gpu(0, fault=fault(79, minutes_ago=50), state_changed_at=NOON - timedelta(minutes=40))
    (item,) = attention(fleet(server(gpus=[back])))
    assert item.severity == Severity.WARNING
    assert item.sentence == "rack-1 #0: lost with XID 79, came back at 2026-03-10 11:20; watch it"
    assert "eboot" not in item.hint
    assert item.since == NOON - timedelta(minutes=40)


def test_a_card_that_fell_off_after_its_last_change_is_still_critical():
    (item,) = attention(fleet(server(gpus=[gpu(0, fault=fault(79, minutes_ago=5))])))
    assert item.severity == Severity.CRITICAL
    assert "eboot" in item.hint
