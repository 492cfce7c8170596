"""Prometheus' text: what the official parser reads back is what went in."""

import math
import struct

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families

from monitoring.exposition import Exposition, labels_text, number_text

words = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=20)


@given(words, words)
def test_labels_come_back_as_they_were_whatever_is_in_them(first, second):
    text = Exposition(is_openmetrics=False).gauge("x", "About.", [(labels_text(a=first, b=second), 1.0)])
    [family] = text_string_to_metric_families(text)
    assert family.samples[0].labels == {"a": first, "b": second}


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_reading_keeps_the_precision_that_it_was_stored_with(value):
    back = float(number_text(value))
    assert math.isclose(back, value, rel_tol=1e-6, abs_tol=1e-37)
    if value == int(value) and abs(value) < 1e15:
        assert back == value


def test_large_whole_numbers_are_written_out():
    assert number_text(150_323_855_360.0) == "150323855360"
    assert number_text(struct.unpack("<f", struct.pack("<f", 612.3))[0]) == "612.3"
    assert number_text(0.0) == "0"


def test_a_missing_value_is_left_out_and_a_family_of_none_is_not_there():
    write = Exposition(is_openmetrics=False)
    assert write.gauge("x", "About.", [('a="1"', None)]) == ""
    assert write.gauge("x", "About.", [('a="1"', None), ('a="2"', 0.0)]).count("\n") == 3


def test_counters_and_infos_are_headed_as_each_format_wants():
    for is_openmetrics, read in ((False, text_string_to_metric_families), (True, openmetrics_families)):
        write = Exposition(is_openmetrics=is_openmetrics)
        text = write.counter("lost", "About.", [('a="1"', 3)]) + write.info("thing", "About.", ['a="1"'])
        families = {sample.name: family for family in read(text + "# EOF\n") for sample in family.samples}
        assert families["lost_total"].type == "counter"
        assert families["lost_total"].samples[0].value == 3
        assert families["thing_info"].type == ("info" if is_openmetrics else "gauge")
