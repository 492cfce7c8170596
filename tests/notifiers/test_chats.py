"""Chats and webhooks: signatures, sizes in bytes, harmless text, and errors that come with HTTP 200."""

import base64
import hashlib
import hmac
import json
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitoring.notifiers.base import SettingsRefused
from monitoring.notifiers.feishu import Feishu
from monitoring.notifiers.registry import NOTIFIERS
from monitoring.notifiers.text import cut_bytes, localise
from monitoring.notifiers.verdict import Answer
from monitoring.notifiers.webhook import new_signing_secret, signature
from tests.notifiers.samples import AT, HOSTILE, message, part

URL = "https://robot.example/hook/0123456789abcdef0123456789"
SECRETS = {"url": URL, "secret": "SEC0123456789"}


def built(kind, sent=None, settings=None, secrets=None):
    if kind == "webhook":
        secrets = secrets or {"url": URL, "signing_secret": "whsec_" + base64.b64encode(b"k" * 32).decode()}
    return NOTIFIERS[kind].build(sent or message(), settings or {}, secrets or SECRETS, at=AT)


def said(kind, body, status=200, **headers):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return NOTIFIERS[kind].interpret(Answer(status, body, headers))


def test_dingtalk_signs_its_address_with_milliseconds_and_the_secret_as_key():
    query = parse_qs(urlsplit(built("dingtalk").url).query)
    timestamp = str(int(AT.timestamp() * 1000))
    wanted = hmac.new(b"SEC0123456789", f"{timestamp}\nSEC0123456789".encode(), hashlib.sha256).digest()
    assert query["timestamp"] == [timestamp]
    assert base64.b64decode(query["sign"][0]) == wanted


def test_feishu_signs_in_the_body_with_seconds_and_an_empty_message():
    body = json.loads(built("feishu").body)
    wanted = hmac.new(f"{int(AT.timestamp())}\nSEC0123456789".encode(), b"", hashlib.sha256).digest()
    assert base64.b64decode(body["sign"]) == wanted
    assert body["timestamp"] == str(int(AT.timestamp()))
    assert "sign" not in json.loads(built("feishu", secrets={"url": URL}).body)


def test_a_webhook_is_signed_as_standard_webhooks_says():
    """The example of the specification's own library: id, time, body and secret that it publishes."""
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    got = signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert got == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_webhook_is_signed_with_both_secrets_while_receivers_change_over():
    old, new = new_signing_secret(), new_signing_secret()
    secrets = {"url": URL, "signing_secret": new, "previous_secret": old}
    until = (AT + timedelta(hours=1)).isoformat()
    request = built("webhook", settings={"previous_until": until}, secrets=secrets)
    message_id, timestamp = request.headers["webhook-id"], int(request.headers["webhook-timestamp"])
    assert request.headers["webhook-signature"].split(" ") == [
        signature(each, message_id, timestamp, request.body) for each in (new, old)
    ]
    over = built("webhook", settings={"previous_until": AT.isoformat()}, secrets=secrets)
    assert len(over.headers["webhook-signature"].split(" ")) == 1


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_c2hvcnQ=", "whsec_!!!", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"])
def test_a_signing_secret_that_signs_nothing_is_refused(secret):
    with pytest.raises(SettingsRefused) as refused:
        NOTIFIERS["webhook"].check({}, {"url": URL, "signing_secret": secret})
    assert refused.value.field == "signing_secret"


@pytest.mark.parametrize(
    "url", ["", "robot.example/x", "ftp://robot.example/x", "https://a@b/x", "https://x/ y", "https://[::1"]
)
@pytest.mark.parametrize("kind", NOTIFIERS)
def test_an_address_that_is_none_is_refused(kind, url):
    with pytest.raises(SettingsRefused):
        NOTIFIERS[kind].check({}, {**SECRETS, "url": url, "signing_secret": new_signing_secret()})


def test_the_id_of_a_webhook_is_the_same_for_every_try():
    first, second = built("webhook"), built("webhook", message(at=AT + timedelta(minutes=5)))
    assert first.headers["webhook-id"] == second.headers["webhook-id"] == "msg_episode-4711"


@pytest.mark.parametrize(
    ("kind", "limit"), [("dingtalk", 20_000), ("wecom", 4_096), ("feishu", 20_480), ("webhook", 20_000)]
)
def test_long_chinese_text_stays_within_the_limit_in_bytes_and_keeps_its_link(kind, limit):
    rows = tuple("算力" * 900 for _ in range(30))
    body = built(kind, message(part(rows=rows, line="模型很慢" * 400))).body
    assert len(body) <= limit
    json.loads(body)
    assert b"https://panel.example/alerts/4711/" in body


def test_wecom_text_has_at_most_2048_bytes_even_when_it_is_all_mentions():
    body = json.loads(built("wecom", message(part(line="@all " * 600))).body)
    assert len(body["text"]["content"].encode()) <= 2_048


@given(text=st.text(max_size=300), limit=st.integers(min_value=3, max_value=200))
def test_cutting_never_breaks_a_character_and_never_exceeds(text, limit):
    cut = cut_bytes(text, limit)
    assert len(cut.encode()) <= limit
    assert cut == text or cut.endswith("…")
    assert text.startswith(cut.removesuffix("…").rstrip()) or cut == text


