"""Pages of channels and notifications: sound in both languages, closed to those who may not, and what their forms do."""

import json

import pytest
from django.core.cache import cache
from django.urls import reverse

from monitoring.delivery.models import Channel, Notification, NotificationAttempt
from monitoring.delivery.outbox import announce
from monitoring.delivery.selectors import TROUBLE_KEY, trouble_tell
from monitoring.notifiers.phrases import Phrase, stored
from panel.core.clock import now
from tests.delivery.world import mail_settings, make_channel, register, story
from tests.frontend.html import Page

pytestmark = pytest.mark.django_db


def delivery_world():
    """Channels of several kinds and states, and notifications that fared differently."""
    register()
    mail = make_channel(
        "mail of the night shift", kind="mail", secrets=json.dumps({"password": "x" * 12}), time_zone="Asia/Shanghai",
        settings=mail_settings("ada@example.com", {"address": "wei@example.com", "language": "zh-hans"}, "c@example.com"),
    )  # fmt: skip
    broken = make_channel(
        "robot", failure=stored(Phrase("It answered with HTTP %(code)s.", {"code": 503})), failed_at=now()
    )
    make_channel("hook", kind="webhook", is_enabled=False, fallback=mail)
    announce(story(1, 1, "opening", facts={"name": "a-model-with-a-very-long-name-" * 4}), at=now())
    announce(story(2, 1, "opening", "warning", host_id=7), at=now())
    dead = Notification.objects.filter(channel=broken).first()
    Notification.objects.filter(pk=dead.pk).update(
        status="dead", dead_at=now(), reason=broken.failure, first_try_at=now(), attempt_count=1
    )
    NotificationAttempt.objects.create(
        notification=dead, channel=broken, started_at=now(), outcome="refused", latency_ms=12.5, status_code=503,
        sentence=broken.failure, conversation="POST https://robot.example/[redacted]\n\n" + "x" * 500,
    )  # fmt: skip
    return {"mail": mail, "robot": broken, "dead": dead}


@pytest.fixture
def world(people):
    yield delivery_world()
    cache.delete(TROUBLE_KEY)


def pages_of(world):
    """Addresses: for everybody, for operators, for admins."""
    mail, robot = world["mail"].pk, world["robot"].pk
    viewed = [
        "/channels/",
        f"/channels/{mail}/",
        f"/channels/{robot}/",
        "/notifications/",
        "/notifications/?status=delivered",
    ]
    operated = [f"/notifications/{world['dead'].pk}/"]
    managed = [
        "/channels/new/", "/channels/new/?kind=mail&preset=qq", *(f"/channels/new/?kind={kind}" for kind in (
            "mail", "dingtalk", "feishu", "wecom", "slack", "webhook")),
        f"/channels/{mail}/edit/", f"/channels/{robot}/edit/",
    ]  # fmt: skip
    return viewed, operated, managed


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_every_page_is_a_sound_document_in_both_languages(ada, people, world, language):
    people["admin"].language = language
    people["admin"].save()
    faults = {}
    for path in [each for group in pages_of(world) for each in group]:
        answer = ada.get(path)
        found = [answer.status_code] if answer.status_code != 200 else []
        found += Page(answer.content.decode()).faults()
        if found:
            faults[path] = found
    assert faults == {}


def test_a_page_opens_for_the_roles_that_may(browser, world):
    viewed, operated, managed = pages_of(world)
    wanted = {
        "viewer": {**dict.fromkeys(viewed, 200), **dict.fromkeys(operated + managed, 403)},
        "operator": {**dict.fromkeys(viewed + operated, 200), **dict.fromkeys(managed, 403)},
    }
    for role, paths in wanted.items():
        client = browser(role)
        assert {path: client.get(path).status_code for path in paths} == paths


def test_a_channel_that_nobody_has_is_not_found(ada, world):
    for path in ("/channels/4711/", "/channels/99999999999999999999/", "/notifications/4711/"):
        assert ada.get(path).status_code == 404


def mail_form(**changes):
    return {
        "kind": "mail", "name": "qq", "host": "smtp.qq.com", "port": "465", "transport": "tls", "username": "a@qq.com",
        "password": "authorisation-code", "sender": "a@qq.com", "min_severity": "info", "topics": ["episode"],
        "recipients": "ada@example.com zh-hans Asia/Shanghai\n\nbob@example.com\n", **changes,
    }  # fmt: skip


