"""Agents, planning and people at the same time: nobody waits crosswise for another, and nothing is lost."""

import threading

import pytest
from django.db import connection

from endpoints.models import Endpoint, ReplicaGpu
from endpoints.services.endpoints import endpoint_scale
from endpoints.services.gateways import gateway_create
from endpoints.services.hosts import server_cordon, server_uncordon
from endpoints.services.reconcile import endpoint_reconcile
from tests.endpoints.world import Site, deployed, serving, settle
from tests.fleet.factories import OPERATOR

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = 12


def test_reports_planning_and_people_do_not_stand_in_each_others_way():
    sites = [Site("rack-1", cards=3), Site("rack-2", cards=3)]
    gateway_create(server_id=sites[0].server.pk, actor=OPERATOR)
    endpoints = [deployed(name, desired_replicas=2) for name in ("one", "two")]
    settle(sites=sites)
    errors = []

    def again_and_again(*steps):
        try:
            for number in range(ROUNDS):
                for step in steps:
                    step(number)
        except Exception as error:  # noqa: BLE001 (told by the test)
            errors.append(repr(error))
        finally:
            connection.close()

    states = ("not_ready", "ready")
    work = [
        (lambda number: sites[0].obey(state=states[number % 2]),),
        (lambda number: sites[1].obey(state=states[number % 2]),),
        tuple(lambda _number, pk=each.pk: endpoint_reconcile(endpoint_id=pk) for each in endpoints),
        tuple(
            lambda number, pk=each.pk: endpoint_scale(endpoint_id=pk, desired_replicas=1 + number % 2, actor=OPERATOR)
            for each in endpoints
        ),
        (
            lambda _number: server_cordon(server_id=sites[1].server.pk, actor=OPERATOR, is_evacuating=True),
            lambda _number: server_uncordon(server_id=sites[1].server.pk, actor=OPERATOR),
        ),
    ]
    threads = [threading.Thread(target=again_and_again, args=steps) for steps in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    for endpoint in endpoints:
        endpoint_scale(endpoint_id=endpoint.pk, desired_replicas=2, actor=OPERATOR)
    settle(sites=sites)
    assert [len(serving(each)) for each in endpoints] == [2, 2]
    assert ReplicaGpu.objects.count() == 4
    assert set(Endpoint.objects.values_list("phase", flat=True)) == {"healthy"}
