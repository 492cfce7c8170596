"""The outbox: nothing is lost, nothing is told twice, an end alone is told to nobody, and nobody is flooded."""

import itertools

from django.db import transaction

from monitoring.delivery.models import Notification, NotificationAttempt
from monitoring.notifiers.phrases import translated
from monitoring.notifiers.verdict import Verdict
from tests.delivery.world import LATER, NEVER, OK, mail_settings, make_channel, statuses, story


def test_an_opening_and_its_end_are_told_in_order_once_each(world):
    make_channel()
    world.announce(story(1, 1, "opening"))
    world.announce(story(1, 1, "opening"))  # an evaluator that was killed and repeats itself
    world.dispatch()
    world.move(minutes=30)
    world.announce(story(1, 2, "resolved"))
    world.dispatch()
    world.dispatch()
    assert world.wire.kinds == ["opening", "resolved"]
    assert statuses() == [("story:1", 1, "delivered"), ("story:1", 2, "delivered")]


def test_what_is_rolled_back_is_never_told(world):
    make_channel()
    with transaction.atomic():
        assert world.announce(story(1, 1, "opening")) == 1
        transaction.set_rollback(True)
    world.run(minutes=2)
    assert world.wire.messages == []


def test_an_opening_that_was_never_delivered_and_its_end_become_one_message(world):
    make_channel()
    world.wire.answer = LATER
    world.announce(story(1, 1, "opening"))
    world.dispatch()
    world.move(minutes=3)
    world.announce(story(1, 2, "resolved"))
    world.wire.answer = OK
    world.run(minutes=3)
    assert world.wire.kinds == ["opening", "recovered"]
    assert "was down 3 min, recovered" in world.wire.messages[-1][1].sections[0].first_line
    assert {status for _topic, _seq, status in statuses()} == {"delivered"}


def test_an_opening_that_may_have_arrived_is_sent_again_as_it_was_before_its_end(world):
    make_channel()
    world.wire.answer = Verdict("retry", "silent", is_uncertain=True)
    world.announce(story(1, 1, "opening"))
    world.dispatch()
    world.announce(story(1, 2, "resolved"))
    world.wire.answer = OK
    world.run(minutes=3)
    assert world.wire.kinds == ["opening", "opening", "resolved"]
    first, second, _end = (message for _name, message in world.wire.messages)
    assert first.message_id == second.message_id
    assert first.key == second.key


def test_an_end_goes_to_exactly_those_who_were_told_of_the_beginning(world):
    make_channel("all")
    make_channel("critical only", min_severity="critical")
    world.announce(story(1, 1, "opening", "warning"))
    world.dispatch()
    make_channel("new")
    world.announce(story(1, 2, "resolved", "warning"))
    world.announce(story(2, 1, "resolved"))
    world.run(minutes=2)
    assert [(name, message.kind) for name, message in world.wire.messages] == [("all", "opening"), ("all", "resolved")]


def test_who_hears_of_it_when_it_has_become_critical_hears_an_opening(world):
    make_channel("critical only", min_severity="critical")
    world.announce(story(1, 1, "opening", "warning"))
    world.announce(story(1, 2, "update", "critical"))
    world.dispatch()
    world.announce(story(1, 3, "resolved", "critical"))
    world.dispatch()
    assert world.wire.kinds == ["opening", "resolved"]


def test_order_within_a_topic_is_kept_while_the_first_waits_for_its_next_try(world):
    make_channel()
    world.announce(story(1, 1, "opening"))
    world.dispatch()
    world.wire.answer = Verdict("retry", "silent", is_uncertain=True)
    world.announce(story(1, 2, "update"))
    world.dispatch()
    world.announce(story(1, 3, "resolved"))
    world.announce(story(2, 1, "opening"))
    world.wire.answer = OK
    world.dispatch()
    assert world.wire.kinds == ["opening", "update", "opening"]  # the other topic does not wait
    world.run(minutes=1)
    assert world.wire.kinds == ["opening", "update", "opening", "update", "resolved"]


def test_retries_wait_longer_each_time_and_end_after_a_day_with_another_channel(world):
    make_channel("robot")
    spare = make_channel("spare", min_severity="critical", topics=["nothing of this"])
    world.wire.answer = lambda channel, message: OK if channel.name == "spare" else LATER
    world.announce(story(1, 1, "opening", "warning"))
    world.run(step_seconds=60, hours=25)
    row = Notification.objects.get(channel__name="robot")
    assert row.status == "dead"
    attempts = list(NotificationAttempt.objects.filter(notification=row).order_by("started_at"))
    gaps = [(b.started_at - a.started_at).total_seconds() for a, b in itertools.pairwise(attempts)]
    assert len(attempts) == row.attempt_count
    for gap, base in zip(gaps, (10, 30, 120, 600, 1800, *[3600] * 40), strict=False):
        assert base * 0.8 <= gap <= base * 1.2 + 60
    assert 28 <= len(attempts) <= 36
    assert Notification.objects.get(channel=spare).status == "delivered"
    note = world.wire.messages[-1][1].notes
    assert any("robot" in each for each in note)