def test_a_mail_channel_is_made_from_a_form_and_its_password_never_comes_back(ada, world):
    answer = ada.post("/channels/new/", mail_form())
    made = Channel.objects.get(name="qq")
    assert answer.status_code == 302
    assert made.settings["recipients"] == [
        {"address": "ada@example.com", "language": "zh-hans", "time_zone": "Asia/Shanghai"}, {"address": "bob@example.com"},
    ]  # fmt: skip
    assert json.loads(made.secrets) == {"password": "authorisation-code"}
    for path in (f"/channels/{made.pk}/", f"/channels/{made.pk}/edit/", "/channels/"):
        assert "authorisation-code" not in ada.get(path).content.decode()
    kept = ada.post(f"/channels/{made.pk}/edit/", mail_form(host="smtp.exmail.qq.com"))
    assert kept.status_code == 302
    made.refresh_from_db()
    assert made.settings["host"] == "smtp.exmail.qq.com"
    assert json.loads(made.secrets) == {"password": "authorisation-code"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"recipients": "ada"}, "ada"),
        ({"recipients": "a@example.com klingon"}, "klingon"),
        ({"port": "99999"}, "id_port"),
    ],
)
def test_a_form_that_cannot_work_says_why_and_shows_no_password(ada, world, change, said):
    answer = ada.post("/channels/new/", mail_form(**change))
    assert answer.status_code == 400
    assert said in answer.content.decode()
    assert "authorisation-code" not in answer.content.decode()
    assert not Channel.objects.filter(name="qq").exists()


def test_a_webhooks_secret_is_shown_once_on_the_page_that_follows(ada, world):
    form = {"kind": "webhook", "name": "ci", "url": "https://ci.example/hook", "min_severity": "info"}
    assert "whsec_" in ada.post("/channels/new/", form).content.decode()
    assert "whsec_" not in ada.get(reverse("channel", args=[Channel.objects.get(name="ci").pk])).content.decode()


def test_a_failed_test_shows_what_was_said(ada, world, settings):
    settings.EGRESS_ALLOW = []
    Channel.objects.filter(pk=world["robot"].pk).update(secrets="")
    channel = make_channel("inside", kind="wecom", secrets=json.dumps({"url": "http://127.0.0.1:9/cgi-bin/webhook"}))
    page = ada.post(f"/channels/{channel.pk}/test/").content.decode()
    assert "FLEETDECK_EGRESS_ALLOW" in page
    assert "POST http://127.0.0.1:9/[redacted]" in page


def test_removing_needs_the_name_and_names_what_is_lost(ada, world):
    pk = world["robot"].pk
    ada.post(f"/channels/{pk}/remove/", {"typed_name": "something"})
    assert Channel.objects.filter(pk=pk).exists()
    ada.post(f"/channels/{pk}/remove/", {"typed_name": "robot"})
    assert not Channel.objects.filter(pk=pk).exists()
    assert Notification.objects.filter(channel_name="robot").exists()
    assert ada.get("/notifications/").status_code == 200


def test_a_channel_that_alone_is_told_names_the_rules_that_would_lose_their_receiver(ada, people):
    from monitoring.alerts.models import Rule

    rule = Rule.objects.filter(is_enabled=True, severity="").first()
    assert rule is not None
    only = make_channel("only")
    page = ada.get(f"/channels/{only.pk}/").content.decode()
    assert "loses its receiver." in page
    assert "Nobody is told of this any more: Budgets." in page
    make_channel("second")
    assert "loses its receiver." not in ada.get(f"/channels/{only.pk}/").content.decode()


def test_what_is_undeliverable_stands_on_every_page_until_it_is_dismissed(ada, browser, world):
    assert 'role="alert"' not in ada.get("/fleet/").content.decode()
    trouble_tell(at=now())
    for path in ("/", "/fleet/", "/channels/", "/settings/"):
        assert "1 notification could not be delivered" in ada.get(path).content.decode()
    assert "Dismiss all" not in browser("viewer").get("/fleet/").content.decode()
    ada.post("/notifications/dismiss/")
    assert "could not be delivered" not in ada.get("/fleet/").content.decode()


def test_sending_again_from_the_page_queues_it(ada, world):
    ada.post(f"/notifications/{world['dead'].pk}/resend/")
    assert Notification.objects.get(pk=world["dead"].pk).status == "queued"
