"""API keys at a gateway: who is let in, how fast a change holds, how often a key may ask, and what lies on the disk."""

import hashlib
import itertools
import os
import re
import time

import pytest

from fleet.agent.gateway.envoy.keyfiles import line_of, write_keys
from fleet.agent.gateway.envoy.layout import prepare
from fleet.agent.orders import KeyRule
from tests.agent.gateway.place import KEY, chat, rule
from tests.waiting import eventually

pytestmark = pytest.mark.e2e

KEYS = itertools.count(1)


def new_key():
    """A key that no other test has used: workers remember for a second what a key may do."""
    return f"fdk_{next(KEYS):08d}_{os.urandom(16).hex()}"


@pytest.fixture(scope="module")
def served(place, replicas):
    one, two = replicas
    place.say(chat("chat", one.upstream(1), two.upstream(2)), chat("images", one.upstream(1)), keys=[rule(1)])
    holds(place, KEY, 200)
    return place


def said(response):
    return response.status_code, response.json()["error"]["code"]


def holds(served, key, status, path="/chat/echo"):
    """Wait until every worker answers a key like this; returns an answer."""
    answers = eventually(
        lambda: [served.get(path, key=key) for _ in range(8)],
        lambda answers: {answer.status_code for answer in answers} == {status},
        seconds=6,
    )
    return answers[-1]


def test_no_key_a_wrong_one_and_one_that_is_too_long_are_refused(served):
    assert said(served.get("/chat/echo", key=None)) == (401, "missing_api_key")
    assert said(served.get("/chat/echo", key="fdk_wrong")) == (401, "invalid_api_key")
    assert said(served.get("/chat/echo", key="fdk_" + "x" * 5_000)) == (401, "missing_api_key")
    assert said(served.get("/chat/echo", key=None, headers={"authorization": f"Basic {KEY}"})) == (
        401,
        "missing_api_key",
    )
    assert served.get("/chat/echo", key=None, headers={"authorization": f"bearer {KEY}"}).status_code == 200


def test_the_filters_digest_is_sha_256_for_keys_of_every_length(served):
    keys = [f"{new_key()}{'k' * length}" for length in (0, 5, 6, 7, 8, 9, 13, 14, 15, 70, 71, 72, 130, 200)]
    served.say(keys=[rule(1), *(rule(100 + number, key) for number, key in enumerate(keys))])
    for key in keys:
        holds(served, key, 200)


def test_a_new_key_is_taken_and_a_revoked_one_refused_within_seconds(served):
    key = new_key()
    served.say(keys=[rule(1), rule(2, key)])
    holds(served, key, 200)
    served.say(keys=[rule(1)])
    assert said(holds(served, key, 401)) == (401, "invalid_api_key")
    assert served.get("/chat/echo").status_code == 200


def test_a_key_is_for_its_endpoints_and_its_time(served):
    scoped, old = new_key(), new_key()
    over = time.time_ns() // 1_000_000 - 1_000
    served.say(keys=[rule(1), rule(2, scoped, endpoints=["images"]), rule(3, old, expires_at_ms=over)])
    assert said(holds(served, scoped, 403)) == (403, "key_not_for_endpoint")
    assert served.get("/images/echo", key=scoped).status_code == 200
    eventually(lambda: said(holds(served, old, 401))[1], lambda code: code == "expired_api_key", seconds=5)


def test_a_key_over_its_tokens_is_told_to_wait_until_the_panel_says_otherwise(served):
    key = new_key()
    served.say(keys=[rule(1), rule(2, key, is_held=True)])
    held = holds(served, key, 429)
    assert said(held) == (429, "tokens_per_minute")
    assert int(held.headers["retry-after"]) > 0
    served.say(keys=[rule(1), rule(2, key)])
    holds(served, key, 200)


def test_requests_per_minute_are_counted_for_each_key_over_all_workers(served):
    seven, three, free = new_key(), new_key(), new_key()
    limited = {seven: 7, three: 3, free: None}
    served.say(
        keys=[
            rule(1),
            *(
                rule(200 + number, key, endpoints=["chat"], requests_per_minute=limit)
                for number, (key, limit) in enumerate(limited.items())
            ),
        ]
    )
    for key in limited:
        holds(served, key, 403, "/images/echo")  # known to every worker; a refusal costs nothing of the minute
    answers = [served.get("/chat/echo", key=seven) for _ in range(12)]
    assert [answer.status_code for answer in answers] == [200] * 7 + [429] * 5
    assert said(answers[-1]) == (429, "requests_per_minute")
    assert answers[-1].headers["retry-after"] == "9"  # 60 s / 7, rounded up
    assert [served.get("/chat/echo", key=three).status_code for _ in range(5)] == [200] * 3 + [429] * 2
    assert {served.get("/chat/echo", key=free).status_code for _ in range(30)} == {200}


def test_no_key_lies_on_the_gateways_disk(served):
    digest = hashlib.sha256(KEY.encode()).hexdigest()
    files = [path for path in served.folder.rglob("*") if path.is_file()]
    assert any(digest in path.read_text(errors="replace") for path in files)
    for path in files:
        text = path.read_bytes()
        assert KEY.encode() not in text, path
        assert path.stat().st_mode & 0o077 == 0 or path.suffix in {".log", ".sock"}, path


def test_ten_thousand_keys_lie_in_small_files_and_one_change_touches_one(tmp_path):
    prepare(tmp_path)
    rules = [KeyRule(number, hashlib.sha256(str(number).encode()).hexdigest()) for number in range(10_000)]
    assert write_keys(tmp_path, rules) > 0
    assert write_keys(tmp_path, rules) == 0
    largest = max(path.stat().st_size for path in (tmp_path / "keys").iterdir())
    rules[17].is_held = True
    assert 0 < write_keys(tmp_path, rules) <= largest < 20_000
    write_keys(tmp_path, rules[:1])
    assert [path.name for path in (tmp_path / "keys").iterdir()] == [rules[0].digest[:2]]


def test_what_is_no_digest_or_no_name_becomes_no_line(tmp_path):
    prepare(tmp_path)
    digest = "ab" * 32
    bad = [KeyRule(1, "../../etc"), KeyRule(2, digest.upper()), KeyRule(3, digest, endpoints=["a\nb"])]
    assert write_keys(tmp_path, bad) == 0
    assert re.fullmatch(rf"{digest} 4 1 1 0 ,a,b,\n", line_of(KeyRule(4, digest, ["a", "b"], 0, 0)))
