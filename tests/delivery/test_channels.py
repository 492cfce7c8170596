"""Channels over the API: what is kept of them, what is shown, what a test says; secrets stay secrets."""

import json
from datetime import timedelta

import pytest

from monitoring.delivery.channels import _users as users_of_channels
from monitoring.delivery.channels import register_channel_users
from monitoring.delivery.models import Channel, Notification
from monitoring.delivery.outbox import announce
from monitoring.delivery.rendering import stop_asked, stop_url
from panel.accounts.models import AuditEntry
from panel.core.clock import now
from tests.accounts.people import person, token_client
from tests.delivery.world import NEVER, mail_settings, make_channel, story
from tests.fakes import chats as fake

pytestmark = pytest.mark.django_db
PASSWORD = "the-authorisation-code-4711"


@pytest.fixture
def admin():
    return token_client(person("ada", "admin"))


def mail_body(**changes):
    settings = {
        "host": "smtp.qq.com", "port": 465, "transport": "tls", "username": "ada@qq.com", "sender": "ada@qq.com",
        "recipients": [{"address": "ada@example.com", "language": "zh-hans", "time_zone": "Asia/Shanghai"}],
    }  # fmt: skip
    return {"name": "mail", "kind": "mail", "settings": {**settings, **changes}, "secrets": {"password": PASSWORD}}


def test_a_channel_is_made_changed_and_removed_and_its_secret_is_never_shown(admin):
    made = admin.post("/api/v1/channels/", mail_body())
    assert made.status_code == 201, made.content
    pk = made.json()["id"]
    changed = admin.patch(
        f"/api/v1/channels/{pk}/", {"quiet_start": "22:00", "quiet_end": "08:00", "topics": ["episode"]}
    )
    assert changed.status_code == 200, changed.content
    answers = [made, changed, admin.get("/api/v1/channels/"), admin.get(f"/api/v1/channels/{pk}/")]
    assert all(PASSWORD not in answer.content.decode() for answer in answers)
    assert admin.get(f"/api/v1/channels/{pk}/").json()["secret_names"] == ["password"]
    assert json.loads(Channel.objects.get().secrets) == {"password": PASSWORD}
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT secrets FROM monitoring_channel")
        assert PASSWORD not in cursor.fetchone()[0]
    assert PASSWORD not in json.dumps(list(AuditEntry.objects.values("before", "after")), default=str)
    assert admin.delete(f"/api/v1/channels/{pk}/").status_code == 204
    assert not Channel.objects.exists()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (mail_body(host="smtp qq"), "host"),
        (mail_body(transport="none"), "transport"),
        (mail_body(recipients=[]), "recipients"),
        (mail_body(ca_certificate="no certificate"), "ca_certificate"),
        (mail_body(unknown=1), "settings"),
        ({**mail_body(), "time_zone": "Mars/Olympus"}, "time_zone"),
        ({**mail_body(), "language": "tlh"}, "language"),
        ({**mail_body(), "quiet_start": "22:00"}, "quiet_end"),
        ({**mail_body(), "fallback": 4711}, "fallback"),
        ({"name": "x", "kind": "wecom", "secrets": {"url": "robot"}}, "url"),
        (
            {"name": "x", "kind": "webhook", "secrets": {"url": "https://x.example/", "signing_secret": "short"}},
            "signing_secret",
        ),
    ],
)
def test_what_cannot_work_is_refused_with_the_field_that_is_wrong(admin, body, field):
    answer = admin.post("/api/v1/channels/", body)
    assert answer.status_code == 400
    assert field in answer.content.decode()
    assert not Channel.objects.exists()


def test_a_webhooks_secret_is_made_and_shown_once_and_its_successor_signs_beside_it_for_a_day(admin):
    made = admin.post(
        "/api/v1/channels/", {"name": "hook", "kind": "webhook", "secrets": {"url": "https://x.example/h"}}
    )
    secret = made.json()["made_secrets"]["signing_secret"]
    pk = made.json()["id"]
    assert secret not in admin.get(f"/api/v1/channels/{pk}/").content.decode()
    again = admin.put(f"/api/v1/channels/{pk}/secrets/", {"secrets": {"signing_secret": ""}})
    assert again.json()["made_secrets"]["signing_secret"] != secret
    kept = json.loads(Channel.objects.get().secrets)
    assert kept["previous_secret"] == secret
    from datetime import datetime

    until = datetime.fromisoformat(Channel.objects.get().settings["previous_until"])
    assert timedelta(hours=23) < until - now() <= timedelta(hours=24)


