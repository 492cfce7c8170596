"""What people do on the pages of endpoints: asked with its consequences first, refused at the field, done once."""

import re

import pytest
from django.urls import reverse

from endpoints.models import ApiKey, Endpoint, Gateway, Replica, Rollout, Secret, ServingHost
from tests.endpoints.test_traffic import leased
from tests.endpoints.world import Site, deployed, open_replicas, reconcile, settle
from tests.frontend.serving import later, serving_world, vllm
from tests.frontend.serving_people import act, fields_with_errors, olga, one, text_of

__all__ = ["olga", "one"]  # fixtures, used here by name

pytestmark = pytest.mark.django_db


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
