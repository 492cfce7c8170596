"""What people do on the pages of endpoints: asked with its consequences first, refused at the field, done once."""

import json
import re
from urllib.parse import urlencode

import pytest
from django.urls import reverse

from endpoints.models import ApiKey, Endpoint, Gateway, Replica, Revision, Rollout, Secret, ServingHost
from endpoints.services.gateways import gateway_create
from panel.core.clock import now
from tests.endpoints.test_traffic import leased
from tests.endpoints.world import Site, deployed, open_replicas, reconcile, settle
from tests.fleet.factories import OPERATOR
from tests.frontend.html import Page
from tests.frontend.serving import later, serving_world, vllm, write

pytestmark = pytest.mark.django_db

MODEL = {"kind": "vllm", "source": "huggingface", "model": "Qwen/Qwen3-8B", "runtime": "process", "version": "0.18.0"}
SHAPE = {"parameters": "8.2", "layers": "36", "attention_heads": "32", "kv_heads": "8", "head_size": "128"}
HARDWARE = {"precision": "bfloat16", "context": "8192", "concurrency": "4", "gpus": "1"}
ARGUMENTS = {"start_limit_seconds": "1800", "drain_seconds": "300", "arg_max_num_seqs": "64"}
REPLICAS = {"name": "new", "desired_replicas": "1", "requires_key": "yes", "is_spread": "yes"}
ALL = {**MODEL, **HARDWARE, **ARGUMENTS, **REPLICAS}


@pytest.fixture
def olga(browser):
    return browser("operator")


@pytest.fixture
def one(people):
    """A server with two cards and an endpoint whose one replica serves."""
    site = Site("rack-1", cards=2)
    endpoint = deployed("chat", engine=vllm(), gpus=1, desired_replicas=1)
    settle(sites=[site])
    return endpoint, site


def text_of(answer):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def act(endpoint, name, query=""):
    return reverse("endpoint-act", args=[endpoint.pk, name]) + query


def fields_with_errors(answer):
    page = Page(answer.content.decode())
    return {e.get("name") for e in page.all("input", "select", "textarea") if e.get("aria-invalid") == "true"}


def test_scaling_up_says_what_an_hour_costs_before_and_after_and_then_does_it(olga, one):
    endpoint, site = one
    leased(site.server, "20")
    asked = text_of(olga.get(act(endpoint, "scale", "?replicas=2")))
    assert "Change chat to 2 replicas?" in asked
    assert "¥10.00 now, ¥20.00 afterwards" in asked
    assert Endpoint.objects.get(pk=endpoint.pk).desired_replicas == 1
    olga.post(act(endpoint, "scale"), {"replicas": "2", "reason": "launch"})
    assert Endpoint.objects.get(pk=endpoint.pk).desired_replicas == 2


def test_scaling_down_names_what_stops_and_what_serves_on(olga, one):
    endpoint, site = one
    olga.post(act(endpoint, "scale"), {"replicas": "2"})
    settle(sites=[site])
    newest = open_replicas(endpoint)[-1]
    asked = text_of(olga.get(act(endpoint, "scale", "?replicas=1")))
    assert f"#{newest.pk} (rack-1)" in asked
    assert "1 replica serves on." in asked
    assert "callers get 503" in text_of(olga.get(act(endpoint, "scale", "?replicas=0")))


def test_more_than_there_is_room_for_is_said(olga, one):
    endpoint, _site = one
    assert "There is room for 1 of 3 now" in text_of(olga.get(act(endpoint, "scale", "?replicas=4")))


@pytest.mark.parametrize("given", ["", "-1", "many", "257", "1e3", "99999"])
def test_a_number_of_replicas_that_cannot_be_is_refused_with_the_bounds(olga, one, given):
    endpoint, _site = one
    answer = olga.post(act(endpoint, "scale"), {"replicas": given}, follow=True)
    assert "from 0 to 256" in text_of(answer)
    assert Endpoint.objects.get(pk=endpoint.pk).desired_replicas == 1


