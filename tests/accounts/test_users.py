"""People: made, changed, removed, and the last admin who stays."""

import threading

import pytest
from django.contrib.sessions.models import Session
from django.db import IntegrityError, connection, transaction

from panel.accounts.audit import Actor
from panel.accounts.models import ApiToken, AuditEntry, User
from panel.accounts.services import users
from panel.core.errors import Conflict, InvalidInput, NotFound
from tests.accounts.people import PASSWORD, person, session_client, token_of

pytestmark = pytest.mark.django_db


def test_a_new_person_can_log_in_and_stands_in_the_audit_trail(system):
    user = users.user_create(actor=system, username="  vera ", password=PASSWORD, role="operator")
    assert user.username == "vera"
    assert User.objects.get(pk=user.pk).check_password(PASSWORD)
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.target_name, entry.actor_kind) == ("user.create", "vera", "system")
    assert entry.after == {"username": "vera", "email": "", "role": "operator", "is_active": True}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"username": "", "password": PASSWORD}, "username"),
        ({"username": "a b", "password": PASSWORD}, "username"),
        ({"username": "vera", "password": "short"}, "password"),
        ({"username": "vera", "password": "password123"}, "password"),
        ({"username": "vera", "password": "x" * 1025}, "password"),
        ({"username": "vera", "password": PASSWORD, "role": "root"}, "role"),
        ({"username": "vera", "password": PASSWORD, "email": "nobody"}, "email"),
        ({"username": "vera", "password": PASSWORD, "email": "v@example.com\nBcc: all@example.com"}, "email"),
    ],
)
def test_what_cannot_be_a_person_is_refused_by_field(system, fields, field):
    with pytest.raises(InvalidInput) as error:
        users.user_create(actor=system, **fields)
    assert error.value.field == field
    assert not User.objects.exists()


def test_names_differ_by_more_than_case(system, ada):
    with pytest.raises(InvalidInput, match="already") as error:
        users.user_create(actor=system, username="ADA", password=PASSWORD)
    assert error.value.field == "username"
    with pytest.raises(IntegrityError), transaction.atomic():
        User.objects.create(username="Ada")


def test_only_what_changed_is_recorded(system, ada):
    vera = person("vera")
    users.user_update(actor=system, user_id=vera.pk, role="operator", email="")
    entry = AuditEntry.objects.get(action="user.update")
    assert (entry.before, entry.after) == ({"role": "viewer"}, {"role": "operator"})
    users.user_update(actor=system, user_id=vera.pk, role="operator")
    assert AuditEntry.objects.count() == 1


@pytest.mark.parametrize("change", [{"role": "viewer"}, {"role": "operator"}, {"is_active": False}])
def test_the_last_admin_is_neither_demoted_nor_deactivated(system, ada, change):
    person("otto", "operator")
    person("gone", "admin", is_active=False)
    with pytest.raises(Conflict) as error:
        users.user_update(actor=system, user_id=ada.pk, **change)
    assert error.value.code == "last_admin"
    with pytest.raises(Conflict):
        users.user_delete(actor=system, user_id=ada.pk)
    ada.refresh_from_db()
    assert (ada.role, ada.is_active) == ("admin", True)


def test_with_a_second_admin_the_first_may_go(system, ada):
    person("grace", "admin")
    users.user_update(actor=system, user_id=ada.pk, role="viewer")
    users.user_delete(actor=system, user_id=ada.pk)
    assert not User.objects.filter(username="ada").exists()
    assert AuditEntry.objects.filter(action="user.delete", target_name="ada").exists()


@pytest.mark.django_db(transaction=True)
def test_two_admins_who_demote_each_other_at_once_leave_one():
    admins = [person("ada", "admin"), person("grace", "admin")]
    barrier, refused = threading.Barrier(2), []

    def demote(target):
        barrier.wait()
        try:
            users.user_update(actor=Actor.system("test"), user_id=target.pk, role="viewer")
        except Conflict as error:
            refused.append(error.code)
        finally:
            connection.close()

    threads = [threading.Thread(target=demote, args=(admin,)) for admin in admins]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refused == ["last_admin"]
    assert User.objects.filter(role="admin").count() == 1


def test_deactivating_ends_sessions_and_tokens(system, ada):
    vera = person("vera")
    browser, token = session_client(vera), token_of(vera)
    assert browser.get("/api/v1/users/me/").status_code == 200
    users.user_update(actor=system, user_id=vera.pk, is_active=False)
    assert browser.get("/api/v1/users/me/").status_code == 401
    assert browser.get("/api/v1/users/me/", headers={"Authorization": f"Bearer {token}"}).status_code == 401
    assert not Session.objects.exists()


def test_removing_a_person_removes_their_tokens(system, ada):
    vera = person("vera")
    token_of(vera)
    users.user_delete(actor=system, user_id=vera.pk)
    assert not ApiToken.objects.exists()
    with pytest.raises(NotFound):
        users.user_delete(actor=system, user_id=vera.pk)


def test_a_password_set_by_an_admin_ends_every_session(system, ada):
    vera = person("vera")
    browser = session_client(vera)
    browser.get("/api/v1/users/me/")
    users.password_set(actor=system, user_id=vera.pk, password="another-long-one")
    assert browser.get("/api/v1/users/me/").status_code == 401
    assert User.objects.get(pk=vera.pk).check_password("another-long-one")
    assert "another" not in str(list(AuditEntry.objects.values()))


@pytest.mark.parametrize(
    ("wanted", "field"),
    [({"language": "tlh"}, "language"), ({"time_zone": "Mars/Olympus"}, "time_zone"), ({"theme": "pink"}, "theme")],
)
def test_preferences_that_do_not_exist_are_refused(system, wanted, field):
    with pytest.raises(InvalidInput) as error:
        users.preferences_update(actor=system, user=person("vera"), **wanted)
    assert error.value.field == field


def test_preferences_change_only_what_is_given(system):
    vera = person("vera", time_zone="Asia/Shanghai", theme="dark")
    users.preferences_update(actor=system, user=vera, language="zh-hans")
    users.preferences_update(actor=system, user=vera, time_zone="")
    vera.refresh_from_db()
    assert (vera.language, vera.time_zone, vera.theme) == ("zh-hans", "", "dark")
    users.preferences_update(actor=system, user=vera, theme="dark")
    entries = AuditEntry.objects.filter(action="user.preferences").order_by("id")
    assert [(entry.before, entry.after) for entry in entries] == [
        ({"language": ""}, {"language": "zh-hans"}),
        ({"time_zone": "Asia/Shanghai"}, {"time_zone": ""}),
    ]


def test_the_first_admin_is_made_once():
    assert users.admin_ensure(username="admin", password=PASSWORD).role == "admin"
    assert users.admin_ensure(username="other", password=PASSWORD) is None
    assert User.objects.count() == 1
