"""Numbers and times as people read them; missing is never zero."""

import json
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from django.template import Context, Template
from django.test import RequestFactory
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from frontend import formatting

ROOT = Path(__file__).resolve().parents[2]
AT = datetime(2026, 3, 10, 6, 5, 9, tzinfo=UTC)


def rendered(source, **context):
    return Template("{% load fleetdeck %}" + source).render(Context(context))


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (143771 * 2**20, "gib", "140.4\N{NO-BREAK SPACE}GiB"),  # an H200 as NVML tells it
        (0, "gib", "0.0\N{NO-BREAK SPACE}GiB"),
        (12_345_678, "mb_per_second", "12.3\N{NO-BREAK SPACE}MB/s"),
        (1_234_567_890, "mb_per_second", "1,235\N{NO-BREAK SPACE}MB/s"),
        (699.6, "watts", "700\N{NO-BREAK SPACE}W"),
        (72, "celsius", "72\N{NO-BREAK SPACE}°C"),
        (0, "percent", "0%"),
        (99.6, "percent", "100%"),
        (1980, "mhz", "1,980\N{NO-BREAK SPACE}MHz"),
        (4000, "count", "4,000"),
        (812, "latency", "812 ms"),
        (1900, "latency", "1.90 s"),
    ],
)
def test_figures_carry_their_unit(value, kind, text):
    assert formatting.with_unit(value, kind) == text


def test_a_missing_value_is_a_dash_whose_reason_can_be_heard_and_zero_is_zero():
    missing = rendered("{{ value|watts:reason }}", value=None, reason="not_supported")
    assert "—" in missing
    assert "not supported by this card" in missing
    assert "0" not in missing
    assert rendered("{{ value|watts }}", value=0) == "0\N{NO-BREAK SPACE}W"


def test_a_reason_that_an_agent_made_up_is_escaped():
    assert "<b>" not in rendered("{{ value|gib:reason }}", value=None, reason="<b>")


def test_the_number_alone_goes_under_a_header_that_has_the_unit():
    assert rendered('{{ value|bare:"gib" }}', value=80 * 2**30) == "80.0"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"),
        (59, "59 s"),
        (60, "1 m"),
        (192, "3 m 12 s"),
        (3600, "1 h"),
        (5400, "1 h 30 m"),
        (187_200, "2 d 4 h"),
        (172_800, "2 d"),
    ],
)
def test_durations_show_their_two_largest_units(seconds, text):
    assert formatting.duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (2, "just now"),
        (40, "40 seconds ago"),
        (61, "1 minute ago"),
        (7200, "2 hours ago"),
        (-172_800, "in 2 days"),
        (-40, "in 40 seconds"),
        (-7_775_990, "in 90 days"),
    ],
)
def test_relative_times_count_in_one_unit(seconds, text):
    assert formatting.ago(AT, AT + timedelta(seconds=seconds)) == text


@given(st.floats(min_value=5, max_value=1e8))
def test_a_relative_time_never_tells_more_than_has_passed(seconds):
    count, unit, _word = formatting.ago(AT, AT + timedelta(seconds=seconds)).split(" ")
    sizes = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}
    size = sizes[unit.removesuffix("s")]
    assert size * int(count) <= seconds + 1e-6
    assert seconds < size * (int(count) + 1)


@pytest.mark.parametrize(
    ("zone", "label"),
    [("Asia/Shanghai", "UTC+8"), ("Asia/Kolkata", "UTC+5:30"), ("UTC", "UTC"), ("America/St_Johns", "UTC−2:30")],
)
def test_a_zone_is_named_by_its_offset_at_that_time(zone, label):
    assert formatting.offset_label(AT.astimezone(ZoneInfo(zone))) == label


def test_a_time_stands_in_the_viewers_zone_and_says_utc_on_hover():
    with timezone.override(ZoneInfo("Asia/Shanghai")):
        element = rendered("{% time at %}", at=AT)
    assert (
        element
        == '<time datetime="2026-03-10T06:05:09.000Z" title="2026-03-10 06:05:09 UTC">2026-03-10 14:05:09 UTC+8</time>'
    )


def test_a_time_that_never_came_is_missing():
    assert "never" in rendered("{% time at %}", at=None)


def test_a_relative_time_stands_beside_the_absolute_one_never_alone():
    element = rendered("{% time at relative=True %}", at=AT)
    assert "2026-03-10 06:05:09 UTC" in element
    assert "data-ago" in element


def test_a_query_keeps_the_other_filters_and_is_escaped():
    request = RequestFactory().get('/x/?a=1&b="><script>&cursor=9')
    text = Template('{% load fleetdeck %}{% query tab="gpus" cursor=None %}').render(Context({"request": request}))
    assert text == "?a=1&amp;b=%22%3E%3Cscript%3E&amp;tab=gpus"


def test_live_numbers_read_the_same_as_those_of_the_server():
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed: the numbers of format.js were not compared with those of formatting.py")
    values = [
        0,
        0.4,
        1,
        4.96,
        59,
        61,
        99.95,
        812,
        999.4,
        1000,
        5400,
        86_400,
        187_200,
        12_345_678,
        1_234_567_890,
        143771 * 2**20,
    ]
    script = f"""
        import "{ROOT}/tests/charts/globals.mjs";
        const f = await import("{ROOT}/frontend/static/js/format.js");
        const values = {json.dumps(values)};
        const kinds = {json.dumps(sorted(formatting.KINDS))};
        console.log(JSON.stringify({{
          figures: kinds.map((kind) => values.map((value) => f.withUnit(value, kind))),
          durations: values.map((value) => f.duration(value)),
          ago: values.map((value) => f.ago(0, value * 1000)),
          ahead: values.map((value) => f.ago(value * 1000, 0)),
        }}));
    """
    done = subprocess.run(
        [node, "--input-type=module", "-e", script], capture_output=True, text=True, timeout=60, check=True
    )
    live = json.loads(done.stdout)
    kinds = sorted(formatting.KINDS)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    assert live["figures"] == [[formatting.with_unit(value, kind) for value in values] for kind in kinds]
    assert live["durations"] == [formatting.duration(value) for value in values]
    spans = [value for value in values if value < 1e6]
    assert live["ago"][: len(spans)] == [formatting.ago(epoch, epoch + timedelta(seconds=value)) for value in spans]
    ahead = [formatting.ago(epoch + timedelta(seconds=value), epoch) for value in spans]
    assert live["ahead"][: len(spans)] == ahead
