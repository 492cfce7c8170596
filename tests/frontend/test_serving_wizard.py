"""The deploy wizard and the runs it leads to: every step is checked at its field, every failure has what would help."""

import json
from urllib.parse import urlencode

import pytest
from django.urls import reverse

from endpoints.models import Endpoint, Gateway, Revision, Rollout
from endpoints.services.gateways import gateway_create
from panel.core.clock import now
from tests.endpoints.test_traffic import leased
from tests.endpoints.world import Site, deployed, open_replicas, reconcile, settle
from tests.fleet.factories import OPERATOR
from tests.frontend.html import Page
from tests.frontend.serving import serving_world, vllm, write
from tests.frontend.serving_people import act, fields_with_errors, olga, one, text_of

__all__ = ["olga", "one"]  # fixtures, used here by name

pytestmark = pytest.mark.django_db


MODEL = {"kind": "vllm", "source": "huggingface", "model": "Qwen/Qwen3-8B", "runtime": "process", "version": "0.18.0"}
SHAPE = {"parameters": "8.2", "layers": "36", "attention_heads": "32", "kv_heads": "8", "head_size": "128"}
HARDWARE = {"precision": "bfloat16", "context": "8192", "concurrency": "4", "gpus": "1"}
ARGUMENTS = {"start_limit_seconds": "1800", "drain_seconds": "300", "arg_max_num_seqs": "64"}
REPLICAS = {"name": "new", "desired_replicas": "1", "requires_key": "yes", "is_spread": "yes"}
ALL = {**MODEL, **HARDWARE, **ARGUMENTS, **REPLICAS}


def test_the_whole_wizard_deploys_an_endpoint_without_scripts(olga, people):
    Site("rack-1", cards=2)
    data = {}
    for step, given in (("hardware", MODEL), ("arguments", HARDWARE), ("replicas", ARGUMENTS), ("review", REPLICAS)):
        data |= given
        answer = olga.get("/endpoints/new/", {**data, "step": step})
        assert answer.status_code == 200
        assert answer.context["wizard"].step == step
    body = {"environment": "LOG=1", "secret_environment": "", "note": "first"}
    answer = olga.post(f"/endpoints/new/?{answer.wsgi_request.GET.urlencode()}", body)
    endpoint = Endpoint.objects.get(name="new")
    assert answer["Location"] == reverse("endpoint-run", args=[endpoint.pk, Rollout.objects.get(endpoint=endpoint).pk])
    spec = Revision.objects.get(endpoint=endpoint).spec
    assert (spec["arguments"]["max_num_seqs"], spec["environment"], spec["model"]) == (
        64,
        {"LOG": "1"},
        "Qwen/Qwen3-8B",
    )


@pytest.mark.parametrize(
    ("change", "step", "field"),
    [
        ({"model": ""}, "model", "model"),
        ({"model": "not a name"}, "model", "model"),
        ({"source": "modelscope", "kind": "tgi"}, "model", "source"),
        ({"context": "0"}, "hardware", "context"),
        ({"arg_max_num_seqs": "100000"}, "arguments", "arg_max_num_seqs"),
        ({"extra_arguments": "--api-key x"}, "arguments", "extra_arguments"),
        ({"extra_arguments": "--seed '1"}, "arguments", "extra_arguments"),
        ({"name": "No Name"}, "replicas", "name"),
        ({"labels": "pool"}, "replicas", "labels"),
        ({"max_price": "3", "max_price_currency": ""}, "replicas", "max_price_currency"),
        ({"kind": "custom", "command": "engine", "model": ""}, "model", "command"),
    ],
)
def test_what_is_wrong_is_shown_at_its_field_of_its_step(olga, people, change, step, field):
    answer = olga.get("/endpoints/new/", {**ALL, **change, "step": "review"})
    assert answer.context["wizard"].step == step
    assert field in fields_with_errors(answer), answer.context["form"].errors


def test_a_name_that_is_taken_is_said_at_the_review(olga, one):
    answer = olga.post(f"/endpoints/new/?{_query({**ALL, 'name': 'chat', 'step': 'review'})}", {})
    assert answer.status_code == 400
    assert "There is an endpoint of this name." in text_of(answer)


def test_a_secret_that_is_not_kept_is_named(olga, people):
    body = {"secret_environment": "HF_TOKEN=MY_TOKEN"}
    answer = olga.post(f"/endpoints/new/?{_query({**ALL, 'step': 'review'})}", body)
    assert "MY_TOKEN" in text_of(answer)
    assert "secret_environment" in fields_with_errors(answer)
    assert not Endpoint.objects.exists()


def _query(data):
    return urlencode(data)


def test_the_hardware_step_says_where_it_fits_and_what_a_replica_costs(olga, people):
    site = Site("rack-1", cards=2)
    leased(site.server, "20")
    answer = olga.get("/endpoints/new/", {**MODEL, **HARDWARE, **SHAPE, "step": "hardware"})
    text = text_of(answer)
    assert "Where it fits" in text
    assert "rack-1" in text
    assert "¥10.00" in text
    (row,) = answer.context["sizing"].servers
    assert row.fit.verdict == "fits"
    huge = olga.get("/endpoints/new/", {**MODEL, **HARDWARE, **SHAPE, "parameters": "900", "step": "hardware"})
    assert huge.context["sizing"].servers[0].fit.verdict == "does_not"


