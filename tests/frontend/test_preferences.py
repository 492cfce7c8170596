"""Language, zone, theme: from the account, else a cookie, else the installation; right at the first paint."""

import pytest

from tests.frontend.html import Page


def html_of(answer):
    return Page(answer.content.decode()).all("html")[0]


def test_the_theme_switch_is_stored_in_the_account_and_in_a_cookie(ada, people):
    answer = ada.post("/preferences/", {"theme": "dark", "next": "/settings/"})
    assert answer["Location"] == "/settings/"
    assert answer.cookies["fleetdeck_theme"].value == "dark"
    people["admin"].refresh_from_db()
    assert people["admin"].theme == "dark"
    assert html_of(ada.get("/settings/")).get("data-theme") == "dark"


def test_the_theme_of_a_stranger_comes_from_the_cookie(browser):
    stranger = browser("")
    stranger.post("/preferences/", {"theme": "light"})
    assert html_of(stranger.get("/login/")).get("data-theme") == "light"


def test_a_choice_that_does_not_exist_changes_nothing(ada, people):
    answer = ada.post("/preferences/", {"theme": "neon", "language": "tlh"})
    assert not answer.cookies
    people["admin"].refresh_from_db()
    assert (people["admin"].theme, people["admin"].language) == ("auto", "")


@pytest.mark.parametrize("target", ["https://elsewhere.example/", "//elsewhere.example/", "javascript:alert(1)"])
def test_a_switch_never_leads_away_from_the_panel(ada, target):
    assert ada.post("/preferences/", {"theme": "dark", "next": target})["Location"] == "/"


def test_the_language_of_the_account_wins_over_the_browsers(ada):
    assert html_of(ada.get("/settings/", headers={"Accept-Language": "zh-CN"})).get("lang") == "zh-hans"
    ada.post("/preferences/", {"language": "en"})
    assert html_of(ada.get("/settings/", headers={"Accept-Language": "zh-CN"})).get("lang") == "en"


def test_the_zone_is_the_persons_then_the_installations_then_the_browsers(ada, people, settings):
    assert html_of(ada.get("/settings/")).get("data-zone-source") == "none"
    ada.cookies["fleetdeck_zone"] = "Asia/Shanghai"
    assert (html_of(ada.get("/settings/")).get("data-zone"), "UTC+8" in ada.get("/settings/").content.decode()) == (
        "Asia/Shanghai",
        True,
    )
    settings.DISPLAY_TIME_ZONE = "Europe/Berlin"
    assert html_of(ada.get("/settings/")).get("data-zone") == "Europe/Berlin"
    people["admin"].time_zone = "Asia/Tokyo"
    people["admin"].save()
    assert html_of(ada.get("/settings/")).get("data-zone") == "Asia/Tokyo"


def test_a_zone_cookie_with_anything_else_in_it_is_ignored(ada):
    ada.cookies["fleetdeck_zone"] = "../../etc/passwd"
    assert html_of(ada.get("/settings/")).get("data-zone") == "UTC"


def test_the_words_of_javascript_come_in_the_language_of_their_address(ada):
    answer = ada.get("/jsi18n/?language=zh-hans")
    assert answer["Content-Type"].startswith("text/javascript")
    assert "gettext" in answer.content.decode()
    assert "max-age=86400" in answer["Cache-Control"]


def test_programs_are_left_alone(ada):
    assert ada.get("/api/schema/").status_code == 200