def test_what_is_critical_goes_another_way_after_half_an_hour_while_the_first_goes_on_trying(world):
    make_channel("robot")
    make_channel("spare", topics=["nothing of this"])
    world.wire.answer = lambda channel, message: OK if channel.name == "spare" else LATER
    world.announce(story(1, 1, "opening"))
    world.run(step_seconds=30, minutes=90)
    assert {name for name, _message in world.wire.messages} == {"robot", "spare"}
    assert [name for name, _message in world.wire.messages].count("spare") == 1
    assert Notification.objects.get(channel__name="robot").status == "queued"
    world.announce(story(1, 2, "resolved"))
    world.run(minutes=5)
    assert [message.kind for name, message in world.wire.messages if name == "spare"] == ["opening", "resolved"]


def test_a_refusal_is_dead_at_once_and_what_waits_behind_it_goes_the_other_way_too(world):
    make_channel("robot")
    spare = make_channel("spare", topics=["nothing of this"])
    world.wire.answer = lambda channel, message: OK if channel.name == "spare" else NEVER
    world.announce(story(1, 1, "opening"))
    world.announce(story(1, 2, "resolved"))
    world.dispatch()
    world.dispatch()
    assert [(name, message.kind) for name, message in world.wire.messages] == [
        ("robot", "recovered"),
        ("spare", "recovered"),
    ]
    assert set(Notification.objects.filter(channel=spare).values_list("status", flat=True)) == {"delivered"}


def test_the_fallback_that_a_person_chose_comes_before_others(world):
    chosen = make_channel("chosen", topics=["nothing of this"])
    make_channel("another", topics=["nothing of this"], delivered_at=world.at)
    make_channel("robot", fallback=chosen)
    world.wire.answer = lambda channel, message: NEVER if channel.name == "robot" else OK
    world.announce(story(1, 1, "opening"))
    world.dispatch()
    world.dispatch()
    assert [name for name, _message in world.wire.messages] == ["robot", "chosen"]


def test_when_every_channel_refuses_it_ends_and_stays_visible(world):
    for name in ("a", "b", "c"):
        make_channel(name, topics=["x"] if name != "a" else [])
    world.wire.answer = NEVER
    world.announce(story(1, 1, "opening"))
    world.run(minutes=5)
    assert [name for name, _message in world.wire.messages] == ["a", "b", "c"]
    assert set(Notification.objects.values_list("status", flat=True)) == {"dead"}


def test_gone_disables_the_channel_and_says_why(world):
    channel = make_channel("hook", kind="webhook")
    world.wire.answer = Verdict("gone", "It answered 410: the receiver wants no more messages.", 410)
    world.announce(story(1, 1, "opening"))
    world.dispatch()
    channel.refresh_from_db()
    assert not channel.is_enabled
    assert "410" in translated(channel.disabled_reason)
    assert world.announce(story(2, 1, "opening")) == 0


def test_what_hangs_on_one_server_within_a_minute_is_one_message(world):
    make_channel()
    for number in range(8):
        world.announce(story(number, 1, "opening", host_id=7))
        world.move(seconds=5)
    world.announce(story(50, 1, "opening", host_id=8))
    world.run(minutes=2)
    messages = [message for _name, message in world.wire.messages]
    assert sorted(len(message.sections) for message in messages) == [1, 8]
    world.announce(story(3, 2, "resolved", host_id=7))
    world.run(minutes=2)
    last = world.wire.messages[-1][1]
    assert last.root_id == next(message for message in messages if len(message.sections) == 8).message_id


def test_programs_get_each_thing_by_itself_and_at_once(world):
    make_channel("hook", kind="webhook")
    for number in range(15):
        world.announce(story(number, 1, "opening", host_id=7))
    world.dispatch()
    assert world.wire.kinds == ["opening"] * 15


def test_a_storm_becomes_one_digest_and_no_more_than_ten_messages_come_in_five_minutes(world):
    make_channel()
    for number in range(40):
        world.announce(story(number, 1, "opening"))
    world.dispatch()
    assert world.wire.kinds == ["digest"]
    assert len(world.wire.messages[0][1].sections) == 40
    assert {status for *_rest, status in statuses()} == {"delivered"}


def test_a_storm_that_trickles_in_is_gathered_too(world):
    make_channel()
    for number in range(60):
        world.announce(story(number, 1, "opening"))
        world.run(seconds=10)
    world.run(minutes=6)
    told = [section.subject for _name, message in world.wire.messages for section in message.sections]
    assert len(told) == 60
    times = list(NotificationAttempt.objects.order_by("started_at").values_list("started_at", flat=True))
    for first, eleventh in zip(times, times[10:], strict=False):
        assert (eleventh - first).total_seconds() >= 290
    assert "digest" in world.wire.kinds


