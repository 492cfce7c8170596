"""The dispatcher over real transactions: threads, two at once, a slow channel, and the signs of life."""

import threading
from datetime import timedelta

import pytest
from django.db import connection, transaction

from monitoring.delivery import dispatcher
from monitoring.delivery.heartbeats import heartbeat
from monitoring.delivery.leasing import lease_next
from monitoring.delivery.models import Heartbeat, Notification
from monitoring.delivery.outbox import announce
from monitoring.delivery.sending import Sent
from panel.core.clock import now
from panel.core.health import CheckStatus
from panel.health.delivery import delivery_checks
from tests.delivery.world import OK, make_channel, story

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_slow_channel_delays_no_other(wire, monkeypatch):
    make_channel("slow")
    make_channel("quick")
    is_told, order = threading.Event(), []

    def send(channel, message, *, at):
        if channel.name == "slow":
            assert is_told.wait(timeout=20), "the quick channel waited for the slow one"
        order.append(channel.name)
        if channel.name == "quick" and message.key == "story-2":
            is_told.set()
        return Sent(OK, 1.0, "")

    monkeypatch.setattr(dispatcher, "send", send)
    announce(story(1, 1, "opening"), at=now())
    late = threading.Timer(0.2, lambda: (announce(story(2, 1, "opening"), at=now()), connection.close()))
    late.start()
    dispatcher.dispatch()
    late.join()
    assert order[:2] == ["quick", "quick"]
    assert sorted(order) == ["quick", "quick", "slow", "slow"]
    assert Heartbeat.objects.get(name="dispatcher").facts["sent"] == 4


def test_two_dispatchers_never_send_the_same_message(wire, monkeypatch):
    make_channel("hook", kind="webhook")
    for number in range(40):
        announce(story(number, 1, "opening"), at=now())
    sent, lock = [], threading.Lock()

    def send(channel, message, *, at):
        with lock:
            sent.append(message.key)
        return Sent(OK, 1.0, "")

    monkeypatch.setattr(dispatcher, "send", send)
    rounds = [threading.Thread(target=lambda: (dispatcher.dispatch(), connection.close())) for _ in range(3)]
    for each in rounds:
        each.start()
    for each in rounds:
        each.join()
    dispatcher.dispatch()
    assert sorted(sent) == sorted(f"story-{number}" for number in range(40))


def test_who_holds_a_row_keeps_its_topic_from_others_and_nobody_waits(wire):
    channel = make_channel("hook", kind="webhook")
    announce(story(1, 1, "opening"), at=now())
    held, go = threading.Event(), threading.Event()

    def hold():
        with transaction.atomic():
            list(Notification.objects.select_for_update())
            held.set()
            go.wait(timeout=20)
        connection.close()

    other = threading.Thread(target=hold)
    other.start()
    held.wait(timeout=20)
    announce(story(1, 2, "update"), at=now())
    assert lease_next(channel.pk, at=now()) is None
    go.set()
    other.join()
    lease = lease_next(channel.pk, at=now())
    assert [row.seq for row in lease.parcel.rows] == [1, 2]
    assert lease_next(channel.pk, at=now()) is None
    assert lease_next(channel.pk, at=now() + timedelta(seconds=61)) is not None


def test_self_health_tells_of_a_dispatcher_that_stands_still_and_of_what_waits():
    def found():
        return {check.code: check.status for check in delivery_checks()}

    assert found()["dispatcher_age_seconds"] == CheckStatus.WARNING
    heartbeat("dispatcher", at=now())
    assert set(found().values()) == {CheckStatus.OK}
    heartbeat("dispatcher", at=now() - timedelta(minutes=4))
    assert found()["dispatcher_age_seconds"] == CheckStatus.CRITICAL
    make_channel()
    announce(story(1, 1, "opening"), at=now() - timedelta(minutes=31))
    assert found()["outbox_oldest_seconds"] == CheckStatus.CRITICAL
    Notification.objects.update(status="dead", dead_at=now())
    assert found()["outbox_dead"] == CheckStatus.WARNING


def test_the_job_that_beat_sends_delivers_and_leaves_it_to_a_round_that_is_under_way(wire):
    from monitoring.delivery.tasks import dispatch_task
    from panel.core.places import place

    make_channel()
    announce(story(1, 1, "opening"), at=now())
    with place({"delivery rounds": 1}, seconds=30) as is_free:
        assert is_free
        dispatch_task.apply().get()
        assert wire.messages == []
    dispatch_task.apply().get()
    assert wire.kinds == ["opening"]
