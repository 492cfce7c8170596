"""What holds for every list of the fleet: who may do what, numbers out of range, and the cost of a page."""

import time

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.models import Gpu, Server
from panel.core.clock import now
from tests.fleet.factories import GIB, NOON, Machine, card_uuid, joined, xid
from tests.fleet.places import AGENTS, FAULTS, GPUS, SERVERS, TOKENS, ids, latest

pytestmark = pytest.mark.django_db


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
    ("place", "queries"), [(SERVERS, 3), (GPUS, 3), (AGENTS, 2), (FAULTS, 2), (GPUS + "summary/", 4)]
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