def test_at_most_four_messages_of_one_thing_in_a_day_and_every_end_is_told(world):
    make_channel()
    told_at = []
    for number in range(12):  # a rule and its subject open twelve times in a day
        world.announce(story(number, 1, "opening", cap_key="rule:1/endpoint:1"))
        world.run(step_seconds=60, minutes=30)
        world.announce(story(number, 2, "resolved", cap_key="rule:1/endpoint:1"))
        world.run(step_seconds=60, minutes=90)
    told_at = sorted(NotificationAttempt.objects.values_list("started_at", flat=True))
    assert len(told_at) == 4
    world.run(step_seconds=600, hours=25)
    told_at = sorted(NotificationAttempt.objects.values_list("started_at", flat=True))
    for first, fifth in zip(told_at, told_at[4:], strict=False):
        assert (fifth - first).total_seconds() >= 24 * 3600 - 1
    assert not Notification.objects.filter(status="withheld").exists()


def test_quiet_hours_hold_back_what_is_not_critical_and_end_in_one_digest(world):
    from datetime import time

    make_channel(quiet_start=time(22), quiet_end=time(8), time_zone="Asia/Shanghai")  # 14:00 to 00:00 UTC
    for number in range(3):
        world.announce(story(number, 1, "opening", "warning"))
    world.announce(story(9, 1, "opening", "critical"))
    world.run(step_seconds=600, hours=9)
    assert world.wire.kinds == ["opening"]
    world.run(step_seconds=600, hours=2)
    assert world.wire.kinds == ["opening", "digest"]
    assert len(world.wire.messages[-1][1].sections) == 3


def test_what_turns_critical_in_quiet_hours_is_told_at_once(world):
    from datetime import time

    make_channel(quiet_start=time(14), quiet_end=time(8))
    world.announce(story(1, 1, "opening", "warning"))
    world.announce(story(1, 2, "update", "critical"))
    world.dispatch()
    assert [(message.kind, message.severity) for _name, message in world.wire.messages] == [("opening", "critical")]


def test_every_recipient_of_a_mail_channel_has_a_row_a_language_and_a_zone(world, django_user_model):
    django_user_model.objects.create(
        username="wei", email="Wei@example.com", language="zh-hans", time_zone="Asia/Shanghai"
    )
    make_channel("mail", kind="mail", settings=mail_settings("ada@example.com", "wei@example.com"))
    world.announce(story(1, 1, "opening"))
    world.dispatch()
    by_recipient = {message.recipient: message for _name, message in world.wire.messages}
    assert by_recipient["ada@example.com"].language == "en"
    assert "2026-03-10 14:02:31 +00:00" in by_recipient["ada@example.com"].sections[0].first_line
    assert by_recipient["wei@example.com"].language == "zh-hans"
    assert "2026-03-10 22:02:31 +08:00" in by_recipient["wei@example.com"].sections[0].first_line


def test_one_recipient_who_is_refused_does_not_stop_the_other(world):
    make_channel("mail", kind="mail", settings=mail_settings("a@example.com", "b@example.com"))
    world.wire.answer = lambda channel, message: NEVER if message.recipient.startswith("a") else OK
    world.announce(story(1, 1, "opening"))
    world.dispatch()
    assert dict(Notification.objects.values_list("recipient", "status")) == {
        "a@example.com": "dead", "b@example.com": "delivered",
    }  # fmt: skip


def test_a_channel_is_sent_no_more_than_its_windows_let_through(world):
    make_channel("hook", kind="webhook")
    for number in range(100):
        world.announce(story(number, 1, "opening"))
    world.dispatch()
    assert len(world.wire.messages) == 60
    world.run(seconds=61)
    assert len(world.wire.messages) == 100


def test_a_message_that_a_teller_cannot_render_goes_out_with_plain_facts(world):
    from monitoring.delivery.outbox import Announcement, register_teller

    register_teller("broken", lambda facts, language: facts["missing"])
    make_channel()
    world.announce(Announcement("broken:1", 1, "opening", "critical", facts={"endpoint": "llama", "p99_ms": 1840}))
    world.dispatch()
    section = world.wire.messages[0][1].sections[0]
    assert ("p99_ms", "1840") in section.rows
    assert statuses() == [("broken:1", 1, "delivered")]


def test_a_delay_is_told(world):
    make_channel()
    world.wire.answer = LATER
    world.announce(story(1, 1, "opening", "warning"))
    world.run(minutes=20)
    world.wire.answer = OK
    world.run(minutes=20)
    assert any("Delayed by" in note for note in world.wire.messages[-1][1].notes)
