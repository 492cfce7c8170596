"""Error pages: what happened, what to do, an id where one helps."""

import pytest
from django.test import RequestFactory

from frontend.middleware import PreferencesMiddleware
from frontend.views import errors
from panel.core.errors import ExternalError, NotFound, RateLimited
from tests.frontend.html import Page


def test_an_address_that_leads_nowhere_gets_a_page_with_the_way_back(ada):
    answer = ada.get("/no/such/page/")
    assert answer.status_code == 404
    assert "There is no page or object at this address" in answer.content.decode()


def test_an_unexpected_error_gives_an_id_and_no_detail(settings, browser, monkeypatch):
    def broken(*_args, **_kwargs):
        raise RuntimeError("the secret sauce")

    monkeypatch.setattr("frontend.views.search.find", broken)
    client = browser("admin", raise_request_exception=False)
    answer = client.get("/search/", headers={"X-Request-ID": "given-by-the-proxy"})
    text = answer.content.decode()
    assert answer.status_code == 500
    assert "given-by-the-proxy" in text
    assert "secret sauce" not in text
    assert Page(text).faults() == []


def test_the_page_of_an_unexpected_error_asks_no_database():
    request = RequestFactory().get("/", headers={"Cookie": "fleetdeck_theme=dark"})
    request.request_id = "abcdef12"
    text = errors.server_error(request).content.decode()  # without the db fixture a query would raise
    assert 'data-theme="dark"' in text
    assert "abcdef12" in text


@pytest.mark.parametrize(
    ("error", "status"), [(NotFound("There is no such server."), 404), (ExternalError("Valkey rests."), 502)]
)
def test_an_expected_error_of_a_page_becomes_its_sentence(rf, people, error, status):
    request = rf.get("/servers/9/")
    request.user = people["admin"]
    request.request_id = "abcdef12"
    answer = PreferencesMiddleware(lambda _request: None).process_exception(request, error)
    assert answer.status_code == status
    assert error.message in answer.content.decode()


def test_a_limit_says_when_to_come_back(rf, people):
    request = rf.get("/x/")
    request.user = people["admin"]
    error = RateLimited("Too often.", retry_after_seconds=12.4)
    assert PreferencesMiddleware(lambda _request: None).process_exception(request, error)["Retry-After"] == "12"


def test_errors_of_programs_and_bugs_are_left_to_others(rf):
    middleware = PreferencesMiddleware(lambda _request: None)
    assert middleware.process_exception(rf.get("/api/v1/servers/"), NotFound("x")) is None
    assert middleware.process_exception(rf.get("/servers/"), ValueError("x")) is None


def test_the_log_in_page_does_not_tell_whether_the_name_or_the_password_was_wrong(browser):
    stranger = browser("")
    wrong_password = stranger.post("/login/", {"username": "ada", "password": "x"}).content.decode()
    wrong_name = stranger.post("/login/", {"username": "nobody", "password": "x"}).content.decode()
    for text in (wrong_password, wrong_name):
        assert "Name or password is wrong." in text
        assert Page(text).faults() == []
