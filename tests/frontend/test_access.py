"""Who may open which page, and what they are told when they may not."""

import pytest

VIEWER, OPERATOR, ADMIN = {"viewer", "operator", "admin"}, {"operator", "admin"}, {"admin"}
PAGES = {
    "/events/": VIEWER,
    "/events/new/": VIEWER,
    "/events/csv/": VIEWER,
    "/self-health/": VIEWER,
    "/providers/": VIEWER,
    "/offers/": VIEWER,
    "/operations/": VIEWER,
    "/leases/": VIEWER,
    "/leases/csv/": VIEWER,
    "/drift/": VIEWER,
    "/endpoints/": VIEWER,
    "/gateways/": VIEWER,
    "/probes/": VIEWER,
    "/exchange-rates/": VIEWER,
    "/waste/": VIEWER,
    "/search/": VIEWER,
    "/settings/": VIEWER,
    "/settings/second-factor/": VIEWER,
    "/settings/tokens/": VIEWER,
    "/settings/tokens/new/": VIEWER,
    "/settings/sessions/": VIEWER,
    "/settings/installation/": VIEWER,
    "/join/": OPERATOR,
    "/leases/new/": OPERATOR,
    "/endpoints/new/": OPERATOR,
    "/gateways/new/": OPERATOR,
    "/probes/new/": OPERATOR,
    "/keys/": OPERATOR,
    "/keys/new/": OPERATOR,
    "/secrets/": OPERATOR,
    "/providers/new/": ADMIN,
    "/settings/users/": ADMIN,
    "/settings/users/new/": ADMIN,
}
ROLES = ("viewer", "operator", "admin")


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("role", ROLES)
def test_a_page_opens_for_the_roles_that_may(browser, path, role):
    answer = browser(role).get(path)
    assert answer.status_code == (200 if role in PAGES[path] else 403)


@pytest.mark.parametrize("path", PAGES)
def test_a_stranger_logs_in_first_and_comes_back(browser, path):
    answer = browser("").get(path)
    assert answer.status_code == 302
    assert answer["Location"] == f"/login/?next={path}"


def test_a_refusal_says_which_role_is_needed(browser):
    assert "This needs the role “Admin”." in browser("viewer").get("/settings/users/").content.decode()
    assert "This needs the role “Operator”." in browser("viewer").get("/join/").content.decode()


@pytest.mark.parametrize(
    "path",
    [
        "/join/",
        "/join/1/revoke/",
        "/settings/users/new/",
        "/settings/users/1/",
        "/settings/users/1/password/",
        "/settings/users/1/active/",
        "/settings/users/1/second-factor/",
        "/settings/users/1/remove/",
    ],
)
def test_a_viewer_cannot_write_what_is_not_theirs(browser, path):
    assert browser("viewer").post(path, {"typed_name": "ada"}).status_code == 403


@pytest.mark.parametrize(
    "path",
    [
        "/settings/",
        "/settings/password/",
        "/settings/sessions/end/",
        "/settings/tokens/new/",
        "/join/",
        "/preferences/",
    ],
)
def test_a_form_from_elsewhere_is_refused_with_a_page(browser, path):
    answer = browser("admin", enforce_csrf_checks=True).post(path, {"theme": "dark"})
    assert answer.status_code == 403
    assert "Please try again" in answer.content.decode()


@pytest.mark.parametrize(
    "path",
    [
        "/logout/",
        "/preferences/",
        "/settings/password/",
        "/settings/sessions/end/",
        "/settings/sessions/1/end/",
        "/settings/tokens/1/revoke/",
        "/settings/users/1/remove/",
        "/settings/second-factor/start/",
        "/join/1/revoke/",
    ],
)
def test_reading_an_address_never_writes(ada, path):
    assert ada.get(path).status_code == 405


def test_a_fragment_for_nobody_sends_the_whole_page_to_the_log_in(browser):
    answer = browser("").get("/events/new/", headers={"HX-Request": "true"})
    assert answer.status_code == 401
    assert answer["HX-Redirect"].startswith("/login/")


def test_a_refused_fragment_brings_its_sentence_as_a_toast(browser):
    answer = browser("viewer").get("/join/", headers={"HX-Request": "true"})
    assert answer.status_code == 403
    assert "Operator" in answer["HX-Trigger"]
    assert answer["HX-Reswap"] == "none"
