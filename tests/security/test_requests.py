"""What every request passes: its id, its address, its headers, its log-in."""

import pytest
from django.test import Client, override_settings

from panel.core.addresses import address_group, client_address
from tests.accounts.people import person

pytestmark = pytest.mark.django_db


def test_every_answer_carries_an_id_and_the_callers_own_is_kept(client):
    first, second = client.get("/login/")["X-Request-ID"], client.get("/login/")["X-Request-ID"]
    assert first != second
    assert client.get("/login/", headers={"X-Request-ID": "trace-0123456789"})["X-Request-ID"] == "trace-0123456789"


@pytest.mark.parametrize(
    "given", ["short", "x" * 65, "with space 123", "inject\x1b[31m-1234", "<script>alert</script>"]
)
def test_an_id_that_could_forge_log_lines_is_replaced(client, given):
    assert client.get("/login/", headers={"X-Request-ID": given})["X-Request-ID"] != given


@pytest.mark.parametrize(
    ("behind_proxy", "forwarded", "expected"),
    [
        (False, "203.0.113.7", "10.0.0.1"),
        (True, "203.0.113.7", "203.0.113.7"),
        (True, "6.6.6.6, 203.0.113.7", "203.0.113.7"),
        (True, "2001:DB8::1", "2001:db8::1"),
        (True, "", "10.0.0.1"),
        (True, "not an address", None),
    ],
)
def test_the_callers_address_is_the_one_that_our_own_proxy_saw(rf, settings, behind_proxy, forwarded, expected):
    settings.BEHIND_PROXY = behind_proxy
    request = rf.get("/", REMOTE_ADDR="10.0.0.1", HTTP_X_FORWARDED_FOR=forwarded)
    assert client_address(request) == expected


@pytest.mark.parametrize(
    ("address", "group"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        (None, ""),
    ],
)
def test_attempts_are_counted_for_a_network_where_one_caller_has_a_whole_network(address, group):
    assert address_group(address) == group


def test_a_caller_through_a_socket_without_address_has_none(rf):
    assert client_address(rf.get("/", REMOTE_ADDR="")) is None


@pytest.mark.parametrize("path", ["/login/", "/api/v1/users/", "/api/docs/", "/nowhere/"])
def test_every_answer_has_the_headers_that_keep_other_pages_out(client, path):
    answer = client.get(path)
    policy = answer["Content-Security-Policy"]
    for part in (
        "default-src 'self'",
        "frame-ancestors 'none'",
        "object-src 'none'",
        "base-uri 'self'",
        "form-action 'self'",
    ):
        assert part in policy
    assert "unsafe" not in policy
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["X-Frame-Options"] == "DENY"
    assert answer["Referrer-Policy"] == "same-origin"
    assert answer["Cross-Origin-Opener-Policy"] == "same-origin"


@pytest.mark.parametrize("path", ["/settings/", "/api/v1/users/me/", "/api/v1/nothing/", "/login/"])
def test_nobody_keeps_a_copy_of_an_answer(client, path):
    client.force_login(person("vera"))
    assert "no-store" in client.get(path)["Cache-Control"]


@override_settings(ALLOWED_HOSTS=["panel.example"])
def test_a_host_that_is_not_ours_is_refused(client):
    assert client.get("/login/", headers={"Host": "evil.example"}).status_code == 400
    assert client.get("/login/", headers={"Host": "panel.example"}).status_code == 200


def test_a_stranger_is_led_to_the_log_in_and_back(client):
    answer = client.get("/settings/?tab=tokens")
    assert answer.status_code == 302
    assert answer["Location"] == "/login/?next=/settings/%3Ftab%3Dtokens"


def test_a_fragment_for_a_stranger_sends_the_whole_page_to_the_log_in(client):
    answer = client.get("/settings/", headers={"HX-Request": "true"})
    assert answer["HX-Redirect"].startswith("/login/")
    assert not answer.content


def test_session_writes_need_the_csrf_token():
    client = Client(enforce_csrf_checks=True)
    client.force_login(person("vera"))
    body = {"theme": "dark"}
    refused = client.patch("/api/v1/users/me/", body, content_type="application/json")
    assert refused.status_code == 403
    assert refused.json()["errors"][0]["code"] == "permission_denied"
    client.get("/login/")
    page = client.get("/settings/")
    token = page.cookies.get("csrftoken") or client.cookies.get("csrftoken")
    headers = {"X-CSRFToken": token.value}
    assert client.patch("/api/v1/users/me/", body, content_type="application/json", headers=headers).status_code == 200
    elsewhere = {**headers, "Origin": "https://evil.example"}
    assert (
        client.patch("/api/v1/users/me/", body, content_type="application/json", headers=elsewhere).status_code == 403
    )
