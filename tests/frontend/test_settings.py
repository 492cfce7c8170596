"""Settings: one's own, users, tokens, sessions, second factor."""

import base64
import re
import time
from datetime import timedelta

import pytest
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from django.test import Client

from panel.accounts.models import ApiToken, AuditEntry, LoginSession, User
from panel.accounts.services.tokens import token_authenticate
from panel.core.clock import now
from tests.accounts.people import PASSWORD
from tests.frontend.html import Page


def text_of(answer):
    return answer.content.decode()


def test_preferences_are_stored_and_the_answer_speaks_the_new_language(ada, people):
    wanted = {"language": "en", "time_zone": "Asia/Shanghai", "theme": "dark"}  # no has_shortcuts: switched off
    answer = ada.post("/settings/", wanted, follow=True)
    people["admin"].refresh_from_db()
    assert (people["admin"].time_zone, people["admin"].theme, people["admin"].has_shortcuts) == (
        "Asia/Shanghai",
        "dark",
        False,
    )
    assert "Saved." in text_of(answer)
    assert "data-shortcuts" not in text_of(answer)


def test_a_zone_that_does_not_exist_is_refused_at_its_field(ada):
    answer = ada.post("/settings/", {"theme": "auto", "time_zone": "Mars/Olympus"})
    assert answer.status_code == 400
    field = next(e for e in Page(text_of(answer)).all("select") if e.get("name") == "time_zone")
    assert field.get("aria-invalid") == "true"


def test_changing_the_password_keeps_this_session_and_ends_the_others(browser, people):
    here, elsewhere = browser(""), browser("")
    for client in (here, elsewhere):
        client.post("/login/", {"username": "vic", "password": PASSWORD})
    assert elsewhere.get("/settings/").status_code == 200
    here.post("/settings/password/", {"current_password": PASSWORD, "password": "another-long-secret"})
    assert here.get("/settings/").status_code == 200
    assert elsewhere.get("/settings/").status_code == 302
    people["viewer"].refresh_from_db()
    assert people["viewer"].check_password("another-long-secret")


def test_a_wrong_present_password_changes_nothing_and_is_said_at_its_field(ada, people):
    answer = ada.post("/settings/password/", {"current_password": "guess", "password": "another-long-secret"})
    assert answer.status_code == 400
    assert "The present password is wrong." in text_of(answer)
    people["admin"].refresh_from_db()
    assert people["admin"].check_password(PASSWORD)


def test_an_admin_makes_a_user_who_can_log_in(ada, browser):
    ada.post(
        "/settings/users/new/", {"username": "chen", "email": "", "role": "operator", "password": "first-long-password"}
    )
    stranger = browser("")
    answer = stranger.post("/login/", {"username": "chen", "password": "first-long-password"})
    assert answer.status_code == 302
    assert stranger.get("/join/").status_code == 200


@pytest.mark.parametrize(
    ("change", "words"), [({"password": "short"}, "too short"), ({"username": "ada"}, "has this name already")]
)
def test_what_cannot_be_a_user_is_said_and_none_is_made(ada, change, words):
    given = {"username": "chen", "email": "", "role": "viewer", "password": "first-long-password"} | change
    answer = ada.post("/settings/users/new/", given)
    assert answer.status_code == 400
    assert words in text_of(answer)
    assert not User.objects.filter(username="chen").exists()


def test_deactivating_logs_a_person_out_and_can_be_undone_from_the_toast(ada, browser, people):
    vic = browser("")
    vic.post("/login/", {"username": "vic", "password": PASSWORD})
    answer = ada.post(f"/settings/users/{people['viewer'].pk}/active/", {"is_active": "false"}, follow=True)
    assert vic.get("/events/").status_code == 302
    undo = next(form for form in Page(text_of(answer)).all("form") if "is_active=true" in (form.get("action") or ""))
    ada.post(undo.get("action"))
    people["viewer"].refresh_from_db()
    assert people["viewer"].is_active


def test_the_last_admin_cannot_be_demoted(ada, people):
    answer = ada.post(f"/settings/users/{people['admin'].pk}/", {"username": "ada", "email": "", "role": "viewer"})
    assert answer.status_code == 400
    assert "last admin" in text_of(answer)


def test_a_user_is_deleted_only_once_the_name_is_typed(ada, people):
    address = f"/settings/users/{people['viewer'].pk}/remove/"
    assert ada.post(address, {"typed_name": "vick"}).status_code == 400
    assert User.objects.filter(username="vic").exists()
    assert ada.post(address, {"typed_name": "vic"}).status_code == 302
    assert not User.objects.filter(username="vic").exists()
    assert AuditEntry.objects.filter(action="user.delete", target_name="vic").exists()


def test_a_person_that_is_not_there_is_not_found(ada):
    assert ada.get("/settings/users/999999/").status_code == 404


