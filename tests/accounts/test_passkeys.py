"""Passkeys: added with the password, asked for after it, one challenge for one answer."""

import html
import json
import re

import pytest
import time_machine
from django.core.cache import cache
from django.test import Client

from panel.accounts.audit import Actor
from panel.accounts.models import AuditEntry, Passkey
from panel.accounts.services import two_factor
from panel.accounts.services.two_factor import second_factor_is_due
from tests.accounts.authenticator import SecurityKey
from tests.accounts.people import PASSWORD, person, session_client, token_client
from tests.accounts.test_two_factor import code_at

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _fresh_counts():
    cache.clear()


@pytest.fixture
def vera(db):
    return person("vera")


def register(client, key, name="work laptop", *, host="testserver"):
    start = client.post("/api/v1/passkeys/start/", {"password": PASSWORD}, HTTP_HOST=host)
    assert start.status_code == 200, start.content
    body = {"name": name, "credential": key.create(start.json()["options"])}
    return client.post("/api/v1/passkeys/", body, HTTP_HOST=host)


@pytest.fixture
def key(vera):
    """A key that vera has added."""
    made = SecurityKey()
    assert register(session_client(vera, check_csrf=False), made).status_code == 201
    return made


def password_step(client, **extra):
    answer = client.post("/login/", {"username": "vera", "password": PASSWORD, "next": "/fleet/"}, **extra)
    found = re.search(r'data-options="([^"]+)"', answer.content.decode())
    return answer, json.loads(html.unescape(found[1])) if found else None


def passkey_step(client, credential):
    return client.post("/login/", {"passkey": json.dumps(credential), "next": "/fleet/"})


def test_a_passkey_is_added_with_the_password_and_never_shown(vera, key):
    row = Passkey.objects.get()
    client = session_client(vera)
    listed = client.get("/api/v1/passkeys/").json()["results"]
    assert [(item["name"], item["rp_id"], item["last_used_at"]) for item in listed] == [
        ("work laptop", "testserver", None)
    ]
    assert set(listed[0]) == {"id", "name", "rp_id", "created_at", "last_used_at"}
    assert bytes(row.credential_id) == key.id
    wrong = client.post("/api/v1/passkeys/start/", {"password": "wrong"})
    assert wrong.status_code in (400, 403)
    assert second_factor_is_due(vera)
    actions = AuditEntry.objects.filter(action__startswith="user.passkey").order_by("id")
    assert list(actions.values_list("action", flat=True)) == ["user.passkey_start", "user.passkey_add"]


def test_logging_in_takes_the_passkey_after_the_password(key, client):
    asked, options = password_step(client)
    assert asked.status_code == 200
    assert 'name="code"' not in asked.content.decode()
    assert options["userVerification"] == "required"
    assert key.knows(options)
    assert client.get("/api/v1/users/me/").status_code == 401
    done = passkey_step(client, key.get(options))
    assert (done.status_code, done["Location"]) == (302, "/fleet/")
    assert client.get("/api/v1/users/me/").status_code == 200
    row = Passkey.objects.get()
    assert row.sign_count == 1
    assert row.last_used_at is not None


def test_an_answer_is_taken_once(key, client):
    _asked, options = password_step(client)
    answer = key.get(options)
    assert passkey_step(client, answer).status_code == 302
    client.post("/logout/")
    _asked, _options = password_step(client)
    again = passkey_step(client, answer)
    assert again.status_code == 401
    assert AuditEntry.objects.get(action="auth.login_failed").after == {"step": "passkey"}


def test_an_answer_belongs_to_the_session_that_asked(key, client):
    _asked, options = password_step(client)
    elsewhere = Client()
    password_step(elsewhere)
    assert passkey_step(elsewhere, key.get(options)).status_code == 401


def test_a_counter_that_goes_back_means_a_copy(key, client):
    Passkey.objects.update(sign_count=7)
    _asked, options = password_step(client)
    refused = passkey_step(client, key.get(options))
    assert refused.status_code == 401
    assert Passkey.objects.get().sign_count == 7
    key.counter = 7
    _asked, options = password_step(client)
    assert passkey_step(client, key.get(options)).status_code == 302


@pytest.mark.parametrize(
    "fault", ["another key", "no finger", "another site", "another person", "no json", "no answer"]
)
def test_what_is_no_answer_of_that_key_is_refused(vera, key, client, fault):
    _asked, options = password_step(client)
    if fault == "another key":
        other = SecurityKey()
        other.id = key.id
        credential = other.get(options)
    elif fault == "no finger":
        key.is_verifying = False
        credential = key.get(options)
    elif fault == "another site":
        key.origin = "https://panel.example.evil"
        credential = key.get(options)
    elif fault == "another person":
        theirs = SecurityKey()
        register(session_client(person("otto"), check_csrf=False), theirs)
        credential = theirs.get(options)
    elif fault == "no json":
        assert client.post("/login/", {"passkey": "{"}).status_code == 401
        return
    else:
        credential = {"id": "AA", "rawId": "AA", "type": "public-key", "response": {"clientDataJSON": 7}}
    assert passkey_step(client, credential).status_code == 401
    assert client.get("/api/v1/users/me/").status_code == 401


def test_answers_cannot_be_tried_without_end(key, client):
    for _attempt in range(8):
        _asked, options = password_step(client)
        stranger = SecurityKey()
        stranger.id = key.id
        assert passkey_step(client, stranger.get(options)).status_code == 401
    _asked, options = password_step(client)
    assert passkey_step(client, key.get(options)).status_code == 429


def test_the_second_step_needs_the_first(key, client):
    client.get("/login/")
    assert passkey_step(client, {}).status_code == 401


