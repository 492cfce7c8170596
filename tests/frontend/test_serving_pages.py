"""The pages of endpoints as documents, in both languages; who may open and do what; how many queries each takes."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from endpoints.models import ApiKey, Endpoint, Gateway, Rollout, Secret, ServingHost
from endpoints.services.gateways import gateway_create
from tests.endpoints.world import Site
from tests.fleet.factories import OPERATOR
from tests.frontend.html import Page
from tests.frontend.serving import serving_world

pytestmark = pytest.mark.django_db

SHAPE = (
    "parameters=8.2&layers=36&attention_heads=32&kv_heads=8&head_size=128&precision=bfloat16&context=8192&concurrency=4"
)
WIZARD = "/endpoints/new/?kind=vllm&source=huggingface&model=Qwen/Qwen3-8B&runtime=process"
ARGUMENTS = f"{WIZARD}&{SHAPE}&gpus=1"
LIMITS = "start_limit_seconds=1800&drain_seconds=300&arg_max_num_seqs=64"
VIEWED = {
    "/endpoints/": None,
    "/endpoints/?phase=bad&q=c": None,
    "/endpoints/?part=rows": None,
    "/gateways/": None,
    "endpoint": "endpoint",
    "endpoint-latency": "endpoint",
    "endpoint-replicas": "endpoint",
    "endpoint-revisions": "endpoint",
    "endpoint-settings": "endpoint",
    "replica": "replica",
    "server": "server",
    "run": None,
    "failed-run": None,
    "diff": None,
}
MANAGED = {
    "/endpoints/new/": None,
    f"{WIZARD}&step=hardware": None,
    f"{ARGUMENTS}&step=hardware": None,
    f"{ARGUMENTS}&step=arguments": None,
    f"{ARGUMENTS}&{LIMITS}&step=replicas": None,
    f"{ARGUMENTS}&{LIMITS}&name=new&desired_replicas=1&requires_key=yes&is_spread=yes&step=review": None,
    "endpoint-deploy": "endpoint",
    "review": None,
    "endpoint-one-keys": "endpoint",
    "/gateways/new/": None,
    "gateway-edit": "gateway",
    "gateway-remove": "gateway",
    "/keys/": None,
    "/keys/new/": None,
    "/secrets/": None,
    "server-serving": "server",
    "server-cordon": "server",
    **{f"act-{name}": None for name in ("scale", "restart", "rollback", "pause", "resume", "cancel", "delete")},
}
PARTS = ("part=",)
# Each includes 3 of the shell: session, person, silent agents.
QUERIES = {
    "/endpoints/": 22,
    "endpoint": 28,
    "endpoint-latency": 14,
    "endpoint-replicas": 7,
    "endpoint-revisions": 6,
    "replica": 7,
    "run": 8,
    "failed-run": 15,
    "/gateways/": 7,
    "/keys/": 6,
    "server": 26,
}


@pytest.fixture
def world(people):
    return serving_world()


def address(name, world):
    if name.startswith("/"):
        return name
    chat = world["endpoint"].pk
    if name.startswith("act-"):
        return reverse("endpoint-act", args=[chat, name.removeprefix("act-")]) + "?replicas=3&number=1"
    special = {
        "run": lambda: reverse("endpoint-run", args=[chat, world["run"].pk]),
        "failed-run": lambda: reverse("endpoint-run", args=[world["broken"].pk, world["failed_run"].pk]),
        "diff": lambda: reverse("endpoint-revisions", args=[chat]) + "?before=1&after=2",
        "review": lambda: reverse("endpoint-deploy", args=[chat]) + "?arg_max_num_seqs=32&step=review",
    }
    if name in special:
        return special[name]()
    return reverse(name, args=[world[{**VIEWED, **MANAGED}[name]].pk])


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_every_page_is_a_sound_document_in_both_languages(ada, people, world, language):
    people["admin"].language = language
    people["admin"].save()
    faults = {}
    for name in [*VIEWED, *MANAGED]:
        answer = ada.get(address(name, world))
        found = [answer.status_code] if answer.status_code != 200 else []
        if "part=" not in name:
            found += Page(answer.content.decode()).faults()
        if found:
            faults[name] = found
    assert faults == {}


@pytest.mark.parametrize("role", ["viewer", "operator", "admin"])
def test_a_page_opens_for_the_roles_that_may(browser, world, role):
    client = browser(role)
    wanted = dict.fromkeys(VIEWED, 200) | dict.fromkeys(MANAGED, 403 if role == "viewer" else 200)
    assert {name: client.get(address(name, world)).status_code for name in wanted} == wanted


def test_a_viewer_meets_no_way_to_change_anything(browser, world):
    client = browser("viewer")
    for name in VIEWED:
        page = Page(client.get(address(name, world)).content.decode()) if "part=" not in name else None
        if page is None:
            continue
        forms = {form.get("action") or "" for form in page.all("form") if form.get("method") == "post"}
        changing = ("/endpoints/", "/gateways/", "/keys/", "/secrets/", "/servers/")
        assert [action for action in forms if action.startswith(changing)] == [], name
        assert not [
            link.get("href")
            for link in page.all("a")
            if re.search(r"/(new|deploy|cordon|scale|delete)/", link.get("href") or "")
        ], name


def test_who_may_not_is_refused_and_nothing_changes(browser, world):
    client, chat, server = browser("viewer"), world["endpoint"].pk, world["server"].pk

    def state():
        rollouts = list(Rollout.objects.order_by("pk").values_list("pk", "state"))
        endpoints = list(Endpoint.objects.order_by("pk").values_list("desired_replicas", "deleting_at", "project"))
        counts = (Gateway.objects.count(), ApiKey.objects.filter(revoked_at=None).count(), Secret.objects.count())
        return rollouts, endpoints, counts, list(ServingHost.objects.values_list("is_cordoned", "address"))

    before = state()
    writes = [
        *(reverse("endpoint-act", args=[chat, name]) for name in ("scale", "restart", "rollback", "pause", "cancel", "delete")),
        reverse("endpoint-settings", args=[chat]),
        reverse("endpoint-deploy", args=[chat]) + "?step=review",
        f"{ARGUMENTS}&{LIMITS}&name=new&desired_replicas=1&requires_key=yes&is_spread=yes&step=review",
        "/gateways/new/",
        reverse("gateway-edit", args=[world["gateway"].pk]),
        reverse("gateway-remove", args=[world["gateway"].pk]),
        "/keys/new/",
        reverse("endpoint-key-revoke", args=[world["key"].pk]),
        "/secrets/",
        reverse("secret-remove", args=["HF_TOKEN"]),
        reverse("server-serving", args=[server]),
        reverse("server-cordon", args=[server]),
        reverse("server-uncordon", args=[server]),
    ]  # fmt: skip
    body = {
        "replicas": "9",
        "number": "1",
        "typed_name": "chat",
        "name": "x",
        "port": "9",
        "value": "v",
        "project": "y",
    }
    assert {path: client.post(path, body).status_code for path in writes} == dict.fromkeys(writes, 403)
    assert state() == before


@pytest.mark.parametrize("name", QUERIES)
def test_a_page_takes_a_fixed_number_of_queries(ada, world, name):
    path = address(name, world)
    ada.get(path)  # notes the use of the session
    with CaptureQueriesContext(connection) as queries:
        ada.get(path)
    assert len(queries) == QUERIES[name], [query["sql"][:110] for query in queries]


def test_secrets_and_keys_are_never_shown(ada, world):
    texts = [ada.get(address(name, world)).content.decode() for name in [*VIEWED, *MANAGED]]
    assert not [text for text in texts if "hf_very_secret_value" in text or world["endpoint"].upstream_key in text]


def test_the_page_of_keys_says_what_several_gateways_make_of_a_limit(ada, world):
    told = "up to 2 times its requests per minute"
    assert told not in ada.get("/keys/").content.decode()
    gateway_create(server_id=Site("rack-9").server.pk, actor=OPERATOR)
    assert told in ada.get("/keys/").content.decode()
