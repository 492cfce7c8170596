"""The fleet over the API: lists with filters, what each role may do, what is recorded."""

import time
from datetime import timedelta

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.agent import wire
from fleet.models import Agent, Gpu, JoinToken, Server
from fleet.services.joining import join_token_create
from fleet.services.servers import server_end
from monitoring.metrics import GPU_METRICS
from monitoring.models import LatestSample
from panel.accounts.models import AuditEntry
from panel.core.clock import now
from tests.fleet.factories import GIB, NOON, OPERATOR, Machine, card, card_uuid, facts, joined, xid

pytestmark = pytest.mark.django_db
SERVERS, GPUS, AGENTS, TOKENS, FAULTS = (
    f"/api/v1/{name}/" for name in ("servers", "gpus", "agents", "join-tokens", "faults")
)


def latest(gpu, at=None, **values):
    """Store a newest sample of a card."""
    packed = np.array([values.get(metric.name, np.nan) for metric in GPU_METRICS], dtype="<f4").tobytes()
    at = at or now()
    row = LatestSample(kind=1, subject_id=gpu.pk, at=at, received_at=at, values=packed, performance_state=0)
    LatestSample.objects.bulk_create([row])


@pytest.fixture
def machine():
    machine = Machine(joined("rack-1", provider="IDC", region="Shanghai")[0])
    machine.send(at=now(), host=wire.HostFacts(hostname="node-17"))
    return machine


@pytest.fixture
def other():
    other = Machine(joined("rack-2", provider="Lambda", region="us-west")[0], cards=0)
    other.cards = [
        card(20 + number, facts=facts(number, name="NVIDIA RTX 4090", memory_total_bytes=24 * GIB))
        for number in range(2)
    ]
    other.send(at=now())
    return other


def names(answer):
    assert answer.status_code == 200, answer.content
    return [row["name"] for row in answer.json()["results"]]


def ids(answer):
    assert answer.status_code == 200, answer.content
    return {row["id"] for row in answer.json()["results"]}


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


def test_a_join_token_is_made_with_its_command_and_shown_once(operator_client):
    answer = operator_client.post(TOKENS, {"name": "rack-7", "provider": "IDC"})
    assert answer.status_code == 201, answer.content
    body = answer.json()
    assert body["token"].startswith("fdj_")
    assert body["token"] in body["command"]
    assert "http://testserver/agent/install.sh" in body["command"]
    assert body["expires_at"] > now().isoformat()
    assert "token" not in operator_client.get(f"{TOKENS}{body['id']}/").json()
    assert body["token"] not in str(AuditEntry.objects.values())
    assert names(operator_client.get(f"{TOKENS}?is_usable=true")) == ["rack-7"]
    assert operator_client.delete(f"{TOKENS}{body['id']}/").status_code == 204
    assert names(operator_client.get(f"{TOKENS}?is_usable=true")) == []


@pytest.mark.parametrize("body", [{}, {"name": ""}, {"name": "rack-1"}, {"name": "x", "mirror": "ftp://x"}])
def test_a_join_token_that_cannot_be_made_is_a_400_and_leaves_nothing(operator_client, machine, body):
    before = JoinToken.objects.count()
    assert operator_client.post(TOKENS, body).status_code == 400
    assert JoinToken.objects.count() == before


def test_a_server_is_joined_again_by_a_token_of_its_own(operator_client, machine):
    answer = operator_client.post(f"{SERVERS}{machine.agent.server_id}/rejoin/", {})
    assert answer.status_code == 201
    assert JoinToken.objects.get(pk=answer.json()["id"]).server_id == machine.agent.server_id


def test_an_agents_intervals_are_changed_and_it_hears_of_it(operator_client, machine):
    place = f"{AGENTS}{machine.agent.pk}/"
    answer = operator_client.patch(place, {"sample_interval_seconds": 1})
    assert (answer.status_code, answer.json()["sample_interval_seconds"], answer.json()["assignments_version"]) == (
        200,
        1.0,
        2,
    )
    assert operator_client.patch(place, {"sample_interval_seconds": 0.5}).status_code == 400
    assert operator_client.patch(place, {"report_interval_seconds": "NaN"}).status_code == 400
    assert AuditEntry.objects.get(action="agent.configure").after == {"sample_interval_seconds": 1.0}


def test_an_admin_revokes_an_agent(admin_client, machine):
    answer = admin_client.post(f"{AGENTS}{machine.agent.pk}/revoke/", {"reason": "stolen"})
    assert answer.status_code == 202
    assert answer.json()["revoked_at"]
    assert len(ids(admin_client.get(f"{AGENTS}?is_revoked=true"))) == 1
    assert Agent.objects.get().revoked_at is not None


