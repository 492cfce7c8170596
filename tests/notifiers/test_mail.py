"""Mails as bytes: headers that thread, the same facts in text and HTML, nothing injected, both languages."""

from email import message_from_bytes
from email.policy import default

import pytest

from monitoring.notifiers import mail
from monitoring.notifiers.base import SettingsRefused
from monitoring.notifiers.phrases import Phrase, stored, translated
from tests.notifiers.samples import HOSTILE, message, part

SETTINGS = {
    "host": "smtp.example.com", "port": 465, "transport": "tls", "username": "panel@example.com",
    "sender": "panel@example.com", "sender_name": "Fleetdeck 机群", "recipients": [{"address": "ada@example.com"}],
}  # fmt: skip


def parsed(*parts, **context):
    return message_from_bytes(mail.build(message(*parts, **context), SETTINGS).as_bytes(), policy=default)


def bodies(found):
    return [found.get_body((kind,)).get_content() for kind in ("plain", "html")]


def test_a_follow_up_answers_the_opening_and_repeats_its_subject():
    opening = parsed(part(p99="1.84 s"))
    root = opening["Message-ID"]
    end = parsed(part("resolved", 3, opening={"p99": "1.84 s"}, p99="0.4 s"), root_id=root)
    assert root == "<episode-4711@abcd2345.panel.example>"
    assert opening["In-Reply-To"] is None
    assert end["Message-ID"] == "<episode-4711.3@abcd2345.panel.example>"
    assert end["In-Reply-To"] == end["References"] == root
    assert opening["Subject"] == "Critical llama P99 1.84 s > 1.00 s #4711"
    assert end["Subject"] == "Re: " + opening["Subject"]


def test_a_mail_says_that_no_person_wrote_it_and_how_to_stop_it():
    found = parsed(stop_url="https://panel.example/mail/stop/abc/")
    assert found["Auto-Submitted"] == "auto-generated"
    assert found["X-Auto-Response-Suppress"] == "All"
    assert found["List-Unsubscribe"] == "<https://panel.example/mail/stop/abc/>"
    assert found["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert "abcd2345" in found["List-ID"]


def test_text_comes_first_and_both_hold_the_same_facts_in_the_recipients_zone():
    found = parsed(part(rows=("60 samples", "9 of 60 over")))
    assert [each.get_content_type() for each in found.iter_parts()] == ["text/plain", "text/html"]
    for body in bodies(found):
        for fact in ("2026-03-10 22:02:31 +08:00", "60 samples", "9 of 60 over", "https://panel.example/alerts/4711/"):
            assert fact in body
    assert "<img" not in bodies(found)[1]
    assert "src=" not in bodies(found)[1]


def test_names_inject_neither_headers_nor_markup():
    found = parsed(part(name=HOSTILE))
    assert found["Bcc"] is None
    assert "\n" not in found["Subject"]
    assert "<b>" not in bodies(found)[1]
    assert "[" not in found["Subject"]


def test_a_chinese_recipient_reads_chinese():
    found = parsed(part("resolved", 2, opening={}), language="zh-hans")
    assert found["Content-Language"] == "zh-CN"
    assert "已恢复" in bodies(found)[0]
    assert found["Subject"].startswith("Re: ")


def test_a_mail_survives_every_name_that_a_label_can_have():
    for name in ("模型" * 200, "\u202egnp.exe", "a" * 900, "\x00\x1b[31m", "𝕏" * 50):
        raw = mail.build(message(part(name=name)), SETTINGS).as_bytes()
        assert max(len(line) for line in raw.split(b"\r\n")) <= 998
        assert message_from_bytes(raw, policy=default)["Message-ID"].startswith("<episode-4711@")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"host": "smtp example"}, "host"),
        ({"host": ""}, "host"),
        ({"port": 0}, "port"),
        ({"port": "465"}, "port"),
        ({"transport": "ssl"}, "transport"),
        ({"transport": "none"}, "transport"),
        ({"username": ""}, "username"),
        ({"sender": "panel"}, "sender"),
        ({"recipients": []}, "recipients"),
        ({"recipients": [{"address": "a@b\r\nBcc: c@d"}]}, "recipients"),
        ({"recipients": [{"address": f"a{n}@example.com"} for n in range(51)]}, "recipients"),
    ],
)
def test_settings_that_cannot_work_are_refused_by_name(change, field):
    with pytest.raises(SettingsRefused) as refused:
        mail.check({**SETTINGS, **change}, {"password": "secret"})
    assert refused.value.field == field
    assert refused.value.sentence


def test_settings_that_work_are_taken():
    mail.check(SETTINGS, {"password": "secret"})


@pytest.mark.parametrize(
    ("code", "phase", "outcome"),
    [
        (250, "data", "delivered"), (451, "recipient", "retry"), (421, "connect", "retry"), (550, "recipient", "refused"),
        (553, "sender", "refused"), (535, "auth", "refused"), (454, "auth", "retry"), (554, "data", "refused"),
        (354, "data", "retry"),
    ],
)  # fmt: skip
def test_a_reply_means_later_or_never(code, phase, outcome):
    verdict = mail.interpret(code, "said", phase=phase)
    assert verdict.outcome == outcome


def test_a_refused_log_in_names_the_authorisation_code():
    assert "授权码" in mail.interpret(535, "Error: authentication failed", phase="auth").sentence


def test_a_kept_sentence_is_told_in_the_readers_language():
    from django.utils.translation import override

    kept = stored(Phrase("It answered with HTTP %(code)s.", {"code": 503}))
    assert translated(kept) == "It answered with HTTP 503."
    with override("zh-hans"):
        assert "503" in translated(kept)
    assert translated("plain words") == "plain words"
    assert translated('{"t": broken') == '{"t": broken'
