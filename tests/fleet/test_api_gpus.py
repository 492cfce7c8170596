"""Cards over the API: what is known of each, what is never zero, and their history across servers."""

from datetime import timedelta

import pytest

from fleet.agent import wire
from monitoring.metrics import GPU_METRICS
from panel.accounts.models import AuditEntry
from panel.core.clock import now
from tests.fleet.factories import GIB, NOON, Machine, card, card_uuid, facts, joined
from tests.fleet.places import GPUS, SERVERS, ids, latest

pytestmark = pytest.mark.django_db


def test_missing_cards_are_forgotten_and_come_back_when_seen(operator_client, machine):
    machine.send(at=now(), gpus=machine.cards[:6])
    place = f"{SERVERS}{machine.agent.server_id}/forget-gpus/"
    named = operator_client.post(place, {"gpus": [machine.gpu(6).pk]}).json()
    assert (named["gpus_known"], named["gpus_missing"], named["state"]) == (7, 1, "degraded")
    body = operator_client.post(place, {}).json()
    assert (body["gpus_known"], body["gpus_missing"], body["state"], body["gpu_health"]) == (6, 0, "ready", "healthy")
    assert AuditEntry.objects.filter(action="gpu.forget").count() == 2
    machine.send(at=now(), gpus=[*machine.cards[:6], card(7, state="missing", facts=None)])
    assert machine.gpu(7).removed_at is not None
    machine.send(at=now())
    assert operator_client.get(f"{SERVERS}{machine.agent.server_id}/").json()["gpus_known"] == 8


def test_a_card_that_answers_is_not_forgotten(operator_client, machine, other):
    gpu = machine.gpu(0)
    answer = operator_client.post(f"{GPUS}{gpu.pk}/forget/", {})
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (409, "gpu_answers")
    stranger = other.server.gpus.first().pk
    answer = operator_client.post(f"{SERVERS}{machine.agent.server_id}/forget-gpus/", {"gpus": [stranger]})
    assert answer.status_code == 404


def test_a_card_as_the_api_shows_it(viewer_client, machine):
    gpu = machine.gpu(3)
    latest(gpu, utilization_percent=97, memory_used_bytes=100 * GIB, power_watts=650.5)
    body = viewer_client.get(f"{GPUS}{gpu.pk}/").json()
    assert (body["uuid"], body["index"], body["server_name"], body["state"]) == (card_uuid(3), 3, "rack-1", "ok")
    assert (body["memory_total_bytes"], body["activity"]) == (140 * GIB, "busy")
    assert (body["latest"]["utilization_percent"], body["latest"]["power_watts"]) == (97.0, 650.5)
    assert (body["latest"]["fan_percent"], body["latest"]["is_fresh"]) == (None, True)
    assert set(body["latest"]) >= {metric.name for metric in GPU_METRICS}
    assert body["history"] == [
        {
            "id": gpu.pk,
            "server": machine.agent.server_id,
            "server_name": "rack-1",
            "state": "ok",
            "first_seen_at": body["first_seen_at"],
            "last_seen_at": body["last_seen_at"],
            "removed_at": None,
        }
    ]


def test_a_card_that_never_gave_a_sample_has_no_latest_and_never_zero(viewer_client, machine):
    body = viewer_client.get(f"{GPUS}{machine.gpu(0).pk}/").json()
    assert (body["latest"], body["activity"]) == (None, "no_data")


def test_an_old_reading_is_shown_as_old(viewer_client, machine):
    latest(machine.gpu(0), at=now() - timedelta(days=31), utilization_percent=50)
    body = viewer_client.get(f"{GPUS}{machine.gpu(0).pk}/").json()
    assert (body["latest"]["is_fresh"], body["activity"]) == (False, "no_data")
    assert body["latest"]["age_seconds"] == pytest.approx(31 * 86_400, abs=5)


