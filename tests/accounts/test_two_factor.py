"""The second factor: set up with the password, asked for at every log-in, each code good for once."""

import time

import pytest
import time_machine
from django.db import connection
from django.test import Client

from panel.accounts.audit import Actor
from panel.accounts.models import AuditEntry, TwoFactor
from panel.accounts.services import two_factor
from panel.core.errors import Conflict, InvalidInput, NotAuthenticated, RateLimited
from tests.accounts.people import PASSWORD, person, token_client

pytestmark = pytest.mark.django_db
NOON = 1_767_268_800


def code_at(secret, seconds):
    return two_factor._totp(secret).generate(int(seconds)).decode()


@pytest.fixture
def clock():
    with time_machine.travel(NOON, tick=False) as moved:
        yield moved


@pytest.fixture
def vera(db):
    return person("vera")


@pytest.fixture
def enrolled(vera, clock):
    """Return the secret and the recovery codes of vera, whose second factor is on; a minute later."""
    secret = two_factor.two_factor_start(actor=Actor.from_user(vera), user=vera).secret
    codes = two_factor.two_factor_confirm(actor=Actor.from_user(vera), user=vera, code=code_at(secret, NOON))
    clock.shift(60)
    return secret, codes


def test_the_codes_are_those_of_rfc_6238():
    secret = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"  # "12345678901234567890", appendix B, last six digits
    assert [code_at(secret, at) for at in (59, 1111111109, 2000000000)] == ["287082", "081804", "279037"]


def test_it_counts_only_once_a_first_code_was_right(vera, clock):
    enrolment = two_factor.two_factor_start(actor=Actor.from_user(vera), user=vera)
    assert enrolment.uri.startswith("otpauth://totp/Fleetdeck:vera?")
    with pytest.raises(InvalidInput):
        two_factor.two_factor_confirm(actor=Actor.from_user(vera), user=vera, code="000000")
    assert not two_factor.two_factor_is_on(vera)
    two_factor.two_factor_check(user=vera, code="")


def test_the_secret_is_encrypted_in_the_database_and_in_no_repr(vera):
    enrolment = two_factor.two_factor_start(actor=Actor.from_user(vera), user=vera)
    with connection.cursor() as cursor:
        cursor.execute("SELECT secret FROM accounts_twofactor")
        stored = cursor.fetchone()[0]
    assert stored.startswith("fd1:")
    assert enrolment.secret not in stored
    assert enrolment.secret not in repr(enrolment)
    assert TwoFactor.objects.get().secret == enrolment.secret


@pytest.mark.parametrize(("drift", "is_taken"), [(-60, False), (-30, True), (0, True), (30, True), (60, False)])
def test_a_phone_may_be_half_a_minute_off(vera, enrolled, drift, is_taken):
    code = code_at(enrolled[0], time.time() + drift)
    if is_taken:
        two_factor.two_factor_check(user=vera, code=f"{code[:3]} {code[3:]}")
    else:
        with pytest.raises(NotAuthenticated, match="wrong"):
            two_factor.two_factor_check(user=vera, code=code)


def test_a_code_is_taken_once_and_an_older_one_never_after_it(vera, enrolled, clock):
    secret, _codes = enrolled
    older, code = code_at(secret, time.time() - 30), code_at(secret, time.time())
    two_factor.two_factor_check(user=vera, code=code)
    for used in (code, older):
        with pytest.raises(NotAuthenticated):
            two_factor.two_factor_check(user=vera, code=used)


def test_a_recovery_code_lets_in_once(vera, enrolled):
    _secret, codes = enrolled
    two_factor.two_factor_check(user=vera, code=f" {codes[3].upper()} ")
    with pytest.raises(NotAuthenticated):
        two_factor.two_factor_check(user=vera, code=codes[3])
    assert len(set(codes)) == 10
    assert not any(code in str(TwoFactor.objects.values()) for code in codes)


