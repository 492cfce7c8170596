"""Chats and webhooks over a real socket: accepted only with a right signature, errors inside HTTP 200 seen, secrets cut."""

import json
import time

import pytest

from monitoring.delivery import dispatcher, http
from monitoring.delivery.models import Channel, Notification, NotificationAttempt
from monitoring.delivery.outbox import announce
from monitoring.delivery.sending import send
from monitoring.notifiers.phrases import translated
from monitoring.notifiers.verdict import Request, Verdict
from panel.core.clock import now
from tests.delivery.world import make_channel, register, story
from tests.fakes import chats as fake
from tests.notifiers.samples import message, part

KINDS = ("dingtalk", "wecom", "feishu", "slack", "webhook")


@pytest.fixture(scope="module")
def running():
    with fake.running_chats() as (chats, base):
        yield chats, base


@pytest.fixture
def chats(running):
    chats, _base = running
    chats.got, chats.statuses, chats.redirect, chats.drip, chats.seen_ids = [], {}, "", False, {}
    return chats


@pytest.fixture(autouse=True)
def _loopback(settings):
    settings.EGRESS_ALLOW = ["127.0.0.0/8"]
    register()


def channel(kind, base, **secrets):
    given = {**fake.secrets_of(kind, base), **secrets}
    return Channel(name=kind, kind=kind, secrets=json.dumps(given), settings={})


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_accepted_by_a_service_that_checks_its_signature(chats, running, kind):
    sent = send(channel(kind, running[1]), message(), at=now())
    assert sent.verdict.outcome == "delivered", sent.conversation
    assert chats.count(kind) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_no_secret_stands_in_a_conversation(chats, running, kind):
    for statuses in ({}, dict.fromkeys(("robot", "cgi-bin", "open-apis", "services", "hook"), (400, "no"))):
        chats.statuses = statuses
        sent = send(channel(kind, running[1]), message(), at=now())
        said = sent.conversation + sent.verdict.sentence
        for secret in fake.secrets_of(kind, running[1]).values():
            assert secret not in said
        for piece in (fake.DINGTALK_TOKEN, fake.WECOM_KEY, fake.FEISHU_HOOK, fake.SLACK_PATH, "x" * 24):
            assert piece not in said
        assert "POST http://127.0.0.1" in said
        assert "HTTP " in said


@pytest.mark.parametrize(
    ("kind", "wrong", "code"),
    [
        ("dingtalk", {"secret": "SECwrong-wrong-wrong"}, "310000"),
        ("feishu", {"secret": "wrong-wrong-wrong"}, "19021"),
        ("wecom", {"url": "{base}/cgi-bin/webhook/send?key=nobody"}, "93000"),
        ("slack", {"url": "{base}/services/T/B/unknown"}, "no_service"),
    ],
)
def test_what_a_service_refuses_inside_http_200_is_refused(chats, running, kind, wrong, code):
    wrong = {name: value.format(base=running[1]) for name, value in wrong.items()}
    sent = send(channel(kind, running[1], **wrong), message(), at=now())
    assert (sent.verdict.outcome, sent.verdict.error_code) == ("refused", code)
    assert chats.got == []


def test_long_chinese_text_is_taken_by_all(chats, running):
    long = message(part(line="模型很慢" * 900, rows=tuple("算力" * 900 for _ in range(20))))
    for kind in KINDS:
        assert send(channel(kind, running[1]), long, at=now()).verdict.outcome == "delivered", kind


def test_redirects_are_not_followed(chats, running):
    chats.redirect = f"{running[1]}/robot/send"
    sent = send(channel("dingtalk", running[1]), message(), at=now())
    assert sent.verdict.outcome == "refused"
    assert chats.got == []


def test_an_answer_that_drips_is_given_up_in_time(chats, running, monkeypatch):
    monkeypatch.setattr(http, "WHOLE_SECONDS", 1.0)
    chats.drip = True
    began = time.monotonic()
    sent = send(channel("wecom", running[1]), message(), at=now())
    assert time.monotonic() - began < 8
    assert sent.verdict.outcome == "retry"
    assert sent.verdict.is_uncertain


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "169.254.169.254", "[::ffff:169.254.169.254]"])
def test_inside_addresses_are_refused_unless_allowed(settings, host):
    settings.EGRESS_ALLOW = []
    found, _said = http.post(Request(f"http://{host}:9/x", b"{}"))
    assert isinstance(found, Verdict)
    assert (found.outcome, found.error_code) == ("refused", "address_refused")


def test_nobody_there_is_tried_again(settings):
    from tests.waiting import free_port

    found, _said = http.post(Request(f"http://127.0.0.1:{free_port()}/x", b"{}"))
    assert (found.outcome, found.is_uncertain) == ("retry", False)


@pytest.mark.django_db
def test_a_robot_that_mutes_is_left_alone_for_ten_minutes_and_nothing_is_lost(chats, running, time_machine):
    chats.limit_per_minute = 0
    make_channel("ding", secrets=json.dumps(fake.secrets_of("dingtalk", running[1])))
    announce(story(1, 1, "opening"), at=now())
    dispatcher.channel_empty(Channel.objects.get().pk, until=float("inf"))
    row, attempt = Notification.objects.get(), NotificationAttempt.objects.get()
    assert row.status == "queued"
    assert (row.retry_at - attempt.started_at).total_seconds() >= 600
    assert "ten minutes" in translated(attempt.sentence)
    chats.limit_per_minute = 20


@pytest.mark.django_db
def test_a_webhook_that_is_gone_is_switched_off(chats, running):
    chats.statuses = {"hook": (410, "gone")}
    made = make_channel("hook", kind="webhook", secrets=json.dumps(fake.secrets_of("webhook", running[1])))
    announce(story(1, 1, "opening"), at=now())
    dispatcher.channel_empty(made.pk, until=float("inf"))
    made.refresh_from_db()
    assert not made.is_enabled
