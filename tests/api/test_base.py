"""What holds for every part of the API: bodies, errors, pages."""

from unittest import mock

import pytest
from django.test import Client

from panel.accounts.models import User
from panel.accounts.services import users
from panel.core import errors
from tests.accounts.people import token_client, token_of

pytestmark = pytest.mark.django_db
TOKENS = "/api/v1/tokens/"


@pytest.fixture
def post(viewer):
    header = {"Authorization": f"Bearer {token_of(viewer)}"}

    def send(body, content_type="application/json"):
        return Client().post(TOKENS, body, content_type=content_type, headers=header)

    return send


def code(answer):
    return answer.json()["errors"][0]["code"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b'{"name": NaN}',
        b'{"name": Infinity}',
        b"[" * 100_000,
        b'{"a":' * 50 + b"1" + b"}" * 50,
        b'{"name": "a\\u0000b"}',
        b'{"name": "\\ud800"}',
        b'{"\\u0000": 1}',
        b'{"name": ' + b"9" * 5_000 + b"}",
    ],
)
def test_a_body_that_is_not_plain_bounded_json_is_a_400(post, body):
    answer = post(body)
    assert answer.status_code == 400
    assert code(answer) in ("parse_error", "required")


def test_a_body_that_is_too_large_is_a_413(post):
    assert post(b'{"name": "' + b"x" * 1_100_000 + b'"}').status_code == 413


@pytest.mark.parametrize(
    "content_type", ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain"]
)
def test_forms_and_uploads_are_refused(post, content_type):
    assert post(b"name=x", content_type).status_code == 415


@pytest.mark.parametrize("body", [b"[]", b'"x"', b"1", b"null"])
def test_json_that_is_no_object_is_a_400(post, body):
    assert post(body).status_code == 400


@pytest.mark.parametrize(
    "header",
    ["Bearer", "Bearer a b", "Bearer \xff", "bearer fdt_aaaaaaaa_" + "x" * 43, "Bearer fda_aaaaaaaa_" + "x" * 43],
)
def test_a_token_that_is_none_is_a_401_and_never_a_guest(header):
    answer = Client().get("/api/v1/users/me/", HTTP_AUTHORIZATION=header)
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"] == "Bearer"
    assert code(answer) == "authentication_failed"


def test_a_resource_that_is_not_there_is_a_404_in_the_same_shape(client):
    for path in ("/api/v1/nothing/", "/api/v1/", "/api/v1/nothing"):
        answer = client.get(path)
        assert answer.status_code == 404
        assert code(answer) == "not_found"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.InvalidInput("no", field="role"), 400),
        (errors.NotAuthenticated("no"), 401),
        (errors.PermissionRefused("no"), 403),
        (errors.NotFound("no"), 404),
        (errors.Conflict("no"), 409),
        (errors.Stale("no"), 409),
        (errors.TooLarge("no"), 413),
        (errors.RateLimited("no", retry_after_seconds=1.2), 429),
        (errors.ExternalError("no", retry_after_seconds=5), 502),
    ],
)
def test_every_expected_error_has_its_status_code_and_sentence(admin_client, error, status):
    with mock.patch.object(users, "user_create", side_effect=error):
        answer = admin_client.post("/api/v1/users/", {"username": "x", "password": "y"})
    assert answer.status_code == status
    (shown,) = answer.json()["errors"]
    assert (shown["code"], shown["detail"]) == (error.code, "no")
    assert shown["attr"] == ("role" if status == 400 else None)
    waits = {429: "2", 502: "5"}
    assert answer.get("Retry-After") == waits.get(status)


def test_an_unexpected_error_tells_an_id_and_nothing_of_the_inside(admin_client, caplog):
    admin_client.raise_request_exception = False
    with mock.patch.object(users, "user_create", side_effect=RuntimeError("canary-inside")):
        answer = admin_client.post("/api/v1/users/", {"username": "x", "password": "y"})
    assert answer.status_code == 500
    assert answer.json()["type"] == "server_error"
    assert answer["X-Request-ID"] in answer.json()["errors"][0]["detail"]
    assert "canary" not in answer.content.decode()
    assert "canary-inside" in caplog.text


def test_pages_follow_each_other_without_gap_or_repeat(admin_client):
    User.objects.bulk_create([User(username=f"user{index:03}") for index in range(25)])
    seen, url = [], "/api/v1/users/?limit=10"
    while url:
        page = admin_client.get(url).json()
        assert set(page) == {"next", "previous", "results"}
        seen += [row["username"] for row in page["results"]]
        url = page["next"]
    assert seen == sorted(User.objects.values_list("username", flat=True))
    assert len(seen) == 26


@pytest.mark.parametrize(
    ("limit", "count"), [("1", 1), ("500", 500), ("501", 500), ("0", 100), ("-1", 100), ("x", 100)]
)
def test_no_page_is_longer_than_five_hundred(admin_client, limit, count):
    User.objects.bulk_create([User(username=f"user{index:03}") for index in range(505)])
    assert len(admin_client.get(f"/api/v1/users/?limit={limit}").json()["results"]) == count


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        "%00",
        "bz0xMDAwMDAwMDA=",
        "cD1hYmM=",
        "cD05OTk5OTk5OTk5OTk5OTk5OTk5OTk5",
        "cD0lMDA=",
        "cj0xJnA9eA==",
        "/w==",
    ],
)
@pytest.mark.parametrize(
    "path", ["/api/v1/users/", "/api/v1/audit/", "/api/v1/tokens/", "/api/v1/events/", "/api/v1/sessions/"]
)
def test_a_cursor_from_elsewhere_never_breaks_a_list(admin_client, path, cursor):
    assert admin_client.get(f"{path}?cursor={cursor}").status_code in (200, 404)


@pytest.mark.parametrize("pk", ["0", "99999999999999999999999999", "１"])
def test_a_number_that_no_row_has_is_a_404(admin_client, pk):
    assert admin_client.get(f"/api/v1/users/{pk}/").status_code == 404


def test_options_tell_nothing(admin_client):
    assert admin_client.options("/api/v1/users/").status_code in (403, 405)


def test_an_api_token_needs_no_csrf_and_its_cookie_counts_for_nothing(viewer):
    assert token_client(viewer).post(TOKENS, {"name": "x"}).status_code == 201