def test_a_rollout_without_a_spare_gpu_names_the_pause_beforehand(olga, people):
    site = Site("rack-1", cards=1)
    endpoint = deployed("chat", engine=vllm(), gpus=1, desired_replicas=1)
    settle(sites=[site])
    later(open_replicas(endpoint)[0], 95)
    asked = text_of(olga.get(act(endpoint, "restart")))
    assert "There will be a pause of about 1 m 35 s in which callers get 503." in asked


def test_a_rollout_with_a_spare_gpu_has_no_pause(olga, one):
    endpoint, _site = one
    assert "callers notice nothing" in text_of(olga.get(act(endpoint, "restart")))


def test_a_restart_leads_to_its_run(olga, one):
    endpoint, _site = one
    answer = olga.post(act(endpoint, "restart"))
    rollout = Rollout.objects.filter(endpoint=endpoint).latest("pk")
    assert answer["Location"] == reverse("endpoint-run", args=[endpoint.pk, rollout.pk])
    assert "Called off" not in text_of(olga.get(answer["Location"]))


def test_a_rollout_is_paused_resumed_and_called_off(olga, one):
    endpoint, _site = one
    olga.post(act(endpoint, "restart"))
    states = []
    for name in ("pause", "resume", "cancel"):
        olga.post(act(endpoint, name))
        states.append(Rollout.objects.filter(endpoint=endpoint).latest("pk").state)
    assert states == ["paused", "running", "cancelled"]


def test_an_endpoint_is_deleted_only_with_its_name(olga, one):
    endpoint, _site = one
    assert "Milder: scale it to 0" in text_of(olga.get(act(endpoint, "delete")))
    olga.post(act(endpoint, "delete"), {"typed_name": "chad"})
    assert Endpoint.objects.get(pk=endpoint.pk).deleting_at is None
    olga.post(act(endpoint, "delete"), {"typed_name": "chat"})
    assert Endpoint.objects.get(pk=endpoint.pk).deleting_at is not None


def test_rolling_back_deploys_the_revision_named(olga, one):
    endpoint, site = one
    olga.post(act(endpoint, "restart"))
    settle(sites=[site])
    olga.post(act(endpoint, "rollback"), {"number": "1"})
    assert Rollout.objects.filter(endpoint=endpoint).latest("pk").to_revision.number == 1
    answer = olga.post(act(endpoint, "rollback"), {"number": "77"}, follow=True)
    assert "There is no such revision." in text_of(answer)


# ---- the wizard


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


# ---- runs and logs


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


# ---- settings, gateways, keys, secrets, servers


def test_settings_are_saved_and_a_wrong_one_is_shown_at_its_field(olga, one):
    endpoint, _site = one
    path = reverse("endpoint-settings", args=[endpoint.pk])
    page = olga.get(path)
    values = {name: "" if value is None else value for name, value in page.context["form"].initial.items()}
    olga.post(
        path, values | {"project": "lab", "labels": "pool=prod", "hosts": "llm.example.com", "in_flight_limit": "9"}
    )
    saved = Endpoint.objects.get(pk=endpoint.pk)
    assert (saved.project, saved.hosts, saved.in_flight_limit) == ("lab", ["llm.example.com"], 9)
    assert saved.placement == {"labels": {"pool": "prod"}, "is_spread": True}
    wrong = olga.post(path, values | {"hosts": "not a host"})
    assert wrong.status_code == 400
    assert "hosts" in fields_with_errors(wrong)


