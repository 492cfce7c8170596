"""Servers over the API: lists with filters, what is written and recorded."""

import pytest

from fleet.agent import wire
from fleet.models import Gpu, Server
from fleet.services.servers import server_end
from panel.accounts.models import AuditEntry
from panel.core.clock import now
from tests.fleet.factories import OPERATOR, card_uuid
from tests.fleet.places import SERVERS, names

pytestmark = pytest.mark.django_db


def test_a_server_as_the_api_shows_it(viewer_client, machine):
    body = viewer_client.get(f"{SERVERS}{machine.agent.server_id}/").json()
    assert (body["name"], body["state"], body["gpu_health"], body["lease"]) == ("rack-1", "ready", "healthy", None)
    assert (body["gpus_known"], body["gpus_answering"], body["gpus_missing"]) == (8, 8, 0)
    assert body["agent"]["id"] == machine.agent.pk
    assert body["agent"]["server_name"] == "rack-1"
    assert body["facts"]["hostname"] == "node-17"
    assert body["driver_advice"]["sentence"] == "The NVIDIA driver answers."
    assert "token" not in str(body)


def test_seven_of_eight_cards_answer(viewer_client, machine):
    machine.send(at=now(), gpus=machine.cards[:7])
    body = viewer_client.get(f"{SERVERS}{machine.agent.server_id}/").json()
    assert (body["gpus_known"], body["gpus_answering"], body["gpus_missing"]) == (8, 7, 1)


def test_a_driver_mismatch_says_what_to_do(viewer_client, machine):
    machine.send(
        at=now(), gpus=[], driver=wire.Driver(state="version_mismatch", detail="Driver/library version mismatch")
    )
    body = viewer_client.get(f"{SERVERS}{machine.agent.server_id}/").json()
    assert "mismatch" in body["driver_advice"]["sentence"]
    assert "Reboot" in body["driver_advice"]["next_step"]
    assert body["gpus_unknown"] == 8


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["rack-1", "rack-2"]),
        ("state=ready", ["rack-1", "rack-2"]),
        ("state=degraded&state=retired", []),
        ("provider=idc", ["rack-1"]),
        ("region=us-west", ["rack-2"]),
        ("model=4090", ["rack-2"]),
        ("search=NODE-17", ["rack-1"]),
        ("search=rack", ["rack-1", "rack-2"]),
        (f"search={card_uuid(21)}", ["rack-2"]),
        ("driver_state=ok&driver_state=no_gpu", ["rack-1", "rack-2"]),
        ("gpu_health=failed", []),
        ("is_simulated=true", []),
        ("is_simulated=false", ["rack-1", "rack-2"]),
        ("label=team=ml", ["rack-1"]),
        ("label=team", ["rack-1", "rack-2"]),
        ("label=nobody", []),
    ],
)
def test_servers_are_filtered(viewer_client, machine, other, query, expected):
    Server.objects.filter(name="rack-1").update(labels={"team": "ml"})
    Server.objects.filter(name="rack-2").update(labels={"team": "web"})
    assert names(viewer_client.get(f"{SERVERS}?{query}")) == expected


@pytest.mark.parametrize("query", ["state=strange", "is_simulated=x&state=nope", "search=" + "x" * 101, "search=%00"])
def test_a_filter_that_is_none_is_a_400(viewer_client, query):
    assert viewer_client.get(f"{SERVERS}?{query}").status_code == 400


def test_retired_servers_are_listed_when_asked_for(viewer_client, machine):
    server_end(server_id=machine.agent.server_id, reason="retired", actor=OPERATOR)
    assert names(viewer_client.get(SERVERS)) == []
    assert names(viewer_client.get(f"{SERVERS}?state=retired")) == ["rack-1"]
    assert viewer_client.get(f"{SERVERS}{machine.agent.server_id}/").json()["state"] == "retired"


def test_lists_come_in_pages(viewer_client, machine, other):
    first = viewer_client.get(f"{SERVERS}?limit=1").json()
    assert [row["name"] for row in first["results"]] == ["rack-1"]
    second = viewer_client.get(first["next"]).json()
    assert [row["name"] for row in second["results"]] == ["rack-2"]
    assert second["next"] is None


def test_an_operator_renames_a_server_and_it_is_recorded(operator_client, machine):
    answer = operator_client.patch(f"{SERVERS}{machine.agent.server_id}/", {"name": "new", "labels": {"a": "b"}})
    assert (answer.status_code, answer.json()["name"], answer.json()["labels"]) == (200, "new", {"a": "b"})
    entry = AuditEntry.objects.get(action="server.update")
    assert entry.actor_name.endswith("of otto")


@pytest.mark.parametrize(
    "body", [{"name": ""}, {"name": "rack-2"}, {"labels": [1]}, {"labels": {"": "x"}}, {"name": "x" * 101}]
)
def test_a_name_or_label_that_is_none_is_a_400(operator_client, machine, other, body):
    answer = operator_client.patch(f"{SERVERS}{machine.agent.server_id}/", body)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["attr"].startswith(next(iter(body)))


def test_a_server_goes_into_maintenance_and_comes_out(operator_client, machine):
    place = f"{SERVERS}{machine.agent.server_id}/maintenance/"
    answer = operator_client.post(place, {"is_on": True, "reason": "fans"})
    assert (answer.status_code, answer.json()["state"], answer.json()["state_reason"]) == (202, "maintenance", "fans")
    assert operator_client.post(place, {"is_on": False}).json()["state"] == "ready"


def test_a_server_is_retired_then_removed(operator_client, machine):
    place = f"{SERVERS}{machine.agent.server_id}/"
    refused = operator_client.delete(place)
    assert (refused.status_code, refused.json()["errors"][0]["code"]) == (409, "not_retired")
    assert operator_client.post(f"{place}retire/", {"reason": "contract over"}).json()["state"] == "retired"
    assert AuditEntry.objects.get(action="server.retire").reason == "contract over"
    assert operator_client.delete(place).status_code == 204
    assert operator_client.get(place).status_code == 404
    assert not Gpu.objects.exists()
