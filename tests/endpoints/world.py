"""A panel with machines whose agents do as they are told, or not: without processes, by the panel's own services."""

import uuid

from endpoints.engines.base import EngineSpec
from endpoints.models import Endpoint, Replica
from endpoints.services.endpoints import endpoint_create
from endpoints.services.observing import replicas_report
from endpoints.services.reconcile import endpoint_reconcile, endpoints_due
from fleet.agent import orders
from fleet.models import Agent
from fleet.services.agents import AgentIdentity, assignments_for
from panel.core.clock import now
from tests.fleet.factories import OPERATOR, Machine, joined


def spec(**changes):
    """A custom engine as a plain process, whose arguments are one number."""
    custom = {"command": ["engine", "--port", "{port}"], "ready_path": "/health", "health_path": "/health"}
    return EngineSpec.from_json({"kind": "custom", "runtime": "process", "custom": custom, **changes})


class Site:
    """A machine with cards, and the side of its agent that runs replicas."""

    def __init__(self, name="rack-1", cards=2):
        agent, self.token = joined(name)
        self.machine = Machine(agent, cards=cards)
        # Cards of different machines are different cards.
        offset = agent.pk * 100
        for card in self.machine.cards:
            card.uuid = f"GPU-{offset + card.index:08d}-0000-4000-8000-000000000000"
        self.machine.send()
        self.run_id, self.seq = str(uuid.uuid4()), 0

    @property
    def server(self):
        return self.machine.server

    @property
    def agent(self):
        return Agent.objects.select_related("server").get(server=self.server)

    @property
    def identity(self):
        agent = self.agent
        return AgentIdentity(
            agent.pk, agent.server_id, agent.server.name, agent.server.state, 5.0, 5.0, agent.assignments_version
        )

    def orders(self):
        """What it should run now."""
        return assignments_for(identity=self.identity).replicas

    def say(self, *statuses, version=None, seq=None, run_id=None):
        """Tell the panel of its replicas."""
        self.seq = seq or self.seq + 1
        replicas_report(
            identity=self.identity,
            report=orders.ReplicasReport(
                run_id=run_id or self.run_id,
                seq=self.seq,
                at_ms=int(now().timestamp() * 1000),
                orders_version=self.agent.assignments_version if version is None else version,
                replicas=list(statuses),
                runtimes={"process": "ok"},
            ),
        )

    def obey(self, **changes):
        """Do all that is ordered at once and tell of it: what runs is ready, what drains or is not named has stopped.

        changes: of every status of a replica that is to run.
        """
        self.say(
            *(
                status(order, **({"state": "ready"} | changes) if order.wanted == "run" else {"state": "stopped"})
                for order in self.orders()
            )
        )


def status(order, **changes):
    """What an agent says of an order."""
    return orders.ReplicaStatus(**({"id": order.id, "generation": order.generation, "state": "starting"} | changes))


def settle(*, sites=(), rounds=30, **changes):
    """Look at endpoints and let the sites obey until nothing changes any more."""
    for _round in range(rounds):
        before = picture()
        reconcile()
        for site in sites:
            site.obey(**changes)
        if picture() == before:
            return
    raise AssertionError(f"not settled after {rounds} rounds: {picture()}")


def reconcile():
    """Look once at every endpoint that wants it, whatever its time."""
    Endpoint.objects.filter(deleted_at=None).exclude(reconcile_at=None).update(reconcile_at=now())
    for endpoint_id in endpoints_due(at=now()):
        assert endpoint_reconcile(endpoint_id=endpoint_id)


def picture():
    """Everything that can change, to compare."""
    replicas = Replica.objects.order_by("pk").values_list("pk", "wanted", "state", "ended_at", "generation")
    endpoints = Endpoint.objects.order_by("pk").values_list(
        "pk", "phase", "active_revision", "target_revision", "deleted_at"
    )
    return list(replicas), list(endpoints)


def deployed(name="chat", *, gpus=1, desired_replicas=1, engine=None, **settings):
    """An endpoint just made."""
    endpoint, _rollout = endpoint_create(
        name=name,
        spec=engine or spec(),
        gpus=gpus,
        desired_replicas=desired_replicas,
        settings=settings,
        actor=OPERATOR,
    )
    return endpoint


def serving(endpoint):
    """Its open replicas that gateways send requests to."""
    return [each for each in open_replicas(endpoint) if each.state == "ready" and each.wanted == "run"]


def open_replicas(endpoint):
    return list(Replica.objects.filter(endpoint=endpoint, ended_at=None).select_related("revision").order_by("pk"))