def test_a_gateway_is_made_changed_and_given_up_only_with_its_name(olga, one):
    _endpoint, site = one
    olga.post("/gateways/new/", {"server": str(site.server.pk), "port": "8081"})
    gateway = Gateway.objects.get()
    assert gateway.port == 8081
    wrong = olga.post(reverse("gateway-edit", args=[gateway.pk]), {"port": "8081", "certificate_file": "/a.pem"})
    assert "key_file" in fields_with_errors(wrong)
    asked = text_of(olga.get(reverse("gateway-remove", args=[gateway.pk])))
    assert "1 endpoint loses this address: chat." in asked
    assert "It is the only one" in asked
    olga.post(reverse("gateway-remove", args=[gateway.pk]), {"typed_name": "rack"})
    assert Gateway.objects.exists()
    olga.post(reverse("gateway-remove", args=[gateway.pk]), {"typed_name": "rack-1"})
    assert not Gateway.objects.exists()


def test_a_key_is_shown_once_and_revoked(olga, one):
    body = {"name": "app", "endpoints": ["chat"], "lifetime": "30", "requests_per_minute": "60"}
    made = olga.post("/keys/new/", body)
    text = re.search(r'id="key"[^>]*>([^<]+)<', made.content.decode())[1]
    key = ApiKey.objects.get()
    assert text.startswith(key.prefix) or key.prefix in text
    assert made["Cache-Control"].startswith("max-age=0")
    assert text not in olga.get("/keys/").content.decode()
    olga.post(reverse("endpoint-key-revoke", args=[key.pk]))
    assert ApiKey.objects.get().revoked_at is not None


def test_a_secret_is_kept_under_its_name_and_forgotten(olga, one):
    wrong = olga.post("/secrets/", {"name": "no spaces", "value": "v"})
    assert "name" in fields_with_errors(wrong)
    olga.post("/secrets/", {"name": "HF_TOKEN", "value": "hf_1"})
    assert Secret.objects.get().value == "hf_1"
    olga.post(reverse("secret-remove", args=["HF_TOKEN"]))
    assert not Secret.objects.exists()


def test_a_server_is_emptied_and_takes_replicas_again(olga, one):
    _endpoint, site = one
    asked = text_of(olga.get(reverse("server-cordon", args=[site.server.pk]) + "?evacuate=yes"))
    assert "1 replica moves away, of: chat." in asked
    olga.post(reverse("server-cordon", args=[site.server.pk]), {"evacuate": "yes", "reason": "disk"})
    serving = ServingHost.objects.get(server=site.server)
    assert (serving.is_cordoned, serving.is_evacuating, serving.cordon_reason) == (True, True, "disk")
    assert "It is being emptied" in text_of(olga.get(reverse("server", args=[site.server.pk])))
    olga.post(reverse("server-uncordon", args=[site.server.pk]))
    assert not ServingHost.objects.get(server=site.server).is_cordoned


def test_how_a_server_serves_is_changed_and_ports_that_cannot_be_are_refused(olga, one):
    _endpoint, site = one
    path = reverse("server-serving", args=[site.server.pk])
    values = {
        "first_port": "20000",
        "last_port": "20009",
        "runtime": "process",
        "hf_endpoint": "https://hf.example.com",
    }
    olga.post(path, values)
    assert ServingHost.objects.get(server=site.server).hf_endpoint == "https://hf.example.com"
    assert olga.post(path, values | {"last_port": "19000"}).status_code == 400


# ---- elsewhere


def test_the_overview_counts_endpoints_and_names_those_that_hurt(olga, people):
    serving_world()
    text = text_of(olga.get("/"))
    assert "broken: its first deploy failed; it never answered." in text
    Replica.objects.filter(endpoint__name="chat").update(state="failed", reason="exited")
    reconcile()
    assert "hurt" in text_of(olga.get("/?part=endpoints"))


def test_the_search_finds_endpoints(olga, one):
    answer = text_of(olga.get("/search/?q=chat"))
    assert "Endpoint · " in answer


def test_events_of_endpoints_are_sentences_and_lead_to_their_page(browser, one):
    endpoint, _site = one
    page = browser("admin").get("/events/").content.decode()
    text = re.sub(r"<[^>]+>", " ", page)
    assert "Revision 1 is being rolled out" in text
    assert "Endpoint made" in text
    assert reverse("endpoint", args=[endpoint.pk]) in page
