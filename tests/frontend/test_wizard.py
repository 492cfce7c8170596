"""The deploy wizard as a newcomer meets it: no complaint before a word was typed, nothing lost on the way, and no JSON."""

import json
import re
from urllib.parse import urlencode

import pytest
from django.urls import reverse

from endpoints.models import Endpoint, Revision
from endpoints.services.gateways import gateway_create
from tests.endpoints.world import Site, deployed, settle, spec
from tests.fleet.factories import OPERATOR
from tests.frontend.html import Page
from tests.frontend.serving import vllm

pytestmark = pytest.mark.django_db

BODY = {"model": "fake", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1, "stream": True}
CUSTOM = {
    "kind": "custom", "source": "huggingface", "runtime": "process", "command": "my-engine --port {port} --greeting 'good day'",
    "ready_kind": "chat_stream", "ready_path": "/v1/chat/completions", "ready_body": json.dumps(BODY),
    "health_path": "/health", "metrics_path": "/metrics",
}  # fmt: skip
REST = {
    "gpus": "0", "context": "8192", "concurrency": "4", "precision": "bfloat16", "start_limit_seconds": "60",
    "drain_seconds": "30", "name": "mine", "desired_replicas": "2", "requires_key": "yes", "is_spread": "yes",
}  # fmt: skip


@pytest.fixture
def olga(browser):
    return browser("operator")


def text_of(answer):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def fields_with_errors(answer):
    page = Page(answer.content.decode())
    return {e.get("name") for e in page.all("input", "select", "textarea") if e.get("aria-invalid") == "true"}


@pytest.mark.parametrize("kind", ["vllm", "llamacpp", "custom"])
def test_the_ways_to_start_open_a_form_without_a_complaint(olga, people, kind):
    answer = olga.get("/endpoints/new/", {"kind": kind, "step": "model"})
    assert fields_with_errors(answer) == set()
    assert answer.context["form"]["kind"].value() == kind


def test_an_engine_of_ones_own_is_asked_a_real_request(olga, people):
    Site("rack-1")
    query = urlencode({**CUSTOM, **REST, "step": "review"})
    answer = olga.get(f"/endpoints/new/?{query}")
    assert answer.context["wizard"].step == "review", answer.context["form"].errors
    text = text_of(answer)
    assert "Ready is only that a page answers" not in text
    assert "my-engine --port {port} --greeting 'good day'".replace("'", "&#x27;") in text
    assert "2 replicas without a GPU" in text
    olga.post(f"/endpoints/new/?{query}", {})
    custom = Revision.objects.get(endpoint__name="mine").spec["custom"]
    assert custom == {
        "command": ["my-engine", "--port", "{port}", "--greeting", "good day"], "ready_kind": "chat_stream",
        "ready_path": "/v1/chat/completions", "ready_body": BODY, "health_path": "/health", "metrics_path": "/metrics",
    }  # fmt: skip


@pytest.mark.parametrize("body", ["{", "[1]", '"text"'])
def test_a_body_that_is_no_object_is_said_at_its_field(olga, people, body):
    answer = olga.get("/endpoints/new/", {**CUSTOM, **REST, "ready_body": body, "step": "review"})
    assert (answer.context["wizard"].step, fields_with_errors(answer)) == ("model", {"ready_body"})


def test_a_new_revision_keeps_what_the_wizard_does_not_show(olga, people):
    """Else “what you do not change stays” would not be true of specs that came over the API."""
    site = Site("rack-1")
    custom = {
        "command": ["my-engine", "--port", "{port}"], "ready_kind": "chat_stream", "ready_path": "/v1/chat/completions",
        "ready_body": BODY, "metrics_path": "/metrics", "api_key_variable": "MY_KEY",
    }  # fmt: skip
    endpoint = deployed("mine", engine=spec(kind="custom", runtime="process", custom=custom), gpus=0)
    settle(sites=[site])
    answer = olga.get(reverse("endpoint-deploy", args=[endpoint.pk]), {"step": "review"})
    assert answer.context["wizard"].step == "review", answer.context["form"].errors
    assert answer.context["changes"] == []


def test_every_step_of_a_new_revision_is_one_click_away(olga, people):
    site = Site("rack-1", cards=1)
    endpoint = deployed("chat", engine=vllm(), gpus=1)
    settle(sites=[site])
    answer = olga.get(reverse("endpoint-deploy", args=[endpoint.pk]))
    links = answer.context["links"]
    assert [bool(each["href"]) for each in links] == [False, True, True, True], "all but the one shown"
    assert (
        olga.get(reverse("endpoint-deploy", args=[endpoint.pk]) + links[2]["href"]).context["wizard"].step
        == "arguments"
    )
    fresh = olga.get("/endpoints/new/").context["links"]
    assert [bool(each["href"]) for each in fresh][1:] == [False] * 4


def test_the_snippets_of_an_engine_of_ones_own_that_chats_are_whole_requests(olga, people):
    site = Site("rack-1")
    gateway_create(server_id=site.server.pk, actor=OPERATOR, public_url="https://llm.example.com")
    custom = {
        "command": ["e", "{port}"],
        "ready_kind": "chat_stream",
        "ready_path": "/v1/chat/completions",
        "ready_body": BODY,
    }
    endpoint = deployed("mine", engine=spec(kind="custom", runtime="process", custom=custom), gpus=0)
    settle(sites=[site])
    snippets = olga.get(reverse("endpoint", args=[endpoint.pk])).context["snippets"]
    assert "-d '" in snippets.curl
    assert '"model": "fake"' in snippets.curl
    assert 'base_url="https://llm.example.com/mine/v1"' in snippets.python


def test_a_new_key_stands_in_commands_that_can_be_run_at_once(olga, people):
    site = Site("rack-1", cards=1)
    gateway_create(server_id=site.server.pk, actor=OPERATOR, public_url="https://llm.example.com")
    endpoint = deployed("chat", engine=vllm(), gpus=1)
    settle(sites=[site])
    answer = olga.post(f"/keys/new/?endpoint={endpoint.name}", {"name": "app", "endpoints": ["chat"]})
    token = answer.context["text"]
    assert f"Authorization: Bearer {token}" in answer.content.decode().replace("&quot;", '"')
    assert "https://llm.example.com/chat/v1/chat/completions" in answer.content.decode()
    assert Endpoint.objects.count() == 1