def test_faults_are_listed_with_their_meaning(viewer_client, machine):
    at = now()
    machine.send(at=at, faults=[xid(79, at, number=2, message="GPU has fallen off the bus"), xid(13, at, number=1)])
    rows = viewer_client.get(f"{FAULTS}?severity=critical").json()["results"]
    assert [(row["code"], row["gpu_uuid"], row["is_open"]) for row in rows] == [(79, card_uuid(2), True)]
    assert "bus" in rows[0]["advice"]["sentence"]
    assert len(ids(viewer_client.get(f"{FAULTS}?server={machine.agent.server_id}"))) == 2
    assert ids(viewer_client.get(f"{FAULTS}?gpu={machine.gpu(1).pk}&code=13"))
    assert not ids(viewer_client.get(f"{FAULTS}?since={(at + timedelta(hours=1)).isoformat().replace('+', '%2B')}"))


WRITES = [
    ("patch", SERVERS + "{server}/"),
    ("delete", SERVERS + "{server}/"),
    ("post", SERVERS + "{server}/retire/"),
    ("post", SERVERS + "{server}/maintenance/"),
    ("post", SERVERS + "{server}/forget-gpus/"),
    ("post", SERVERS + "{server}/rejoin/"),
    ("post", GPUS + "{gpu}/forget/"),
    ("patch", AGENTS + "{agent}/"),
    ("post", AGENTS + "{agent}/revoke/"),
    ("post", TOKENS),
    ("get", TOKENS),
]


@pytest.mark.parametrize(("method", "place"), WRITES)
def test_a_viewer_may_not_change_anything(viewer_client, machine, method, place):
    place = place.format(server=machine.agent.server_id, gpu=machine.gpu(0).pk, agent=machine.agent.pk)
    assert getattr(viewer_client, method)(place, {}).status_code == 403


def test_an_operator_may_not_revoke_agents(operator_client, machine):
    assert operator_client.post(f"{AGENTS}{machine.agent.pk}/revoke/", {}).status_code == 403


@pytest.mark.parametrize("place", [SERVERS, GPUS, AGENTS, FAULTS, GPUS + "summary/"])
def test_a_stranger_and_an_agent_see_nothing(client, place):
    _agent, token = joined("x")
    assert client.get(place).status_code == 401
    assert client.get(place, headers={"Authorization": f"Bearer {token}"}).status_code == 401


@pytest.mark.parametrize(
    "place",
    [f"{SERVERS}{10**30}/", f"{GPUS}{10**30}/", f"{GPUS}?server={10**30}", f"{FAULTS}?code=1.5", f"{GPUS}?cursor=x"],
)
def test_numbers_out_of_any_range_break_nothing(viewer_client, place):
    assert viewer_client.get(place).status_code in {400, 404}


@pytest.mark.parametrize(
    ("place", "queries"), [(SERVERS, 2), (GPUS, 3), (AGENTS, 2), (FAULTS, 2), (GPUS + "summary/", 4)]
)
def test_a_list_costs_the_same_queries_for_one_server_and_for_ten(viewer_client, place, queries):
    def fill(number):
        machine = Machine(joined(f"rack-{number}")[0])
        machine.send(at=now(), faults=[xid(79, now())])
        latest(machine.gpu(0), utilization_percent=1)

    fill(0)
    viewer_client.get(place)  # notes the token's use
    for count in (1, 10):
        for number in range(1, count):
            fill(number)
        with CaptureQueriesContext(connection) as captured:
            assert viewer_client.get(place).status_code == 200
        assert len(captured) == queries, "\n".join(query["sql"][:150] for query in captured)


def test_a_thousand_cards_are_listed_quickly(viewer_client):
    for number in range(125):
        server = Server.objects.create(name=f"rack-{number}", state="ready", state_changed_at=NOON, created_at=NOON)
        Gpu.objects.bulk_create(
            [
                Gpu(
                    server=server,
                    uuid=card_uuid(number * 8 + index),
                    index=index,
                    name="NVIDIA H200",
                    state="ok",
                    state_changed_at=NOON,
                    first_seen_at=NOON,
                    memory_total_bytes=140 * GIB,
                )
                for index in range(8)
            ]
        )
    for gpu in Gpu.objects.all():
        latest(gpu, utilization_percent=0, memory_used_bytes=GIB)
    started = time.process_time()  # of this process: other work on the machine does not count
    assert len(ids(viewer_client.get(f"{GPUS}?limit=500&activity=idle"))) == 500
    assert viewer_client.get(f"{GPUS}summary/").json()["gpus_known"] == 1_000
    assert (used := time.process_time() - started) < 2.0, used


def test_join_tokens_of_others_hold_no_secret(operator_client):
    join_token_create(name="a", actor=OPERATOR)
    rows = operator_client.get(TOKENS).json()["results"]
    assert rows
    assert not {"token", "token_hash"} & set(rows[0])
