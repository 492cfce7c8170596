"""Logging in: who may, how often, and that nothing tells which names exist."""

import time
from unittest import mock

import pytest
import time_machine
from django.contrib.auth.hashers import Argon2PasswordHasher
from django.test import Client
from redis.exceptions import ConnectionError as ValkeyAway

from panel.accounts.models import AuditEntry, LoginSession, User
from panel.accounts.services import login
from tests.accounts.people import PASSWORD, person

pytestmark = pytest.mark.django_db
LOGIN = "/login/"


@pytest.fixture
def vera(db):
    return person("vera")


def post(client, username="vera", password=PASSWORD, address="10.0.0.1", **more):
    return client.post(LOGIN, {"username": username, "password": password, **more}, REMOTE_ADDR=address)


def token(client, username="vera", password=PASSWORD, address="10.0.0.1", **more):
    body = {"username": username, "password": password, **more}
    return client.post("/api/v1/auth/token/", body, content_type="application/json", REMOTE_ADDR=address)


def test_the_right_password_logs_in_under_a_new_session_key(vera, client):
    client.get(LOGIN)
    session = client.session
    session["before"] = 1
    session.save()
    before = session.session_key
    answer = post(client)
    assert answer.status_code == 302
    assert answer["Location"] == "/"
    assert client.session.session_key != before
    row = LoginSession.objects.get()
    assert (row.user, row.address) == (vera, "10.0.0.1")
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.actor_name, entry.address) == ("auth.login", "vera", "10.0.0.1")


def test_names_are_known_whatever_their_case(vera, client):
    assert post(client, username="VERA").status_code == 302


@pytest.mark.parametrize("username", ["vera", "nobody"])
def test_a_wrong_name_looks_like_a_wrong_password(vera, username):
    page, api = post(Client(), username, "wrong"), token(Client(), username, "wrong")
    assert page.status_code == api.status_code == 401
    assert "Name or password is wrong." in page.content.decode()
    assert api.json()["errors"] == [{"code": "wrong_credentials", "detail": "Name or password is wrong.", "attr": None}]


@pytest.mark.parametrize("username", ["vera", "nobody", "gone"])
def test_every_refusal_costs_one_password_hash(username, settings, monkeypatch):
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
    person("vera")
    person("gone", is_active=False)
    hashes = []

    def count(method):
        original = getattr(Argon2PasswordHasher, method)

        def counted(self, *args, **kwargs):
            hashes.append(method)
            return original(self, *args, **kwargs)

        monkeypatch.setattr(Argon2PasswordHasher, method, counted)

    count("encode")
    count("verify")
    assert token(Client(), username, "wrong").status_code == 401
    assert len(hashes) == 1


def test_a_person_who_is_deactivated_cannot_log_in(client):
    person("gone", is_active=False)
    assert post(client, "gone").status_code == 401
    assert token(client, "gone").status_code == 401


@pytest.mark.parametrize("username", ["vera", "nobody"])
def test_ten_failures_close_the_door_for_that_name_and_address(vera, username):
    with time_machine.travel("2026-01-01T00:00:10Z", tick=False):
        for _attempt in range(10):
            assert token(Client(), username, "wrong").status_code == 401
        for attempt in (post, token):
            answer = attempt(Client(), username)
            assert answer.status_code == 429
            assert answer["Retry-After"] == "290"
        assert token(Client(), username, "wrong", address="10.0.0.2").status_code == 401
    with time_machine.travel("2026-01-01T00:05:01Z", tick=False):
        assert token(Client(), username, "wrong").status_code == 401


def test_one_address_cannot_try_many_names(vera):
    with time_machine.travel("2026-01-01T00:00:00Z", tick=False):
        for attempt in range(30):
            assert token(Client(), f"name{attempt}", "wrong").status_code == 401
        assert token(Client()).status_code == 429
        assert token(Client(), address="10.0.0.2").status_code == 200


def test_many_addresses_cannot_try_one_name_yet_its_owner_still_gets_in(vera):
    with time_machine.travel("2026-01-01T00:00:00Z", tick=False):
        assert token(Client(), address="192.0.2.1").status_code == 200
        for attempt in range(50):
            assert token(Client(), "vera", "wrong", address=f"10.0.1.{attempt}").status_code == 401
        assert token(Client(), address="10.0.2.1").status_code == 429
        assert token(Client(), address="192.0.2.1").status_code == 200


def test_success_is_not_counted_as_an_attempt(vera):
    with time_machine.travel("2026-01-01T00:00:00Z", tick=False):
        assert {token(Client()).status_code for _attempt in range(40)} == {200}


def test_nobody_gets_in_while_attempts_cannot_be_counted(vera, client):
    with mock.patch.object(login, "count_attempt", side_effect=ValkeyAway("refused")):
        assert post(client).status_code == 502
        assert token(client).json()["errors"][0]["code"] == "valkey_unavailable"
    assert not LoginSession.objects.exists()


def test_a_failure_is_recorded_without_what_was_typed(vera):
    token(Client(), "vera", "wr0ng-secret")
    token(Client(), "my-actual-passw0rd", "vera")
    known, unknown = AuditEntry.objects.order_by("id")
    assert (known.action, known.target_name, known.actor_kind) == ("auth.login_failed", "vera", "stranger")
    assert unknown.target_name == "(unknown name)"
    assert "passw0rd" not in str(list(AuditEntry.objects.values()))


@pytest.mark.parametrize(
    "target",
    ["https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)", "http:///evil.example"],
)
def test_logging_in_never_leads_elsewhere(vera, client, target):
    answer = client.post(f"{LOGIN}?next={target}", {"username": "vera", "password": PASSWORD, "next": target})
    assert answer["Location"] == "/"
    assert client.get(LOGIN, {"next": target})["Location"] == "/"


def test_logging_in_leads_back_to_where_one_wanted_to_go(vera, client):
    assert post(client, next="/servers/7/?range=1h")["Location"] == "/servers/7/?range=1h"


def test_the_log_in_form_needs_its_csrf_token(vera):
    client = Client(enforce_csrf_checks=True)
    assert post(client).status_code == 403
    assert not LoginSession.objects.exists()


def test_logging_out_is_a_post_that_ends_the_session(vera, client):
    post(client)
    assert client.get("/logout/").status_code == 405
    old = client.cookies["sessionid"].value
    assert client.post("/logout/")["Location"] == LOGIN
    client.cookies["sessionid"] = old
    assert client.get("/api/v1/users/me/").status_code == 401
    assert not LoginSession.objects.exists()
    assert list(AuditEntry.objects.order_by("id").values_list("action", flat=True)) == ["auth.login", "auth.logout"]


def test_old_log_in_tokens_make_room_for_new_ones(vera):
    with mock.patch.object(login, "LOG_IN_TOKENS_KEPT", 3):
        tokens = [token(Client()).json()["token"] for _attempt in range(5)]
    answers = [Client().get("/api/v1/users/me/", headers={"Authorization": f"Bearer {text}"}) for text in tokens]
    assert [answer.status_code for answer in answers] == [401, 401, 200, 200, 200]


def test_a_log_in_is_noted_whichever_way_it_came(vera):
    token(Client())
    first = User.objects.get(pk=vera.pk).last_login
    post(Client())
    assert first is not None
    assert User.objects.get(pk=vera.pk).last_login > first


def test_a_log_in_token_ends_after_a_day(vera):
    text = token(Client()).json()["token"]
    with time_machine.travel(time.time() + 86_401):
        assert Client().get("/api/v1/users/me/", headers={"Authorization": f"Bearer {text}"}).status_code == 401
