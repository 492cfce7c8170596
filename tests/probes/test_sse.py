"""Events from bytes: whatever the pieces, the same events."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.agent.probes.sse import Event, EventTooLongError, Parser

ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=20)
LINES = st.one_of(
    TEXT.map(lambda text: f"data: {text}".encode()),
    TEXT.map(lambda text: f"data:{text}".encode()),
    TEXT.map(lambda text: f": {text}".encode()),
    st.sampled_from([b"event: error", b"id: 7", b"retry: 10", b"data", b"", b"nonsense"]),
)


def parsed(pieces):
    parser = Parser()
    found = [event for piece in pieces for event in parser.feed(piece)]
    return found + parser.finish(), parser.comments


@st.composite
def streams_in_pieces(draw):
    lines = draw(st.lists(st.tuples(LINES, ENDS), max_size=20))
    whole = draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + b"".join(line + end for line, end in lines)
    cuts = sorted(draw(st.lists(st.integers(0, len(whole)), max_size=12)))
    edges = [0, *cuts, len(whole)]
    return whole, [whole[begin:end] for begin, end in itertools.pairwise(edges)]


@given(streams_in_pieces())
def test_any_pieces_give_the_same_events(case):
    whole, pieces = case
    assert parsed(pieces) == parsed([whole])
    assert parsed([bytes([byte]) for byte in whole]) == parsed([whole])


@given(st.binary(max_size=300), st.integers(1, 7))
def test_garbage_gives_events_or_none_and_no_surprise(garbage, size):
    pieces = [garbage[at : at + size] for at in range(0, len(garbage), size)]
    assert parsed(pieces) == parsed([garbage])


@given(st.lists(st.dictionaries(TEXT, st.one_of(TEXT, st.integers())), min_size=1, max_size=5), ENDS)
def test_what_was_written_as_json_is_read_as_it_was(objects, end):
    whole = b"".join(b"data: " + json.dumps(one).encode() + end + end for one in objects)
    assert [json.loads(event.data) for event in parsed([whole])[0]] == objects


def test_lines_of_one_event_are_joined_and_one_space_is_taken_off():
    assert parsed([b"data:  a\ndata:b\n\n"])[0] == [Event("message", " a\nb")]


def test_comments_are_counted_and_no_events():
    assert parsed([b": ping\n\n: ping\n\ndata: x\n\n"]) == ([Event("message", "x")], 2)


def test_a_named_event_keeps_its_name_and_the_next_one_has_none():
    assert parsed([b"event: error\ndata: 1\n\ndata: 2\n\n"])[0] == [Event("error", "1"), Event("message", "2")]


def test_a_line_feed_that_comes_later_than_its_carriage_return_ends_no_event():
    assert parsed([b"data: a\r", b"\ndata: b\r", b"\n\r", b"\n"])[0] == [Event("message", "a\nb")]


def test_an_event_without_the_empty_line_at_the_end_is_read():
    assert parsed([b"data: [DONE]"])[0] == [Event("message", "[DONE]")]


@pytest.mark.parametrize("line", [b"data: " + b"x" * 200, b"data: xxxxxxxxxx\n" * 30])
def test_an_event_has_a_largest_size(line):
    with pytest.raises(EventTooLongError):
        Parser(longest=100).feed(line)
