"""API tokens over the API."""

from datetime import timedelta

import pytest

from panel.accounts.models import ApiToken, AuditEntry
from panel.core.clock import now
from panel.core.tokens import hash_token
from tests.accounts.people import PASSWORD, person, token_client, token_of

pytestmark = pytest.mark.django_db


def test_a_name_and_password_give_a_token_that_works(stranger_client, operator):
    answer = stranger_client.post("/api/v1/auth/token/", {"username": "otto", "password": PASSWORD})
    assert answer.status_code == 200
    stranger_client.credentials(HTTP_AUTHORIZATION=f"Bearer {answer.json()['token']}")
    me = stranger_client.get("/api/v1/users/me/")
    assert me.status_code == 200
    assert me.json()["username"] == "otto"


def test_a_new_token_is_shown_once_and_stored_as_a_hash(viewer_client):
    made = viewer_client.post("/api/v1/tokens/", {"name": "grafana"})
    assert made.status_code == 201, made.content
    secret = made.json()["token"]
    row = ApiToken.objects.get(pk=made.json()["id"])
    assert row.token_hash == hash_token(secret)
    assert secret not in viewer_client.get("/api/v1/tokens/").content.decode()
    assert secret not in viewer_client.get(f"/api/v1/tokens/{row.pk}/").content.decode()


def test_a_token_gets_no_wider_scope_than_its_maker(viewer_client, operator):
    assert viewer_client.post("/api/v1/tokens/", {"name": "x", "scope": "admin"}).status_code == 403
    narrow = token_client(operator, scope="viewer")
    assert narrow.post("/api/v1/tokens/", {"name": "x", "scope": "operator"}).status_code == 403


def test_a_token_made_with_a_token_does_not_outlive_it(operator):
    client = token_client(operator, expires_in=timedelta(hours=1))
    late = (now() + timedelta(days=30)).isoformat()
    assert client.post("/api/v1/tokens/", {"name": "x", "expires_at": late}).status_code == 400
    made = client.post("/api/v1/tokens/", {"name": "x"}).json()
    assert ApiToken.objects.get(pk=made["id"]).expires_at <= now() + timedelta(hours=1)


def test_a_token_shrinks_with_its_owner(operator):
    client = token_client(operator)
    assert client.get("/api/v1/audit/").status_code == 200
    operator.role = "viewer"
    operator.save()
    answer = client.get("/api/v1/audit/")
    assert answer.status_code == 403
    assert "Operator" in answer.json()["errors"][0]["detail"]


@pytest.mark.parametrize("dead", [{"expires_in": timedelta(seconds=-1)}, {"revoked": True}])
def test_a_dead_token_opens_nothing(viewer, dead):
    answer = token_client(viewer, **dead).get("/api/v1/users/me/")
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"] == "Bearer"


def test_the_token_of_a_deactivated_owner_is_dead(viewer):
    client = token_client(viewer)
    viewer.is_active = False
    viewer.save()
    assert client.get("/api/v1/users/me/").status_code == 401


def test_a_revoked_token_stays_listed_and_stops_at_once(viewer):
    client = token_client(viewer)
    made = client.post("/api/v1/tokens/", {"name": "old"}).json()
    assert client.delete(f"/api/v1/tokens/{made['id']}/").status_code == 204
    assert client.get(f"/api/v1/tokens/{made['id']}/").json()["revoked_at"]
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {made['token']}")
    assert client.get("/api/v1/users/me/").status_code == 401
    assert list(AuditEntry.objects.values_list("action", flat=True)) == ["token.create", "token.revoke"]


def test_nobody_sees_or_revokes_the_tokens_of_others_but_an_admin(viewer, admin_client):
    token_of(viewer)
    row = ApiToken.objects.get(user=viewer)
    other = token_client(person("oscar"))
    assert other.get(f"/api/v1/tokens/{row.pk}/").status_code == 404
    assert other.delete(f"/api/v1/tokens/{row.pk}/").status_code == 404
    assert admin_client.delete(f"/api/v1/tokens/{row.pk}/").status_code == 204


def test_last_use_is_written_at_most_once_a_minute(viewer, django_assert_num_queries):
    client = token_client(viewer)
    with django_assert_num_queries(2):  # the token with its owner, its last use
        client.get("/api/v1/users/me/")
    with django_assert_num_queries(1):
        client.get("/api/v1/users/me/")
    assert ApiToken.objects.get(user=viewer).last_used_at is not None
