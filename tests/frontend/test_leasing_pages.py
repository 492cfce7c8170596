"""The pages of what is rented as documents, in both languages; who may open and do what; how many queries each takes."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from fleet.models import Lease, Operation, ProviderAccount
from tests.frontend.html import Page
from tests.frontend.leasing import everything, running

pytestmark = pytest.mark.django_db

LISTS = ["/providers/", "/offers/", "/operations/", "/leases/", "/drift/", "/exchange-rates/", "/waste/"]
ONE = {"provider": "account", "operation": "operation", "lease": "lease", "server": "server"}
VIEWED = [*LISTS, "/leases/?show=all", "/offers/compare/", *ONE]
MANAGED = ["/leases/new/", "order", "lease-terms"]
ADMINS = ["/providers/new/", "/providers/new/?kind=simulated", "/providers/new/?kind=aliyun", "provider-edit"]
OF = {**ONE, "order": "offer", "lease-terms": "lease", "provider-edit": "account"}
# Each includes 3 of the shell (session, person, silent agents) and, where there are tabs, 1 of theirs.
QUERIES = {
    "/providers/": 8,
    "/offers/": 11,
    "/operations/": 6,
    "/leases/": 15,
    "/drift/": 7,
    "/exchange-rates/": 5,
    "/waste/": 5,
    "provider": 9,
    "operation": 6,
    "lease": 20,
    "order": 17,
}


@pytest.fixture
def rented(people):
    return everything()


def address(name, rented):
    return name if name.startswith("/") else reverse(name, args=[rented[OF[name]].pk])


@pytest.mark.parametrize("language", ["en", "zh-hans"])
@pytest.mark.parametrize("name", [*VIEWED, *MANAGED, *ADMINS])
def test_a_page_is_a_sound_document_in_both_languages(ada, people, rented, name, language):
    people["admin"].language = language
    people["admin"].save()
    answer = ada.get(address(name, rented))
    assert answer.status_code == 200
    assert Page(answer.content.decode()).faults() == []


@pytest.mark.parametrize("name", LISTS)
def test_an_empty_page_says_what_would_stand_there(ada, name):
    text = ada.get(name).content.decode()
    assert Page(text).faults() == []
    assert "state-empty" in text or "No account at a provider yet" in text


@pytest.mark.parametrize(
    ("names", "roles"),
    [
        (VIEWED, {"viewer", "operator", "admin"}),
        (MANAGED, {"operator", "admin"}),
        (ADMINS, {"admin"}),
    ],
    ids=["viewed", "managed", "admins"],
)
@pytest.mark.parametrize("role", ["viewer", "operator", "admin"])
def test_a_page_opens_for_the_roles_that_may(browser, rented, names, roles, role):
    client = browser(role)
    wanted = dict.fromkeys(names, 200 if role in roles else 403)
    assert {name: client.get(address(name, rented)).status_code for name in names} == wanted


@pytest.mark.parametrize("name", [*VIEWED])
def test_a_viewer_meets_no_way_to_spend_money_and_no_key(browser, rented, name):
    ProviderAccount.objects.update(credential_hint="…wxyz")
    text = browser("viewer").get(address(name, rented)).content.decode()
    page = Page(text)
    forms = {form.get("action") for form in page.all("form") if form.get("method") == "post"}
    spending = ("/leases/", "/drift/", "/providers/", "/offers/")
    assert [action for action in forms if action and action.startswith(spending)] == []
    assert "wxyz" not in text
    assert not [link for link in page.all("a") if "/order/" in (link.get("href") or "")]


WRITES = {
    "operator": [
        ("provider-sync", "account", {}),
        ("provider-adopt", "account", {}),
        ("order", "offer", {"step": "order", "name": "x"}),
        ("lease-tie", "lease", {}),
        ("contract-close", "lease", {}),
        ("difference-adopt", "drift", {}),
        ("difference-end", "drift", {"typed_name": "forgotten-box"}),
        ("difference-accept", "price", {}),
        ("difference-ignore", "drift", {"for": "7"}),
    ],
    "admin": [
        ("provider-pause", "account", {"is_paused": "true"}),
        ("provider-key", "account", {}),
        ("provider-edit", "account", {"name": "x"}),
        ("provider-remove", "account", {"typed_name": "trial"}),
    ],
}


@pytest.mark.parametrize("least", ["operator", "admin"])
def test_who_may_not_is_refused_and_nothing_changes(browser, rented, least):
    lesser = {"operator": ["viewer"], "admin": ["viewer", "operator"]}[least]
    before = (Operation.objects.count(), Lease.objects.count(), ProviderAccount.objects.filter(removed_at=None).count())
    for role in lesser:
        client = browser(role)
        for name, of, body in WRITES[least]:
            assert client.post(reverse(name, args=[rented[of].pk]), body).status_code == 403, (role, name)
    for act in ("start", "stop", "reboot", "snapshot", "terminate"):
        path = reverse("lease-act", args=[rented["lease"].pk, act])
        assert browser("viewer").post(path, {"typed_name": rented["lease"].name}).status_code == 403
    after = (Operation.objects.count(), Lease.objects.count(), ProviderAccount.objects.filter(removed_at=None).count())
    assert before == after


@pytest.mark.parametrize(
    "name", ["provider-sync", "provider-adopt", "provider-pause", "provider-remove", "provider-key"]
)
def test_reading_an_address_of_an_account_never_writes(ada, rented, name):
    assert ada.get(reverse(name, args=[rented["account"].pk])).status_code == 405


@pytest.mark.parametrize("name", QUERIES)
def test_a_page_takes_a_fixed_number_of_queries(ada, rented, name):
    path = address(name, rented)
    ada.get(path)  # notes the use of the session, and asks the account for choices of an order
    with CaptureQueriesContext(connection) as queries:
        ada.get(path)
    assert len(queries) == QUERIES[name], [query["sql"][:120] for query in queries]


def test_more_leases_cost_no_more_queries(ada, rented):
    ada.get("/leases/")
    for at in range(4):
        running(rented["account"], f"more-{at}")
    with CaptureQueriesContext(connection) as queries:
        ada.get("/leases/")
    assert len(queries) == QUERIES["/leases/"]


def test_keys_of_providers_are_never_shown_to_people(ada, rented):
    for path in ("/fleet/", f"/servers/{rented['server'].pk}/", "/search/?q=trial", "/search/?q=trainer"):
        text = re.sub(r"<[^>]+>", " ", ada.get(path).content.decode())
        assert not re.search(r"\bsimulated\b(?! fleet)", text), path


def test_an_operation_on_its_way_is_in_progress(ada, rented):
    Operation.objects.filter(pk=rented["operation"].pk).update(state="running", ended_at=None)
    text = ada.get(f"/operations/{rented['operation'].pk}/").content.decode()
    assert '<span class="word">In progress</span>' in text