@pytest.mark.parametrize("kind", NOTIFIERS)
def test_names_from_machines_call_nobody_and_make_no_links(kind):
    body = json.loads(built(kind, message(part(name=HOSTILE))).body)
    text = json.dumps(body, ensure_ascii=False)
    if kind in {"dingtalk", "wecom"}:
        assert body["msgtype"] == "text"
        assert "@all" not in text
        assert set(body) == {"msgtype", "text"}
    elif kind == "slack":
        assert "<!channel>" not in text
        assert "@all" not in text
        assert "<http://evil" not in text
    elif kind == "feishu":
        lines = body["content"]["post"]["en_us"]["content"]
        assert {element["tag"] for line in lines for element in line} == {"text", "a"}
        assert all(
            element["href"].startswith("https://panel.example/")
            for line in lines
            for element in line
            if "href" in element
        )


def test_a_robots_keyword_stands_in_every_message():
    for sent in (message(), message(part("resolved", 2, opening={}))):
        assert "监控" in json.loads(built("dingtalk", sent, {"keyword": "监控"}).body)["text"]["content"]
    assert "监控" in built("feishu", settings={"keyword": "监控"}).body.decode()


@pytest.mark.parametrize(
    ("kind", "body", "outcome"),
    [
        ("dingtalk", {"errcode": 0, "errmsg": "ok"}, "delivered"),
        ("dingtalk", {"errcode": 310000, "errmsg": "sign not match"}, "refused"),
        ("dingtalk", {"errcode": 130101, "errmsg": "send too fast"}, "retry"),
        ("dingtalk", {"errcode": 460101, "errmsg": "too long"}, "refused"),
        ("dingtalk", {"errcode": -1, "errmsg": "busy"}, "retry"),
        ("dingtalk", b"<html>login</html>", "retry"),
        ("wecom", {"errcode": 0, "errmsg": "ok"}, "delivered"),
        ("wecom", {"errcode": 40058, "errmsg": "markdown.content exceed max length 4096"}, "refused"),
        ("wecom", {"errcode": 45009, "errmsg": "api freq out of limit"}, "retry"),
        ("wecom", {"errcode": 93000, "errmsg": "invalid webhook url"}, "refused"),
        ("wecom", [], "retry"),
        ("feishu", {"code": 0, "msg": "success"}, "delivered"),
        ("feishu", {"StatusCode": 0, "StatusMessage": "success"}, "delivered"),
        ("feishu", {"code": 19021, "msg": "sign match fail"}, "refused"),
        ("feishu", {"code": 11232, "msg": "frequency limited"}, "retry"),
        ("feishu", {"code": 9499, "msg": "Bad Request"}, "refused"),
        ("feishu", {}, "retry"),
        ("slack", b"ok", "delivered"),
        ("slack", {"ok": False, "error": "x"}, "retry"),
        ("slack", b"<html>proxy log-in</html>", "retry"),
        ("webhook", b"", "delivered"),
    ],
)
def test_what_stands_in_an_answer_with_status_200_decides(kind, body, outcome):
    verdict = said(kind, body)
    assert verdict.outcome == outcome
    assert verdict.outcome == "delivered" or verdict.sentence


@pytest.mark.parametrize("kind", NOTIFIERS)
@pytest.mark.parametrize(("status", "outcome"), [(301, "refused"), (429, "retry"), (500, "retry"), (502, "retry")])
def test_other_statuses_are_tried_again_and_redirects_are_not_followed(kind, status, outcome):
    verdict = said(kind, b"{}", status, **{"Retry-After": "120"})
    assert verdict.outcome == outcome
    if outcome == "retry":
        assert verdict.retry_after_seconds == 120


def test_a_webhook_that_answers_410_ends():
    assert said("webhook", b"", 410).outcome == "gone"


def test_a_muted_robot_is_left_alone_for_ten_minutes():
    assert said("dingtalk", {"errcode": 130101}).retry_after_seconds == 600


def test_a_payload_that_is_too_large_loses_facts_first_and_counts_what_it_left_out():
    parts = [part(topic=f"episode:{number}", name="x" * 900) for number in range(40)]
    body = json.loads(built("webhook", message(*parts)).body)
    items = body["data"]["items"]
    assert 0 < len(items) < 40
    assert body["data"]["omitted"] == 40 - len(items)
    assert all(item["facts"] == {} for item in items)


def test_a_payload_says_what_kind_of_thing_happened_to_what():
    body = json.loads(built("webhook", message(part("resolved", 3, opening={}, p99_ms=1840))).body)
    assert body["type"] == "episode.resolved"
    item = body["data"]["items"][0]
    assert (item["topic"], item["seq"], item["subject_kind"], item["subject_id"]) == ("episode:4711", 3, "endpoint", 7)
    assert item["facts"] == {"p99_ms": 1840}


@given(text=st.text(max_size=200))
def test_localising_leaves_text_without_times_alone(text):
    from zoneinfo import ZoneInfo

    if "T" not in text:
        assert localise(text, ZoneInfo("Asia/Shanghai")) == text


def test_feishu_speaks_of_five_in_a_second():
    assert {(window.count, window.seconds) for window in Feishu().windows} == {(5, 1.0), (100, 60.0)}
