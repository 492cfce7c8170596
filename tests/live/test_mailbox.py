"""Frames merge without losing what is newest, and say what they cover."""

import json

from hypothesis import given
from hypothesis import strategies as st

from monitoring.live.mailbox import MAX_KEYS, Frame, Mailbox, merge

updates = st.lists(
    st.dictionaries(
        st.sampled_from(["gpus", "servers"]), st.dictionaries(st.sampled_from("abc"), st.integers()), max_size=2
    ),
    min_size=1,
    max_size=12,
)


def delta(seq, data, topic="fleet"):
    return Frame("delta", topic, seq, seq, data)


@given(updates, st.lists(st.booleans(), min_size=12, max_size=12))
def test_a_slow_reader_ends_with_the_same_state_as_a_quick_one_and_sees_no_gap(stream, reads):
    mailbox, state, last_seq = Mailbox(), {}, 0
    expected = {}
    for number, data in enumerate(stream, start=1):
        merge(expected, data)
        mailbox.put(delta(number, data))
        if reads[number - 1] or number == len(stream):
            for frame in mailbox.take():
                assert frame.first_seq <= last_seq + 1
                assert frame.seq > last_seq
                last_seq = frame.seq
                merge(state, frame.data)
    assert {k: v for k, v in state.items() if v} == {k: v for k, v in expected.items() if v}
    assert last_seq == len(stream)


def test_merging_leaves_the_shared_frame_of_other_sockets_alone():
    first, second = delta(1, {"gpus": {"1": {"power_watts": 1}}}), delta(2, {"gpus": {"1": {"power_watts": 2}}})
    slow = Mailbox()
    slow.put(first)
    slow.put(second)
    assert first.data == {"gpus": {"1": {"power_watts": 1}}}
    assert slow.take()[0].data == {"gpus": {"1": {"power_watts": 2}}}
    assert slow.merged == 1


def test_at_most_one_frame_per_topic_waits_however_many_arrive():
    mailbox = Mailbox()
    for number in range(1, 10_001):
        mailbox.put(delta(number, {"gpus": {str(number % 8): number}}))
    frames = mailbox.take()
    assert len(frames) == 1
    assert (frames[0].first_seq, frames[0].seq) == (1, 10_000)
    assert len(frames[0].data["gpus"]) == 8


def test_keys_that_never_repeat_are_bounded_and_the_oldest_go_first():
    mailbox = Mailbox()
    for number in range(1, MAX_KEYS + 101):
        mailbox.put(delta(number, {"events": {str(number): {}}}, topic="events"))
    kept = mailbox.take()[0].data["events"]
    assert len(kept) == MAX_KEYS
    assert "100" not in kept
    assert str(MAX_KEYS + 100) in kept


def test_deltas_wait_for_the_snapshot_of_their_topic_and_follow_it():
    mailbox = Mailbox()
    mailbox.hold("fleet")
    assert not mailbox.put(delta(4, {"gpus": {"1": "new"}}))
    assert mailbox.put(delta(1, {"gpus": {"9": 0}}, topic="server.3"))
    assert [frame.topic for frame in mailbox.take()] == ["server.3"]
    assert mailbox.put(Frame("snapshot", "fleet", 3, 3, {"gpus": {"1": "old", "2": "old"}}))
    (frame,) = mailbox.take()
    assert (frame.type, frame.seq) == ("snapshot", 4)
    assert frame.data == {"gpus": {"1": "new", "2": "old"}}


def test_a_frame_says_topic_range_and_time_as_json():
    body = json.loads(Frame("delta", "server.3", 5, 7, {"gpus": {"1": {"power_watts": None}}}).text)
    assert (body["type"], body["topic"], body["from"], body["seq"]) == ("delta", "server.3", 5, 7)
    assert body["data"] == {"gpus": {"1": {"power_watts": None}}}
    assert body["at"].endswith("+00:00")
    assert "from" not in json.loads(Frame("snapshot", "fleet", 5, 5, {}).text)
