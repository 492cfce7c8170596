"""Sessions: listed, ended one by one and all at once."""

import pytest
import time_machine
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.core.cache.backends.redis import RedisCache
from redis.exceptions import ConnectionError as ValkeyAway

from panel.accounts.audit import Actor
from panel.accounts.models import AuditEntry, LoginSession
from panel.accounts.selectors.users import session_list
from panel.accounts.services import sessions
from panel.core.errors import NotFound
from tests.accounts.people import PASSWORD, person, session_client

pytestmark = pytest.mark.django_db
ME = "/api/v1/users/me/"


@pytest.fixture
def vera(db):
    return person("vera")


def browsers(user, count):
    clients = [session_client(user) for _index in range(count)]
    for client in clients:
        assert client.get(ME).status_code == 200
    return clients


def test_a_session_is_listed_with_where_and_when(vera):
    client = session_client(vera)
    client.get(ME, REMOTE_ADDR="10.1.2.3", headers={"User-Agent": "Firefox\x00" + "x" * 400})
    (row,) = session_list(user_id=vera.pk)
    assert row.address == "10.1.2.3"
    assert row.user_agent.startswith("Firefoxx")
    assert len(row.user_agent) <= 300
    (shown,) = client.get("/api/v1/sessions/").json()["results"]
    assert shown["is_current"] is True
    assert row.session_key not in client.get("/api/v1/sessions/").content.decode()


def test_use_is_noted_once_a_minute(vera):
    with time_machine.travel("2026-01-01T00:00:00Z", tick=False) as clock:
        client = session_client(vera)
        client.get(ME)
        first = LoginSession.objects.get().last_seen_at
        clock.shift(30)
        client.get(ME)
        assert LoginSession.objects.get().last_seen_at == first
        cache.clear()  # a minute later, by Valkey's own clock
        clock.shift(31)
        client.get(ME)
        assert (LoginSession.objects.get().last_seen_at - first).total_seconds() == 61


def test_pages_are_served_while_valkey_is_away(vera, monkeypatch):
    def away(*_args, **_kwargs):
        raise ValkeyAway("refused")

    client = session_client(vera)
    monkeypatch.setattr(RedisCache, "add", away)
    assert client.get(ME).status_code == 200


def test_ending_one_session_leaves_the_others(vera):
    first, second = browsers(vera, 2)
    row = session_list(user_id=vera.pk).get(session_key=first.session.session_key)
    sessions.session_end(actor=Actor.from_user(vera), session_id=row.pk)
    assert first.get(ME).status_code == 401
    assert second.get(ME).status_code == 200
    assert AuditEntry.objects.get().action == "session.end"


def test_logging_out_everywhere_leaves_only_the_session_that_asks(vera):
    here, *elsewhere = browsers(vera, 3)
    other = browsers(person("oscar"), 1)[0]
    kept = here.session.session_key
    assert sessions.sessions_end_all(actor=Actor.from_user(vera), user=vera, except_key=kept) == 2
    assert here.get(ME).status_code == other.get(ME).status_code == 200
    assert [client.get(ME).status_code for client in elsewhere] == [401, 401]
    assert Session.objects.count() == 2


def test_nobody_ends_the_session_of_another_but_an_admin(vera):
    browsers(vera, 1)
    row = LoginSession.objects.get()
    with pytest.raises(NotFound):
        sessions.session_end(actor=Actor.from_user(person("oscar", "operator")), session_id=row.pk)
    sessions.session_end(actor=Actor.from_user(person("ada", "admin")), session_id=row.pk)
    assert not session_list(user_id=vera.pk).exists()


def test_changing_the_password_keeps_this_session_under_a_new_key_and_ends_the_others(vera):
    here, elsewhere = browsers(vera, 2)
    here.handler.enforce_csrf_checks = False
    old = here.session.session_key
    body = {"current_password": PASSWORD, "password": "another-long-one"}
    assert here.post("/api/v1/users/me/password/", body).status_code == 204
    assert here.session.session_key != old
    assert here.get(ME).status_code == 200
    assert elsewhere.get(ME).status_code == 401
    assert [row.session_key for row in session_list(user_id=vera.pk)] == [here.session.session_key]


def test_the_present_password_cannot_be_guessed_through_an_open_session(vera):
    client = session_client(vera, check_csrf=False)
    body = {"current_password": "wrong", "password": "another-long-one"}
    answers = [client.post("/api/v1/users/me/password/", body) for _attempt in range(11)]
    assert [answer.status_code for answer in answers] == [400] * 10 + [429]
    assert answers[0].json()["errors"][0]["attr"] == "current_password"
    assert int(answers[10]["Retry-After"]) > 0


def test_a_session_that_ran_out_is_not_listed(vera):
    browsers(vera, 1)
    Session.objects.update(expire_date="2020-01-01T00:00:00Z")
    assert not session_list(user_id=vera.pk).exists()
