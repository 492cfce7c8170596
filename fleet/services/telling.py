"""What the pages hear after a commit: the static part of servers and cards, the steps of a join, jobs."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import F

from fleet.assignments.waiters import ASSIGNMENTS_CHANGED, ASSIGNMENTS_GROUP
from fleet.models import Agent, Gpu, Job, JoinToken, Server
from fleet.selectors.live import gpu_live, iso, job_live, join_live, server_live
from panel.core.live import publish, send_to_group


def tell_servers(servers: Sequence[tuple[Server, Iterable[Gpu], Sequence[Gpu]]]) -> None:
    """Publish once the transaction commits; each entry: a server, all its cards, and those that changed."""

    def send() -> None:
        fleet: dict[str, dict[str, Any]] = {"servers": {}, "gpus": {}}
        for server, gpus, changed in servers:
            facts = server_live(server, gpus=gpus)
            cards = {str(gpu.pk): gpu_live(gpu) for gpu in changed}
            fleet["servers"][str(server.pk)] = facts
            fleet["gpus"].update(cards)
            publish(f"server.{server.pk}", {"server": {str(server.pk): facts}, "gpus": cards})
            for gpu_id, card in cards.items():
                publish(f"gpu.{gpu_id}", {"gpus": {gpu_id: card}})
        publish("fleet", {section: entries for section, entries in fleet.items() if entries})

    transaction.on_commit(send)


def tell_server(server: Server, *, gpus: Iterable[Gpu], changed: Sequence[Gpu] = ()) -> None:
    """Publish one server; see `tell_servers`."""
    tell_servers([(server, gpus, changed)])


def tell_processes(server_id: int, gpus: Sequence[Gpu]) -> None:
    """Publish the process lists just read, to the pages of the server and of each card."""
    lists = {
        str(gpu.pk): {
            "at": iso(gpu.processes_at),
            "visibility": gpu.processes_visibility,
            "processes": gpu.processes,
        }
        for gpu in gpus
    }

    def send() -> None:
        publish(f"server.{server_id}", {"processes": lists})
        for gpu_id, entry in lists.items():
            publish(f"gpu.{gpu_id}", {"processes": {gpu_id: entry}})

    if lists:
        transaction.on_commit(send)


def tell_join(token: JoinToken) -> None:
    """Publish the steps of a join, as they stand when the transaction commits."""
    transaction.on_commit(lambda: publish(f"join.{token.pk}", {"join": {str(token.pk): join_live(token)}}))


def tell_assignments(agent_id: int) -> None:
    """Release the agent's waiting requests for its assignments once the transaction commits; see fleet.assignments."""
    message = {"type": ASSIGNMENTS_CHANGED, "agent_id": agent_id}
    transaction.on_commit(lambda: send_to_group(ASSIGNMENTS_GROUP, message))


def assignments_change(server_ids: Iterable[int]) -> None:
    """Have these servers' agents fetch their assignments once the transaction commits.

    Their versions are counted on after it: within, two transactions that change several agents would wait for one another.
    Should this process die in between, an agent that asks twice a minute hears of it then.
    """
    transaction.on_commit(partial(_count_on, frozenset(server_ids)), robust=True)


def _count_on(server_ids: frozenset[int]) -> None:
    for agent_id in Agent.objects.filter(server_id__in=server_ids, revoked_at=None).values_list("pk", flat=True):
        Agent.objects.filter(pk=agent_id).update(assignments_version=F("assignments_version") + 1)
        tell_assignments(agent_id)


def tell_job(job: Job) -> None:
    """Publish a job as it stands when the transaction commits."""
    transaction.on_commit(lambda: publish(f"job.{job.pk}", {"jobs": {str(job.pk): job_live(job)}}))
