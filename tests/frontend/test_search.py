"""The search over everything."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from frontend.search import PAGES, search
from tests.fleet.factories import Machine, card_uuid, joined
from tests.frontend.html import Page


@pytest.fixture
def rack(db):
    agent, _token = joined("rack-1", provider="AutoDL", region="beijing-3")
    machine = Machine(agent, cards=3)
    machine.send()
    return machine


def labels(text, role="admin"):
    return [hit.label for hit in search(text=text, role=role)]


def test_servers_are_found_by_name_provider_and_region(rack):
    for text in ("RACK", "autodl", "beijing"):
        assert labels(text)[0] == "rack-1"


def test_a_gpu_is_found_by_any_part_of_its_uuid(rack):
    hits = search(text=card_uuid(2)[4:14], role="viewer")
    assert [hit.href for hit in hits] == [f"/gpus/{rack.gpu(2).pk}/"]
    assert "rack-1 #2" in hits[0].detail


@pytest.mark.django_db
def test_pages_are_offered_when_nothing_is_typed_and_only_those_that_open():
    assert labels("", role="viewer") == [
        str(page.label)
        for page in PAGES
        if page.url_name not in {"join", "settings-users", "endpoint-new", "endpoint-keys", "secrets"}
    ]
    assert "Add a server" in labels("接入", role="operator")


def test_every_page_that_is_offered_opens(ada):
    for hit in search(text="", role="admin"):
        assert ada.get(hit.href).status_code == 200, hit.href


def test_a_wildcard_is_a_plain_character(rack):
    assert labels("%") == []


def test_the_palette_gets_the_list_alone_and_the_page_stands_by_itself(ada, rack):
    part = ada.get("/search/?q=rack", headers={"HX-Request": "true"}).content.decode()
    assert part.lstrip().startswith('<a role="option"')
    page = Page(ada.get("/search/?q=rack").content.decode())
    assert page.faults() == []


def test_a_search_takes_six_queries_whatever_it_finds(rack):
    with CaptureQueriesContext(connection) as queries:
        search(text="0", role="admin")
    assert len(queries) == 6
