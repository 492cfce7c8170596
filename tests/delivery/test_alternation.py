"""For any sequence of transitions and failures: openings and ends alternate per recipient, and nothing owed is lost."""

import random

import pytest

from monitoring.delivery.models import Notification
from monitoring.notifiers.verdict import Verdict
from tests.delivery.world import LATER, OK, mail_settings, make_channel, story

UNCERTAIN = Verdict("retry", "silent", is_uncertain=True)


@pytest.mark.parametrize("seed", range(4))
def test_openings_and_ends_alternate_and_every_topic_is_told_to_its_end(world, seed):
    chance = random.Random(seed)
    make_channel("chat")
    make_channel("hook", kind="webhook", min_severity="warning")
    make_channel("mail", kind="mail", settings=mail_settings("a@example.com", "b@example.com"))
    world.wire.answer = lambda channel, message: chance.choice((OK, OK, LATER, UNCERTAIN))
    delivered = []
    send = world.wire.send

    def remember(channel, message, *, at):
        sent = send(channel, message, at=at)
        if sent.verdict.outcome == "delivered":
            delivered.append((channel.name, message))
        return sent

    from monitoring.delivery import dispatcher

    dispatcher.send = remember  # the fixture put its own here, and takes it back
    state = {}
    for _step in range(25):
        number = chance.randrange(4)
        seq, is_open = state.get(number, (0, False))
        kind = chance.choice(("update", "reminder", "resolved")) if is_open else "opening"
        severity = chance.choice(("info", "warning", "critical"))
        host = chance.choice((None, 7))
        world.announce(story(number, seq + 1, kind, severity, host_id=host, cap_key=f"{number}-{seq}"))
        state[number] = (seq + 1, kind != "resolved")
        world.run(step_seconds=60, seconds=chance.choice((0, 60, 120)))
    for number, (seq, is_open) in state.items():
        if is_open:
            world.announce(story(number, seq + 1, "resolved"))
    world.wire.answer = OK
    world.run(step_seconds=600, hours=3)
    assert not Notification.objects.filter(status="queued").exists()
    told = {}
    for name, message in delivered:
        for item in message.payload["data"]["items"]:
            told.setdefault((name, message.recipient, item["topic"]), []).append((item["seq"], item["kind"]))
    assert told
    for who, events in told.items():
        assert [seq for seq, _kind in events] == sorted({seq for seq, _kind in events}), who
        is_open = False
        for _seq, kind in events:
            if kind in {"update", "reminder", "resolved"}:
                assert is_open, (who, events)
            if kind in {"opening", "recovered"}:
                assert not is_open or kind == "opening", (who, events)
            is_open = kind not in {"resolved", "recovered"}
        assert not is_open, (who, events)
