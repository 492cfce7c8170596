"""Ranges, the configuration of charts, their sentences and tables; no database."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from django.utils import timezone

from frontend.chart_config import Subject, available, chart_config
from frontend.chart_data import DrawnChoice, DrawnLine, points_for, summary, table_rows
from frontend.chart_specs import GPU_CHARTS, HOST, LINKS, MEMORY, POWER, SERVER_CHARTS, TEMPERATURE, UTILIZATION
from frontend.ranges import TimeRange, time_range
from monitoring.clock_reasons import reasons_in_words
from monitoring.metrics import GPU_METRIC_INDEX, HOST_METRIC_INDEX
from tests.charts.rows import GIB, NOON

SHOWN = TimeRange("15m", NOON - timedelta(minutes=15), NOON)


def subject(number, **changes):
    given = {
        "values": {
            "utilization_percent": 90.0,
            "memory_used_bytes": 1.0,
            "temperature_celsius": 60.0,
            "power_watts": 500.0,
        },
        "memory_total_bytes": 140 * GIB,
        "power_limit_watts": 700.0,
        "slowdown_celsius": 90.0,
    }
    return Subject("gpu", number, f"#{number} abcd", f"#{number}", **(given | changes))


# --- ranges -----------------------------------------------------------------------------------------------------------


def test_a_page_shows_fifteen_minutes_unless_asked():
    assert time_range({}, now=NOON) == SHOWN
    assert time_range({"range": "nonsense"}, now=NOON) == SHOWN
    month = time_range({"range": "30d"}, now=NOON)
    assert (month.is_live, month.end - month.start) == (True, timedelta(days=30))


@pytest.mark.parametrize(
    "start", ["2026-03-10T10:00:00Z", "2026-03-10T10:00:00+00:00", "2026-03-10T10:00:00 00:00", "1773136800"]
)
def test_a_range_of_its_own_stands_still(start):
    found = time_range({"from": start, "to": "2026-03-10T11:00:00Z"}, now=NOON)
    assert (found.key, found.is_live) == ("custom", False)
    assert (found.start.hour, found.end.hour) == (10, 11)
    assert time_range({"from": found.start.isoformat(), "to": found.end.isoformat()}, now=NOON) == found


def test_a_wall_clock_time_is_the_viewers():
    with timezone.override("Asia/Shanghai"):
        found = time_range({"from": "2026-03-10T18:00", "to": "2026-03-10T19:00"}, now=NOON)
    assert found.start == datetime(2026, 3, 10, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    "query",
    [
        {"from": "tomorrow"},
        {"from": "1e999"},
        {"from": "nan"},
        {"from": "2026-03-10T11:00:00Z", "to": "2026-03-10T10:00:00Z"},
        {"from": "2026-03-10T11:59:58Z"},
        {"from": "1970-01-01T00:00:00Z"},
        {"from": "2027-01-01T00:00:00Z"},
        {"to": "5"},
    ],
)
def test_a_range_that_makes_no_sense_is_the_usual_one(query):
    assert time_range(query, now=NOON) == SHOWN


def test_the_future_is_not_shown():
    found = time_range({"from": "2026-03-10T11:00:00Z", "to": "2026-03-10T15:00:00Z"}, now=NOON)
    assert found.end == NOON


# --- configuration ----------------------------------------------------------------------------------------------------


def test_every_metric_of_every_chart_is_in_the_catalogue():
    for chart in (*SERVER_CHARTS, *GPU_CHARTS):
        for choice in chart.choices:
            known = GPU_METRIC_INDEX if choice.source == "gpu" else HOST_METRIC_INDEX
            assert {line.metric for line in choice.lines} <= set(known)


def test_a_server_has_eight_charts():
    assert len(SERVER_CHARTS) == 8


def test_the_axis_of_power_reaches_above_the_limit_of_the_card_and_the_limit_is_a_line():
    (choice,) = chart_config(POWER, [subject(0, power_limit_watts=160.0)])["choices"]
    assert choice["maximum"] == pytest.approx(184)
    assert choice["thresholds"] == [{"value": 160.0, "label": "limit 160\N{NO-BREAK SPACE}W"}]


def test_cards_with_different_limits_have_a_line_for_each_of_the_two_highest():
    cards = [subject(0, slowdown_celsius=83.0), subject(1, slowdown_celsius=90.0), subject(2, slowdown_celsius=95.0)]
    thresholds = chart_config(TEMPERATURE, cards)["choices"][0]["thresholds"]
    assert [threshold["value"] for threshold in thresholds] == [90.0, 95.0]


def test_memory_is_drawn_against_the_largest_card():
    (choice,) = chart_config(MEMORY, [subject(0), subject(1, memory_total_bytes=24 * GIB)])["choices"]
    assert (choice["maximum"], choice["unit"]) == (140 * GIB, "bytes")


def test_what_no_card_offers_is_no_choice_and_a_card_that_never_reported_rules_nothing_out():
    assert [choice.key for choice in available(UTILIZATION, [subject(0)])] == ["utilization_percent"]
    assert available(LINKS, [subject(0)]) == ()
    assert len(available(LINKS, [subject(0), subject(1, values={})])) == 4


def test_ram_is_a_share_of_what_the_machine_or_its_container_has():
    host = Subject("server", 3, "rack-1", "", {"cpu_percent": 1.0}, totals={"memory_total_bytes": 200.0})
    (choice,) = chart_config(HOST, [subject(0), host])["choices"]
    assert [line["metric"] for line in choice["lines"]] == ["host.cpu_percent", "host.memory_used_bytes"]
    assert (choice["unit"], choice["lines"][1]["scale"]) == ("percent", 0.5)


def test_lines_are_coloured_by_card_and_by_metric_when_there_is_one():
    cards = chart_config(POWER, [subject(0), subject(1)])["choices"][0]["lines"]
    assert [line["colour"] for line in cards] == [0, 1]
    host = Subject("server", 3, "rack-1", "", {}, totals={"memory_total_bytes": 200.0})
    assert [line["colour"] for line in chart_config(HOST, [host])["choices"][0]["lines"]] == [0, 1]


# --- sentences --------------------------------------------------------------------------------------------------------


def drawn(*lines, chart=UTILIZATION, step=10):
    made = [
        DrawnLine(f"#{at} abcd", f"#{at}", np.array(mean, float), np.array(peak, float))
        for at, (mean, peak) in enumerate(lines)
    ]
    return DrawnChoice(
        chart.choices[0], int((NOON - timedelta(seconds=step * len(lines[0][0]))).timestamp() * 1000), step, made
    )


NAN = float("nan")


def test_one_line_says_what_is_now_and_the_highest_with_its_time():
    assert (
        summary(drawn(([70, 80, 75], [70, 99, 75])), SHOWN) == "Now 75%. Highest in the last 15 min: 99% at 11:59:40."
    )


def test_several_lines_say_their_mean_and_name_the_highest():
    found = summary(drawn(([10, 20], [10, 20]), ([30, 60], [95, 60])), SHOWN)
    assert found == "Now 40% on average; #1 highest with 60%. Highest in the last 15 min: 95% (#1) at 11:59:40."


def test_watts_are_added_up():
    assert summary(drawn(([300], [300]), ([500], [500]), chart=POWER), SHOWN).startswith(
        "Now 800\N{NO-BREAK SPACE}W together;"
    )


def test_a_card_that_is_gone_says_nothing_of_now():
    gone = [90.0] * 2 + [NAN] * 8
    found = summary(drawn(([20] * 10, [20] * 10), (gone, gone)), SHOWN)
    assert found.startswith("Now #0 abcd 20%.")
    assert "Highest in the last 15 min: 90% (#1)" in found


def test_a_chart_that_ended_names_its_last_reading():
    ended = [50.0] * 3 + [NAN] * 20
    assert summary(drawn((ended, ended)), SHOWN).startswith("Last, at 03-10 11:56, 50%.")


def test_a_range_of_the_past_says_nothing_of_now():
    past = TimeRange("custom", SHOWN.start, SHOWN.end)
    assert summary(drawn(([50], [50])), past).startswith("Last, at 03-10 11:59, 50%. Highest in the chosen time: 50%")


def test_a_chart_without_readings_says_so():
    assert summary(drawn(([NAN, NAN], [NAN, NAN])), SHOWN) == "No readings in the last 15 min."


def test_times_are_the_viewers():
    with timezone.override("Asia/Shanghai"):
        assert summary(drawn(([1, 9], [1, 9])), SHOWN).endswith("at 19:59:50.")


def test_a_table_leaves_out_empty_buckets_and_keeps_gaps_of_one_line():
    rows = table_rows(drawn(([1, NAN, 3], [1, NAN, 7]), ([NAN, NAN, 30], [NAN, NAN, 30])))
    assert [row.cells for row in rows] == [[(3.0, 7.0), (30.0, 30.0)], [(1.0, 1.0), (None, None)]]
    assert rows[0].at > rows[1].at
    assert table_rows(replace(drawn(([1], [1])), lines=[])) == []


def test_no_table_is_finer_than_readings_come():
    assert points_for(900, 5) == 181
    assert points_for(900, 1) == 460
    assert points_for(86_400 * 30, 5) == 460


# --- reasons ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        (0, []),
        (None, []),
        (0x4, ["power limit"]),
        (0x8, ["hardware slowdown"]),
        (0x8 | 0x40, ["heat (hardware)"]),
        (0x8 | 0x80, ["power brake"]),
        (0x1 | 0x4, ["idle", "power limit"]),
        (0x2000, ["0x2000"]),
    ],
)
def test_reasons_of_clocks_are_words_and_the_umbrella_is_left_out(mask, expected):
    assert reasons_in_words(mask) == expected


def host(total, **changes):
    values = {"cpu_percent": 12.0, "memory_used_bytes": 30.0 * GIB}
    totals = {"memory_total_bytes": float(total)} if total else {}
    return Subject("server", 3, "rack-1", "", **({"values": values, "totals": totals} | changes))


@pytest.mark.parametrize("values", [{}, {"cpu_percent": 12.0, "memory_used_bytes": 30.0 * GIB}], ids=["silent", "told"])
def test_ram_waits_until_the_total_is_known_and_is_never_drawn_as_anything_but_a_share(values):
    before = chart_config(HOST, [host(None, values=values)])["choices"][0]
    assert [line["metric"] for line in before["lines"]] == ["host.cpu_percent"]
    after = chart_config(HOST, [host(60 * GIB, values=values)])["choices"][0]
    assert [(line["metric"], line.get("scale")) for line in after["lines"]] == [
        ("host.cpu_percent", None),
        ("host.memory_used_bytes", pytest.approx(100 / (60 * GIB))),
    ]
    assert before["lines"][0] == after["lines"][0]  # its colour and its name stay


def test_the_sentence_of_a_lone_line_of_several_names_it():
    choice = HOST.choices[0]
    cpu = np.array([10.0, 12.0])
    data = DrawnChoice(choice, int(NOON.timestamp() * 1000), 5, [DrawnLine("CPU", "CPU", cpu, cpu)])
    assert summary(data, SHOWN).startswith("Now CPU 12%.")
