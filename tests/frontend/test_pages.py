"""Pages as documents: valid, named, within the content security policy; and how many queries each takes."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from panel.accounts.audit import Actor
from panel.accounts.services.tokens import token_create
from tests.fleet.factories import Machine, joined
from tests.frontend.html import Page

# Each includes 3 of the shell: the session, the person, the silent agents.
QUERIES = {
    "/events/": 5,
    "/events/new/": 2,
    "/search/": 3,
    "/search/?q=a": 9,
    "/settings/": 3,
    "/settings/second-factor/": 5,
    "/settings/users/": 4,
    "/settings/users/new/": 3,
    "/settings/tokens/": 4,
    "/settings/tokens/new/": 3,
    "/settings/sessions/": 4,
    "/settings/installation/": 3,
    "/join/": 5,
    "/no/such/page/": 3,
}
EVERY = [*QUERIES, "/self-health/"]


@pytest.fixture
def some_fleet(people):
    """Two servers, one with a token of its own waiting; a token of a person."""
    for name in ("rack-1", "rack-2"):
        agent, _token = joined(name)
        Machine(agent, cards=2).send()
    actor = Actor.from_user(people["admin"])
    token_create(actor=actor, owner=people["admin"], name="report")


@pytest.mark.parametrize("path", EVERY)
def test_a_page_is_a_sound_document(ada, some_fleet, path):
    answer = ada.get(path)
    if path == "/events/new/":
        return
    assert Page(answer.content.decode()).faults() == []
    assert "default-src 'self'" in answer["Content-Security-Policy"]
    assert "unsafe" not in answer["Content-Security-Policy"]


@pytest.mark.parametrize("path", ["/login/", "/no/such/page/"])
def test_a_strangers_page_is_a_sound_document(browser, path):
    assert Page(browser("").get(path).content.decode()).faults() == []


@pytest.mark.parametrize("role", ["viewer", "operator"])
@pytest.mark.parametrize("path", ["/events/", "/settings/", "/settings/tokens/", "/join/", "/settings/users/"])
def test_a_page_of_lesser_roles_is_a_sound_document(browser, some_fleet, path, role):
    assert Page(browser(role).get(path).content.decode()).faults() == []


@pytest.mark.parametrize("path", QUERIES)
def test_a_page_takes_a_fixed_number_of_queries(ada, some_fleet, path):
    ada.get("/settings/")  # notes the use of the session, once a minute
    with CaptureQueriesContext(
        connection,
    ) as queries:
        ada.get(path)
    assert len(queries) == QUERIES[path], [query["sql"][:90] for query in queries]


def test_a_page_has_its_landmarks_and_marks_where_one_is(ada):
    page = Page(ada.get("/events/").content.decode())
    assert page.all("nav")[0].get("aria-label") == "Main"
    current = [link for link in page.all("a") if link.get("aria-current") == "page"]
    assert [link.text.strip() for link in current] == ["Events"]
    assert page.all("a")[0].get("href") == "#content"
    assert page.all("main")[0].get("id") == "content"


def test_the_rail_leads_only_to_pages_that_are_there(ada):
    page = Page(ada.get("/settings/").content.decode())
    links = [link.get("href") for link in page.all("a") if "rail-link" in (link.get("class") or "")]
    assert links == ["/", "/fleet/", "/endpoints/", "/probes/", "/alerts/", "/leases/", "/events/", "/settings/"]
    assert [ada.get(link).status_code for link in links] == [200] * 8


def test_silent_agents_stand_in_the_top_bar(ada, some_fleet):
    from fleet.models import Server

    assert "silent" not in ada.get("/settings/").content.decode()
    Server.objects.filter(name="rack-1").update(state="not_reporting")
    assert "1 agent silent" in ada.get("/settings/").content.decode()