def test_a_token_is_shown_once_and_works(browser):
    olga = browser("operator")
    answer = olga.post("/settings/tokens/new/", {"name": "nightly", "scope": "viewer", "lifetime": "30"})
    token = re.search(r"fdt_[a-z0-9]{8}_[\w-]{43}", text_of(answer))[0]
    assert "no-store" in answer["Cache-Control"]
    row = token_authenticate(token=token)
    assert (row.name, row.scope) == ("nightly", "viewer")
    assert timedelta(days=29) < row.expires_at - now() < timedelta(days=31)
    assert token not in text_of(olga.get("/settings/tokens/"))


def test_nobody_gives_a_token_more_than_they_may_do_themselves(browser):
    answer = browser("operator").post("/settings/tokens/new/", {"name": "x", "scope": "admin", "lifetime": "30"})
    assert answer.status_code == 400
    assert not ApiToken.objects.exists()


def test_a_token_is_revoked_by_its_owner_and_not_by_others(browser):
    browser("operator").post("/settings/tokens/new/", {"name": "mine", "scope": "viewer", "lifetime": "1"})
    row = ApiToken.objects.get()
    assert browser("viewer").post(f"/settings/tokens/{row.pk}/revoke/").status_code == 404
    assert browser("operator").post(f"/settings/tokens/{row.pk}/revoke/").status_code == 302
    row.refresh_from_db()
    assert row.revoked_at is not None


def test_tokens_of_others_are_listed_for_admins_only(browser):
    browser("operator").post("/settings/tokens/new/", {"name": "olgas-own", "scope": "viewer", "lifetime": "1"})
    assert "olgas-own" in text_of(browser("admin").get("/settings/tokens/"))
    assert "olgas-own" not in text_of(browser("viewer").get("/settings/tokens/"))


def test_sessions_are_listed_and_one_can_be_ended(browser):
    here, elsewhere = (
        browser(""),
        Client(headers={"User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Firefox/140.0"}),
    )
    for client in (here, elsewhere):
        client.post("/login/", {"username": "vic", "password": PASSWORD})
    page = text_of(here.get("/settings/sessions/"))
    assert "Firefox on Linux" in page
    assert page.count("This session") == 1
    other = LoginSession.objects.exclude(session_key=here.session.session_key).get()
    here.post(f"/settings/sessions/{other.pk}/end/")
    assert elsewhere.get("/settings/").status_code == 302
    assert here.get("/settings/").status_code == 200


def test_logging_out_everywhere_else_spares_this_session(browser):
    clients = [browser("") for _index in range(3)]
    for client in clients:
        client.post("/login/", {"username": "vic", "password": PASSWORD})
    answer = clients[0].post("/settings/sessions/end/", follow=True)
    assert "2 other sessions have ended." in text_of(answer)
    assert [client.get("/settings/").status_code for client in clients] == [200, 302, 302]


def test_a_second_factor_is_set_up_with_the_apps_code_and_asked_for_at_the_next_log_in(browser):
    olga = browser("operator")
    answer = olga.post("/settings/second-factor/start/", {"password": PASSWORD})
    page = text_of(answer)
    secret = re.search(r"data-copy-text>([A-Z2-7]{32})<", page)[1]
    assert Page(page).faults() == []
    assert "no-store" in answer["Cache-Control"]
    code = TOTP(base64.b32decode(secret), 6, SHA1(), 30).generate(int(time.time())).decode()
    done = text_of(olga.post("/settings/second-factor/confirm/", {"code": code}))
    codes = re.findall(r"[0-9a-f]{8}-[0-9a-f]{8}", done)
    assert len(codes) == 10
    stranger = browser("")
    stranger.post("/login/", {"username": "olga", "password": PASSWORD})
    assert stranger.get("/settings/").status_code == 302
    assert "10 recovery codes are left" in text_of(olga.get("/settings/second-factor/"))


def test_a_second_factor_takes_the_password_to_begin_and_to_end(ada):
    assert ada.post("/settings/second-factor/start/", {"password": "guess"}).status_code == 400
    assert ada.post("/settings/second-factor/disable/", {"password": "guess"}).status_code == 400


def test_a_wrong_code_leaves_it_off(ada, people):
    ada.post("/settings/second-factor/start/", {"password": PASSWORD})
    answer = ada.post("/settings/second-factor/confirm/", {"code": "000000"})
    assert answer.status_code == 400
    assert "This code is wrong" in text_of(answer)
    assert "Off" in text_of(ada.get("/settings/second-factor/"))


def test_the_installation_page_names_the_variable_of_each_value(ada, settings):
    settings.PUBLIC_URL = "https://panel.example"
    page = text_of(ada.get("/settings/installation/"))
    assert "https://panel.example" in page
    assert "FLEETDECK_PUBLIC_URL" in page
    assert settings.VERSION in page
    assert "every 5 s" in page