def test_a_test_goes_the_way_that_all_go_and_tells_all_that_was_said(admin, settings):
    settings.EGRESS_ALLOW = ["127.0.0.0/8"]
    with fake.running_chats() as (chats, base):
        wecom = make_channel("wecom", kind="wecom", secrets=json.dumps(fake.secrets_of("wecom", base)))
        answer = admin.post(f"/api/v1/channels/{wecom.pk}/test/", {}).json()
        assert answer["outcome"] == "delivered"
        assert "wecom" in chats.got[0][1]["text"]["content"]
        assert "errcode" in answer["conversation"]
        assert fake.WECOM_KEY not in answer["conversation"]
        wecom.secrets = json.dumps({"url": f"{base}/cgi-bin/webhook/send?key=nobody-0123456789"})
        wecom.save()
        failed = admin.post(f"/api/v1/channels/{wecom.pk}/test/", {}).json()
    assert (failed["outcome"], failed["error_code"]) == ("refused", "93000")
    assert [row.status for row in Notification.objects.order_by("pk")] == ["delivered", "dead"]
    assert not Notification.objects.filter(status="dead", dismissed_at=None).exists()  # a test is no incident


def test_a_disabled_channel_is_told_nothing_and_what_was_queued_is_withheld(admin):
    channel = make_channel()
    announce(story(1, 1, "opening"), at=now())
    admin.post(f"/api/v1/channels/{channel.pk}/disable/")
    assert Notification.objects.get().status == "withheld"
    assert announce(story(2, 1, "opening"), at=now()) == 0
    admin.post(f"/api/v1/channels/{channel.pk}/enable/")
    assert announce(story(3, 1, "opening"), at=now()) == 1


def test_who_loses_a_receiver_is_named(admin):
    channel = make_channel()
    register_channel_users(lambda pk: ["P99 of chat"] if pk == channel.pk else [])
    try:
        assert admin.get(f"/api/v1/channels/{channel.pk}/").json()["used_by"] == ["P99 of chat"]
        admin.delete(f"/api/v1/channels/{channel.pk}/")
        assert AuditEntry.objects.get(action="channel.delete").after == {"lost_by": ["P99 of chat"]}
    finally:
        users_of_channels.pop()


def test_what_is_dead_can_be_sent_again_or_dismissed(admin, world):
    channel = make_channel()
    world.wire.answer = NEVER
    world.announce(story(1, 1, "opening"))
    world.dispatch()
    row = Notification.objects.get()
    listed = admin.get("/api/v1/notifications/?status=dead&is_dismissed=false").json()["results"]
    assert [each["id"] for each in listed] == [row.pk]
    attempts = admin.get(f"/api/v1/notifications/{row.pk}/attempts/").json()
    assert [each["outcome"] for each in attempts] == ["refused"]
    first = world.wire.messages[-1][1].message_id
    from tests.delivery.world import OK

    world.wire.answer = OK
    assert admin.post(f"/api/v1/notifications/{row.pk}/resend/").status_code == 202
    assert admin.post(f"/api/v1/notifications/{row.pk}/resend/").status_code == 409
    world.dispatch()
    row.refresh_from_db()
    assert row.status == "delivered"
    assert (
        world.wire.messages[-1][1].message_id != first
    )  # a person wants it to arrive, not to be taken for a duplicate
    assert admin.post(f"/api/v1/notifications/{row.pk}/dismiss/").status_code == 409
    assert admin.get(f"/api/v1/notifications/?channel={channel.pk}").json()["results"][0]["title"]


def test_a_recipient_can_take_themselves_off_and_only_a_post_does_it(client, settings):
    settings.IS_HTTPS, settings.PUBLIC_URL = True, "https://panel.example"
    channel = make_channel("mail", kind="mail", settings=mail_settings("a@example.com", "b@example.com"))
    path = stop_url(channel, "a@example.com").removeprefix("https://panel.example")
    assert stop_asked(path.split("/")[3]) == (channel.pk, "a@example.com")
    assert client.get(path).status_code == 200
    channel.refresh_from_db()
    assert len(channel.settings["recipients"]) == 2
    assert client.post(path, {"List-Unsubscribe": "One-Click"}).status_code == 200
    channel.refresh_from_db()
    assert [entry["address"] for entry in channel.settings["recipients"]] == ["b@example.com"]
    assert AuditEntry.objects.filter(action="channel.unsubscribe").exists()
    assert client.post(path[:-5] + "xxxx/").status_code == 404
    client.post(stop_url(channel, "b@example.com").removeprefix("https://panel.example"))
    channel.refresh_from_db()
    assert not channel.is_enabled