def test_a_password_alone_gives_no_token_to_somebody_with_a_passkey(key):
    body = {"username": "vera", "password": PASSWORD}
    answer = Client().post("/api/v1/auth/token/", body, content_type="application/json")
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (401, "passkey_required")


def test_a_challenge_that_is_gone_is_said_to_be_too_old(vera):
    client, made = session_client(vera, check_csrf=False), SecurityKey()
    options = client.post("/api/v1/passkeys/start/", {"password": PASSWORD}).json()["options"]
    cache.clear()
    late = client.post("/api/v1/passkeys/", {"name": "late", "credential": made.create(options)})
    assert (late.status_code, late.json()["errors"][0]["code"]) == (400, "challenge_expired")


@pytest.mark.parametrize("fault", ["no finger", "another site", "twice", "nonsense"])
def test_what_cannot_be_a_new_passkey_is_refused(vera, key, fault):
    client, made = session_client(vera, check_csrf=False), SecurityKey()
    if fault == "no finger":
        made.is_verifying = False
    elif fault == "another site":
        made.origin = "http://elsewhere"
    elif fault == "twice":
        made = key
    elif fault == "nonsense":
        client.post("/api/v1/passkeys/start/", {"password": PASSWORD})
        answer = client.post("/api/v1/passkeys/", {"name": "x", "credential": {"id": 5}})
        assert answer.status_code == 400
        return
    assert register(client, made).status_code == (409 if fault == "twice" else 400)
    assert Passkey.objects.count() == 1


def test_a_key_known_here_is_excluded_from_the_next(vera, key):
    options = session_client(vera, check_csrf=False).post("/api/v1/passkeys/start/", {"password": PASSWORD}).json()
    assert [entry["type"] for entry in options["options"]["excludeCredentials"]] == ["public-key"]
    assert options["options"]["authenticatorSelection"]["userVerification"] == "required"
    assert options["options"]["attestation"] == "none"


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "[::1]:8000"])
def test_an_address_of_numbers_has_no_passkeys(vera, host, settings):
    settings.ALLOWED_HOSTS = ["*"]
    answer = token_client(vera).post("/api/v1/passkeys/start/", {"password": PASSWORD}, HTTP_HOST=host)
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (400, "no_host_name")


def test_a_passkey_of_another_name_of_the_panel_does_not_fit(vera, settings, client):
    settings.ALLOWED_HOSTS = ["*"]
    made = SecurityKey("http://panel.example")
    assert register(session_client(vera, check_csrf=False), made, host="panel.example").status_code == 201
    asked, options = password_step(client)
    assert options is None
    assert "another address" in asked.content.decode()
    _asked, options = password_step(Client(), HTTP_HOST="panel.example")
    assert options["rpId"] == "panel.example"


def test_renaming_and_removing(vera, key):
    client, row = token_client(vera), Passkey.objects.get()
    assert client.patch(f"/api/v1/passkeys/{row.pk}/", {"name": "key ring"}).json()["name"] == "key ring"
    assert client.patch(f"/api/v1/passkeys/{row.pk}/", {"name": " "}).status_code == 400
    stranger = token_client(person("otto"))
    assert stranger.patch(f"/api/v1/passkeys/{row.pk}/", {"name": "mine"}).status_code == 404
    assert stranger.post(f"/api/v1/passkeys/{row.pk}/remove/", {"password": PASSWORD}).status_code == 404
    assert client.post(f"/api/v1/passkeys/{row.pk}/remove/", {"password": "wrong"}).status_code == 400
    assert client.post(f"/api/v1/passkeys/{row.pk}/remove/", {"password": PASSWORD}).status_code == 204
    assert not second_factor_is_due(vera)
    changes = AuditEntry.objects.filter(action__in=["user.passkey_rename", "user.passkey_remove"]).order_by("id")
    assert [(entry.before, entry.after) for entry in changes] == [
        ({"name": "work laptop"}, {"name": "key ring"}),
        ({"name": "key ring"}, None),
    ]


def test_an_admin_takes_a_lost_passkey_away(vera, key):
    assert token_client(person("ada", "admin")).post(f"/api/v1/users/{vera.pk}/reset-two-factor/").status_code == 204
    assert not second_factor_is_due(vera)
    assert AuditEntry.objects.get(action="user.passkey_remove").actor_name == "test of ada"


def test_the_pages_list_rename_and_remove(vera, key):
    client, row = session_client(vera, check_csrf=False), Passkey.objects.get()
    page = client.get("/settings/second-factor/")
    assert "work laptop" in page.content.decode()
    one = f"/settings/passkeys/{row.pk}/"
    assert client.get(one).status_code == 200
    assert client.post(f"{one}rename/", {"name": "ring"}, format="multipart").status_code == 302
    assert client.post(f"{one}rename/", {"name": ""}, format="multipart").status_code == 400
    wrong = client.post(f"{one}remove/", {"password": "wrong"}, format="multipart")
    assert wrong.status_code == 400
    assert session_client(person("otto")).get(one).status_code == 404
    assert client.post(f"{one}remove/", {"password": PASSWORD}, format="multipart").status_code == 302
    assert not Passkey.objects.exists()


def test_the_app_still_opens_beside_a_passkey(vera, key, client):
    noon = 1_767_268_800
    with time_machine.travel(noon, tick=False) as clock:
        secret = two_factor.two_factor_start(actor=Actor.from_user(vera), user=vera).secret
        two_factor.two_factor_confirm(actor=Actor.from_user(vera), user=vera, code=code_at(secret, noon))
        clock.shift(60)
        asked, options = password_step(client)
        assert options is not None
        assert 'name="code"' in asked.content.decode()
        assert client.post("/login/", {"code": code_at(secret, noon + 60)}).status_code == 302
