"""People, sessions and one's own settings over the API."""

import pytest
from django.contrib.sessions.models import Session

from panel.accounts.models import AuditEntry, User
from tests.accounts.people import PASSWORD, person, session_client, token_client

pytestmark = pytest.mark.django_db


def test_an_admin_makes_changes_and_removes_people(admin_client):
    made = admin_client.post("/api/v1/users/", {"username": "vera", "password": PASSWORD, "role": "operator"})
    assert made.status_code == 201
    vera = made.json()
    assert set(vera) == {
        "id", "username", "email", "role", "is_active", "language", "time_zone", "theme", "date_joined", "last_login",
    }  # fmt: skip
    changed = admin_client.patch(f"/api/v1/users/{vera['id']}/", {"role": "viewer", "email": "vera@example.com"})
    assert (changed.json()["role"], changed.json()["email"]) == ("viewer", "vera@example.com")
    assert admin_client.delete(f"/api/v1/users/{vera['id']}/").status_code == 204
    assert admin_client.get(f"/api/v1/users/{vera['id']}/").status_code == 404
    actions = AuditEntry.objects.order_by("id").values_list("action", "actor_kind", "actor_name")
    assert list(actions) == [
        ("user.create", "token", "test of ada"),
        ("user.update", "token", "test of ada"),
        ("user.delete", "token", "test of ada"),
    ]


@pytest.mark.parametrize(
    ("body", "attr"),
    [
        ({}, "username"),
        ({"username": "vera", "password": "short"}, "password"),
        ({"username": "vera", "password": PASSWORD, "role": "root"}, "role"),
        ({"username": "a b", "password": PASSWORD}, "username"),
        ({"username": "ADA", "password": PASSWORD}, "username"),
        ({"username": ["x"], "password": PASSWORD}, "username"),
    ],
)
def test_a_person_that_cannot_be_is_refused_by_field(admin_client, body, attr):
    answer = admin_client.post("/api/v1/users/", body)
    assert answer.status_code == 400
    assert answer.json()["type"] == "validation_error"
    assert attr in [error["attr"] for error in answer.json()["errors"]]
    assert User.objects.count() == 1


def test_the_last_admin_stays_whatever_the_api_is_asked(admin_client, admin):
    for answer in (
        admin_client.delete(f"/api/v1/users/{admin.pk}/"),
        admin_client.patch(f"/api/v1/users/{admin.pk}/", {"role": "viewer"}),
    ):
        assert answer.status_code == 409
        assert answer.json() == {
            "type": "client_error",
            "errors": [
                {
                    "code": "last_admin",
                    "detail": "This is the last admin. Make somebody else an admin first.",
                    "attr": None,
                }
            ],
        }


def test_an_admin_sets_a_password_and_ends_sessions(admin_client):
    vera = person("vera")
    session_client(vera).get("/api/v1/users/me/")
    assert admin_client.post(f"/api/v1/users/{vera.pk}/end-sessions/").json() == {"ended": 1}
    assert not Session.objects.exists()
    answer = admin_client.post(f"/api/v1/users/{vera.pk}/password/", {"password": "another-long-one"})
    assert answer.status_code == 204
    vera.refresh_from_db()
    assert vera.check_password("another-long-one")


def test_everybody_sees_who_they_are_and_what_they_may_do(viewer, operator_client):
    me = operator_client.get("/api/v1/users/me/").json()
    assert (me["username"], me["role"]) == ("otto", "operator")
    assert "servers.manage" in me["capabilities"]
    narrow = token_client(person("oscar", "operator"), scope="viewer").get("/api/v1/users/me/").json()
    assert "servers.manage" not in narrow["capabilities"]


def test_everybody_sets_their_own_language_zone_and_theme(viewer_client, viewer):
    answer = viewer_client.patch(
        "/api/v1/users/me/", {"language": "zh-hans", "time_zone": "Asia/Shanghai", "theme": "dark"}
    )
    assert answer.status_code == 200
    viewer.refresh_from_db()
    assert (viewer.language, viewer.time_zone, viewer.theme) == ("zh-hans", "Asia/Shanghai", "dark")
    refused = viewer_client.patch("/api/v1/users/me/", {"time_zone": "Mars/Olympus"})
    assert refused.json()["errors"][0]["attr"] == "time_zone"


def test_nobody_raises_their_own_role_through_their_settings(viewer_client, viewer):
    viewer_client.patch("/api/v1/users/me/", {"role": "admin", "is_superuser": True, "theme": "dark"})
    viewer.refresh_from_db()
    assert (viewer.role, viewer.is_superuser) == ("viewer", False)


def test_a_token_changes_the_password_only_with_the_present_one(viewer_client, viewer):
    wrong = {"current_password": "wrong", "password": "another-long-one"}
    assert viewer_client.post("/api/v1/users/me/password/", wrong).status_code == 400
    right = {"current_password": PASSWORD, "password": "another-long-one"}
    assert viewer_client.post("/api/v1/users/me/password/", right).status_code == 204
    viewer.refresh_from_db()
    assert viewer.check_password("another-long-one")


def test_one_ends_ones_own_sessions_but_not_those_of_others(viewer, viewer_client, operator):
    session_client(operator).get("/api/v1/users/me/")
    browser = session_client(viewer, check_csrf=False)
    session_client(viewer).get("/api/v1/users/me/")
    browser.get("/api/v1/users/me/")
    theirs = operator.login_sessions.get().pk
    assert viewer_client.delete(f"/api/v1/sessions/{theirs}/").status_code == 404
    assert [row["is_current"] for row in browser.get("/api/v1/sessions/").json()["results"]].count(True) == 1
    assert browser.post("/api/v1/sessions/end-others/").json() == {"ended": 1}
    (left,) = viewer_client.get("/api/v1/sessions/").json()["results"]
    assert viewer_client.delete(f"/api/v1/sessions/{left['id']}/").status_code == 204
    assert browser.get("/api/v1/users/me/").status_code == 401


def test_a_list_of_many_people_costs_as_many_queries_as_one_of_few(admin_client, django_assert_num_queries):
    User.objects.bulk_create([User(username=f"user{index:03}") for index in range(200)])
    admin_client.get("/api/v1/users/me/")  # notes the token's use
    with django_assert_num_queries(2):  # the token, the page
        answer = admin_client.get("/api/v1/users/?limit=150")
    assert len(answer.json()["results"]) == 150