def test_a_pasted_config_fills_the_shape_and_a_wrong_one_says_what_it_lacks(olga, people):
    config = json.dumps(
        {
            "num_hidden_layers": 36, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
            "head_dim": 128, "vocab_size": 151936, "intermediate_size": 12288,
        }
    )  # fmt: skip
    answer = olga.get("/endpoints/new/", {**MODEL, **HARDWARE, "config": config, "step": "hardware"})
    assert answer.context["form"]["layers"].value() == "36"
    assert 8 < float(answer.context["form"]["parameters"].value()) < 8.3
    wrong = olga.get("/endpoints/new/", {**MODEL, **HARDWARE, "config": "{}", "step": "hardware"})
    assert "num_hidden_layers" in text_of(wrong)
    half = olga.get("/endpoints/new/", {**MODEL, **HARDWARE, "parameters": "8", "step": "hardware"})
    assert fields_with_errors(half) >= {"layers", "kv_heads"}


def test_what_sizing_finds_stands_in_the_arguments(olga, people):
    Site("rack-1", cards=2)
    answer = olga.get("/endpoints/new/", {**MODEL, **HARDWARE, **SHAPE, "step": "arguments"})
    form = answer.context["form"]
    assert (str(form["arg_max_model_len"].value()), str(form["arg_max_num_seqs"].value())) == ("8192", "4")


def test_a_new_revision_begins_with_the_old_one_and_shows_the_difference(olga, one):
    endpoint, _site = one
    path = reverse("endpoint-deploy", args=[endpoint.pk])
    answer = olga.get(path, {"arg_max_model_len": "4096", "step": "review"})
    assert answer.context["wizard"].step == "review"
    assert [(each.name, each.before, each.after) for each in answer.context["changes"]] == [
        ("arguments.max_model_len", "8192", "4096")
    ]
    olga.post(f"{path}?{_query({'arg_max_model_len': '4096', 'step': 'review'})}", {"note": "shorter"})
    newest = Revision.objects.filter(endpoint=endpoint).latest("number")
    assert (newest.number, newest.spec["arguments"]["max_model_len"], newest.note) == (2, 4096, "shorter")


def test_a_failed_run_shows_its_class_its_line_and_what_would_help(olga, people):
    world = serving_world()
    path = reverse("endpoint-run", args=[world["broken"].pk, world["failed_run"].pk])
    answer = olga.get(path)
    text = text_of(answer)
    assert "The card ran out of memory." in text
    assert "torch.OutOfMemoryError" in text
    link = next(e for e in Page(answer.content.decode()).all("a") if "Apply max_num_seqs = 32" in e.text)
    review = olga.get(link.get("href"))
    assert review.context["wizard"].step == "review"
    assert review.context["spec"].arguments["max_num_seqs"] == 32


def test_the_run_counts_its_steps_in_the_title(olga, one):
    endpoint, _site = one
    rollout = Rollout.objects.get(endpoint=endpoint)
    write(open_replicas(endpoint)[0], "INFO:     Application startup complete.")
    assert "<title>9/10" in olga.get(reverse("endpoint-run", args=[endpoint.pk, rollout.pk])).content.decode()
    gateway_create(server_id=_site.server.pk, actor=OPERATOR)
    Gateway.objects.update(applied_version=10_000, reported_at=now())
    part = olga.get(reverse("endpoint-run", args=[endpoint.pk, rollout.pk]) + "?part=status").content.decode()
    assert part.startswith("<title>10/10")


def test_a_log_comes_with_the_first_replica_of_a_run_that_waited_for_a_place(olga, one):
    endpoint, site = one
    waiting = deployed("big", engine=vllm(), gpus=2, desired_replicas=1)
    reconcile()
    path = reverse("endpoint-run", args=[waiting.pk, Rollout.objects.get(endpoint=waiting).pk])
    assert "part=status&amp;log=none" in olga.get(path).content.decode()
    assert "hx-swap-oob" not in olga.get(f"{path}?part=status&log=none").content.decode()
    olga.post(act(endpoint, "scale"), {"replicas": "0"})
    settle(sites=[site])
    part = olga.get(f"{path}?part=status&log=none").content.decode()
    assert '<div id="run-log" hx-swap-oob="true">' in part
    assert "log=none" not in part


def test_a_log_is_searched_by_generation_and_downloaded(olga, one):
    endpoint, _site = one
    replica = open_replicas(endpoint)[0]
    write(replica, "the first start", "boom")
    write(replica, "the second start", "<b>fine</b>", generation=2)
    shown = olga.get(reverse("replica", args=[replica.pk])).content.decode()
    assert "&lt;b&gt;fine&lt;/b&gt;" in shown
    assert "the first start" not in shown
    before = text_of(olga.get(reverse("replica", args=[replica.pk]) + "?generation=1&q=BOOM"))
    assert "boom" in before
    assert "the first start" not in before
    answer = olga.get(reverse("replica-log", args=[replica.pk]) + "?generation=1")
    assert answer.content == b"the first start\nboom\n"
    assert "attachment" in answer["Content-Disposition"]
