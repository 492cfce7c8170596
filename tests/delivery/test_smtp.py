"""Mail against a real SMTP server: both kinds of TLS, log-in, greylisting, refusals, silence; nothing secret is kept."""

import json
import time

import pytest

from monitoring.delivery import smtp
from monitoring.delivery.models import Notification, NotificationAttempt
from monitoring.notifiers import mail
from monitoring.notifiers.phrases import translated
from tests.delivery import smtp_server as server
from tests.delivery.world import START, World, make_channel, register, story
from tests.notifiers.samples import message


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    return server.certificate(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def _mailbox():
    return server.Mailbox()


@pytest.fixture
def mailbox(_mailbox):
    _mailbox.reset()
    return _mailbox


@pytest.fixture(scope="module")
def plain(_mailbox):
    with server.smtp_server(_mailbox) as port:
        yield port


@pytest.fixture(scope="module")
def starttls(_mailbox, paths):
    with server.smtp_server(_mailbox, transport="starttls", paths=paths, is_auth_required=True) as port:
        yield port


@pytest.fixture(scope="module")
def tls(_mailbox, paths):
    with server.smtp_server(_mailbox, transport="tls", paths=paths) as port:
        yield port


@pytest.fixture(autouse=True)
def _loopback(settings):
    settings.EGRESS_ALLOW = ["127.0.0.0/8", "::1/128"]


def configured(port, transport="none", paths=None, **more):
    return {
        "host": "localhost" if paths else "127.0.0.1", "port": port, "transport": transport, "sender": server.USER,
        "recipients": [{"address": "ada@example.com"}], "username": server.USER if paths else "",
        "ca_certificate": paths[0].read_text() if paths else "", **more,
    }  # fmt: skip


def sent(settings, password=""):
    return smtp.send(mail.build(message(), settings), settings, password)


def test_a_mail_arrives_whole_without_tls(mailbox, plain):
    verdict, said = sent(configured(plain))
    assert verdict.outcome == "delivered"
    assert mailbox.mails[0]["Message-ID"] == "<episode-4711@abcd2345.panel.example>"
    assert mailbox.mails[0]["To"] == "ada@example.com"
    assert "C: RCPT TO:<ada@example.com>" in said.upper().replace("ADA@EXAMPLE.COM", "ada@example.com")
    assert "S: 250 2.0.0 queued as 4711" in said


def test_a_mail_arrives_over_starttls_with_a_log_in_that_nobody_can_read_afterwards(mailbox, starttls, paths):
    verdict, said = sent(configured(starttls, "starttls", paths), server.PASSWORD)
    assert verdict.outcome == "delivered", said
    assert len(mailbox.mails) == 1
    assert "AUTH" in said
    assert server.PASSWORD not in said
    import base64

    assert base64.b64encode(server.PASSWORD.encode()).decode() not in said
    assert base64.b64encode(f"\0{server.USER}\0{server.PASSWORD}".encode()).decode() not in said


def test_a_mail_arrives_over_tls_from_the_first_byte(mailbox, tls, paths):
    verdict, said = sent(configured(tls, "tls", paths))
    assert verdict.outcome == "delivered", said


def test_a_wrong_password_is_refused_in_words_that_help(mailbox, starttls, paths):
    verdict, said = sent(configured(starttls, "starttls", paths), "the log-in password")
    assert (verdict.outcome, verdict.status_code) == ("refused", 535)
    assert "授权码" in verdict.sentence
    assert "the log-in password" not in said
    assert mailbox.mails == []


def test_a_certificate_of_nobody_known_is_refused(mailbox, tls, paths):
    verdict, _said = sent(configured(tls, "tls", paths, ca_certificate=""))
    assert (verdict.outcome, verdict.error_code) == ("refused", "certificate")


def test_a_certificate_for_another_name_is_refused(mailbox, tls, paths, monkeypatch):
    verdict, _said = sent(configured(tls, "tls", paths, host="127.0.0.1"))
    assert (verdict.outcome, verdict.error_code) == ("refused", "certificate")


def test_tls_where_there_is_none_is_named(mailbox, plain, paths):
    verdict, _said = sent(configured(plain, "tls", paths))
    assert (verdict.outcome, verdict.error_code) == ("refused", "tls")
    verdict, _said = sent(configured(plain, "starttls", paths))
    assert verdict.outcome == "refused"
    assert "465" in verdict.sentence


def test_refusals_of_sender_recipient_and_mail_are_told_apart(mailbox, plain):
    for phase, reply, word in (
        ("sender", "553 sender not owned", "sender"),
        ("recipient", "550 no such user", "recipient"),
        ("data", "554 spam", "the mail"),
    ):
        mailbox.reset()
        mailbox.answers = {phase: reply}
        verdict, said = sent(configured(plain))
        assert verdict.outcome == "refused"
        assert word in verdict.sentence
        assert reply in said


def test_a_server_that_is_not_there_is_tried_again(mailbox):
    from tests.waiting import free_port

    verdict, _said = sent(configured(free_port()))
    assert (verdict.outcome, verdict.error_code, verdict.is_uncertain) == ("retry", "connect", False)


@pytest.mark.parametrize(("phase", "is_uncertain"), [("hello", False), ("recipient", False), ("data", True)])
def test_a_server_that_never_answers_costs_a_bounded_time(mailbox, plain, monkeypatch, phase, is_uncertain):
    monkeypatch.setattr(smtp, "WHOLE_SECONDS", 0.7)
    mailbox.slow_at = phase
    began = time.monotonic()
    verdict, _said = sent(configured(plain))
    assert time.monotonic() - began < 10
    assert (verdict.outcome, verdict.error_code) == ("retry", "silent")
    assert verdict.is_uncertain is is_uncertain


def test_a_connection_that_breaks_after_the_mail_was_taken_leaves_it_uncertain(mailbox, plain):
    mailbox.drop_after_data = True
    verdict, _said = sent(configured(plain))
    assert (verdict.outcome, verdict.is_uncertain) == ("retry", True)
    assert len(mailbox.mails) == 1


def test_inside_addresses_are_refused_unless_allowed(mailbox, plain, settings):
    settings.EGRESS_ALLOW = []
    for host in ("127.0.0.1", "localhost", "169.254.169.254"):
        verdict, _said = sent(configured(plain, host=host))
        assert (verdict.outcome, verdict.error_code) == ("refused", "address_refused")
    assert mailbox.mails == []


@pytest.fixture
def world(time_machine, db, _loopback):
    register()
    time_machine.move_to(START, tick=False)
    return World(None, time_machine)


def mail_channel(port):
    return make_channel("mail", kind="mail", settings=configured(port), secrets=json.dumps({}))


def test_greylisting_delays_and_loses_nothing(mailbox, plain, world):
    mail_channel(plain)
    mailbox.greylist = True
    world.announce(story(1, 1, "opening"))
    world.run(minutes=1)
    world.announce(story(1, 2, "resolved"))
    world.run(minutes=1)
    opening, end = mailbox.mails
    assert [each.outcome for each in NotificationAttempt.objects.order_by("pk")] == ["retry", "delivered", "delivered"]
    assert "451" in translated(NotificationAttempt.objects.earliest("pk").sentence)
    assert end["References"] == opening["Message-ID"]
    assert end["Subject"] == f"Re: {opening['Subject']}"


def test_a_mail_of_which_the_answer_was_lost_comes_again_with_the_same_message_id(mailbox, plain, world):
    mail_channel(plain)
    mailbox.drop_after_data = True
    world.announce(story(1, 1, "opening"))
    world.dispatch()
    mailbox.drop_after_data = False
    world.announce(story(1, 2, "resolved"))
    world.run(minutes=2)
    ids = [each["Message-ID"] for each in mailbox.mails]
    assert len(ids) == 3
    assert ids[0] == ids[1] != ids[2]
    assert set(Notification.objects.values_list("status", flat=True)) == {"delivered"}