def test_codes_cannot_be_guessed(vera, enrolled):
    for _attempt in range(7):  # the confirmation was the first try
        with pytest.raises(NotAuthenticated):
            two_factor.two_factor_check(user=vera, code="000000")
    with pytest.raises(RateLimited):
        two_factor.two_factor_check(user=vera, code=code_at(enrolled[0], time.time()))


def test_a_second_one_is_refused_while_one_is_on(vera, enrolled):
    with pytest.raises(Conflict):
        two_factor.two_factor_start(actor=Actor.from_user(vera), user=vera)
    with pytest.raises(Conflict):
        two_factor.two_factor_confirm(actor=Actor.from_user(vera), user=vera, code="000000")


def test_the_page_asks_for_the_code_after_the_password(vera, enrolled, client):
    asked = client.post("/login/", {"username": "vera", "password": PASSWORD, "next": "/fleet/"})
    assert asked.status_code == 200
    assert 'name="code"' in asked.content.decode()
    assert client.get("/api/v1/users/me/").status_code == 401
    wrong = client.post("/login/", {"code": "000000", "next": "/fleet/"})
    assert wrong.status_code == 401
    assert 'name="code"' in wrong.content.decode()
    right = client.post("/login/", {"code": code_at(enrolled[0], time.time()), "next": "/fleet/"})
    assert (right.status_code, right["Location"]) == (302, "/fleet/")
    assert client.get("/api/v1/users/me/").status_code == 200
    failed = AuditEntry.objects.get(action="auth.login_failed")
    assert (failed.target_name, failed.after) == ("vera", {"step": "second factor"})


def test_the_code_step_needs_the_password_step_of_the_last_five_minutes(vera, enrolled, client, clock):
    code = code_at(enrolled[0], time.time())
    assert client.post("/login/", {"code": code}).status_code == 401
    client.post("/login/", {"username": "vera", "password": PASSWORD})
    clock.shift(301)
    late = client.post("/login/", {"code": code_at(enrolled[0], time.time())})
    assert late.status_code == 401
    assert 'name="password"' in late.content.decode()


def test_the_api_gives_a_token_only_with_the_code(vera, enrolled):
    body = {"username": "vera", "password": PASSWORD}
    answer = Client().post("/api/v1/auth/token/", body, content_type="application/json")
    assert answer.json()["errors"][0]["code"] == "code_required"
    body["code"] = code_at(enrolled[0], time.time())
    assert Client().post("/api/v1/auth/token/", body, content_type="application/json").status_code == 200


def test_the_api_switches_it_on_and_off_with_the_password(vera, clock):
    client = token_client(vera)
    assert client.post("/api/v1/two-factor/start/", {"password": "wrong"}).status_code == 400
    secret = client.post("/api/v1/two-factor/start/", {"password": PASSWORD}).json()["secret"]
    confirmed = client.post("/api/v1/two-factor/confirm/", {"code": code_at(secret, NOON)})
    assert len(confirmed.json()["recovery_codes"]) == 10
    assert client.get("/api/v1/two-factor/").json() == {"is_on": True, "recovery_codes_left": 10}
    assert client.post("/api/v1/two-factor/disable/", {"password": "wrong"}).status_code == 400
    assert client.post("/api/v1/two-factor/disable/", {"password": PASSWORD}).status_code == 204
    assert client.get("/api/v1/two-factor/").json() == {"is_on": False, "recovery_codes_left": 0}
    assert list(AuditEntry.objects.order_by("id").values_list("action", flat=True)) == [
        "user.two_factor_start",
        "user.two_factor_on",
        "user.two_factor_off",
    ]


def test_an_admin_helps_somebody_who_lost_the_phone(vera, enrolled):
    admin = token_client(person("ada", "admin"))
    assert (
        token_client(person("oscar", "operator")).post(f"/api/v1/users/{vera.pk}/reset-two-factor/").status_code == 403
    )
    assert admin.post(f"/api/v1/users/{vera.pk}/reset-two-factor/").status_code == 204
    assert not two_factor.two_factor_is_on(vera)