def test_cards_are_filtered(viewer_client, machine, other):
    busy, idle, parked = (machine.gpu(number) for number in range(3))
    latest(busy, utilization_percent=90, memory_used_bytes=130 * GIB)
    latest(idle, utilization_percent=0, memory_used_bytes=1 * GIB)
    latest(parked, utilization_percent=0, memory_used_bytes=60 * GIB)
    latest(machine.gpu(4), at=now() - timedelta(hours=1), utilization_percent=0, memory_used_bytes=0)
    small = other.server.gpus.first()
    latest(small, utilization_percent=0, memory_used_bytes=0)

    def found(query):
        return ids(viewer_client.get(f"{GPUS}?{query}"))

    assert len(found("")) == 10
    assert found("activity=busy") == {busy.pk}
    assert found("activity=idle") == {idle.pk, small.pk}
    assert found("activity=busy&activity=parked") == {busy.pk, parked.pk}
    assert found(f"min_free_memory_bytes={70 * GIB}") == {idle.pk, parked.pk}
    assert found(f"min_free_memory_bytes={70 * GIB}&activity=idle") == {idle.pk}
    assert len(found("model=h200")) == 8
    assert found("provider=Lambda") == set(other.server.gpus.values_list("pk", flat=True))
    assert len(found(f"server={machine.agent.server_id}")) == 8
    assert found(f"search={card_uuid(2)[4:12]}") == {parked.pk}
    assert found(f"uuid={card_uuid(2)}") == {parked.pk}
    assert found("state=missing") == set()


def test_slices_are_listed_under_their_card(viewer_client, machine):
    slices = [
        wire.Gpu(
            uuid=f"MIG-{number}",
            parent_uuid=card_uuid(0),
            index=number,
            facts=facts(0, name="1g.18gb", memory_total_bytes=GIB),
        )
        for number in range(4)
    ]
    machine.send(at=now(), gpus=[*machine.cards, *slices])
    rows = viewer_client.get(f"{GPUS}?is_slice=true").json()["results"]
    assert {row["uuid"] for row in rows} == {f"MIG-{number}" for number in range(4)}
    assert {row["parent"] for row in rows} == {machine.gpu(0).pk}
    assert len(ids(viewer_client.get(f"{GPUS}?is_slice=false"))) == 8
    assert viewer_client.get(f"{GPUS}summary/").json()["gpus_known"] == 8


def test_the_fleets_means_are_over_cards_that_report(viewer_client, machine):
    for number in range(6):
        latest(
            machine.gpu(number), utilization_percent=100 if number < 3 else 0, memory_used_bytes=GIB, power_watts=100
        )
    latest(machine.gpu(6), at=now() - timedelta(hours=1), utilization_percent=0, memory_used_bytes=0)
    body = viewer_client.get(f"{GPUS}summary/").json()
    assert (body["gpus_known"], body["gpus_reporting"], body["gpus_busy"], body["gpus_missing"]) == (8, 6, 3, 0)
    assert (body["utilization_percent"], body["power_watts"]) == (50.0, 600.0)
    assert body["memory_total_bytes"] == 6 * 140 * GIB
    assert body["servers_by_state"] == {"ready": 1}


def test_a_fleet_that_says_nothing_has_no_mean_and_no_zero(viewer_client, machine):
    body = viewer_client.get(f"{GPUS}summary/").json()
    assert (body["gpus_known"], body["gpus_reporting"]) == (8, 0)
    assert (body["utilization_percent"], body["power_watts"], body["data_at"]) == (None, None, None)


def test_the_history_of_a_card_spans_servers(viewer_client, machine):
    machine.send(at=NOON, gpus=machine.cards[1:])
    moved = Machine(joined("rack-9")[0], cards=1)
    moved.send(at=now())
    places = viewer_client.get(f"{GPUS}{moved.gpu(0).pk}/").json()["history"]
    assert {place["server_name"] for place in places} == {"rack-1", "rack-9"}
    assert ids(viewer_client.get(f"{GPUS}?uuid={card_uuid(0)}")) == {place["id"] for place in places}
