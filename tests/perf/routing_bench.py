"""Routing: what a change of one replica costs the panel while 500 endpoints of 4 replicas each are served by two gateways.

A change is a report of an agent by which one replica leaves or comes back; then both gateways ask what changed. The peer is
the same answer for everything, as a gateway that has just started gets it.
"""

import statistics
import time
import uuid

import msgspec

from tests.perf.harness import Row
from tests.perf.store_bench import database

ENDPOINTS, REPLICAS, ROUNDS = 500, 4, 40
SPEC = {
    "kind": "custom",
    "runtime": "process",
    "custom": {"command": ["engine", "{port}"], "ready_path": "/health", "health_path": "/health"},
}


def make_fleet():
    """Write servers, endpoints and replicas that are ready; returns (a server's identity, its replicas, gateways)."""
    from endpoints.models import Endpoint, Gateway, Replica, Revision, RoutingClock
    from fleet.models import Agent, Server
    from fleet.services.agents import AgentIdentity
    from panel.core.clock import now

    at = now()
    servers = Server.objects.bulk_create(
        [Server(name=f"rig-{number}", state="ready", state_changed_at=at, created_at=at) for number in range(100)]
    )
    agents = Agent.objects.bulk_create(
        [
            Agent(
                server=each, token_prefix=f"{each.pk:08d}", token_hash="0" * 64, joined_at=at, last_address="10.0.0.1"
            )
            for each in servers
        ]
    )
    endpoints = Endpoint.objects.bulk_create(
        [
            Endpoint(
                name=f"chat-{number}", upstream_key="k", phase="healthy", phase_changed_at=at, created_at=at,
                desired_replicas=REPLICAS, routing_version=1,
            )
            for number in range(ENDPOINTS)
        ]
    )  # fmt: skip
    facts = {"number": 1, "spec": SPEC, "engine": "custom", "runtime": "process", "gpus": 0, "created_at": at}
    revisions = Revision.objects.bulk_create([Revision(endpoint=each, **facts) for each in endpoints])
    for endpoint, revision in zip(endpoints, revisions, strict=True):
        endpoint.active_revision = endpoint.target_revision = revision
    Endpoint.objects.bulk_update(endpoints, ["active_revision", "target_revision"])
    Replica.objects.bulk_create(
        [
            Replica(
                endpoint=endpoint, revision=revision, server=servers[(number * REPLICAS + copy) % len(servers)],
                port=20_000 + (number * REPLICAS + copy) // len(servers), runtime="process", state="ready",
                state_changed_at=at, created_at=at,
            )
            for number, (endpoint, revision) in enumerate(zip(endpoints, revisions, strict=True))
            for copy in range(REPLICAS)
        ]
    )  # fmt: skip
    RoutingClock.objects.create(pk=1, version=1)
    gateways = Gateway.objects.bulk_create([Gateway(server=each, created_at=at) for each in servers[-2:]])
    agent = agents[0]
    identity = AgentIdentity(agent.pk, agent.server_id, "rig-0", "ready", 5.0, 5.0, agent.assignments_version)
    return identity, list(Replica.objects.filter(server=servers[0])), gateways


def report(identity, replicas, states, number):
    """An agent's word about its replicas."""
    from fleet.agent import orders

    return orders.ReplicasReport(
        run_id=str(uuid.UUID(int=1)),
        seq=number + 1,
        at_ms=0,
        orders_version=1,
        replicas=[orders.ReplicaStatus(each.pk, 1, states.get(each.pk, "ready")) for each in replicas],
    )


def measure():
    """Return (seconds of a change, seconds of a gateway's question, bytes) for each round, and those of everything."""
    from endpoints.services.observing import replicas_report
    from endpoints.services.routing import routes_since

    identity, replicas, gateways = make_fleet()
    replicas_report(identity=identity, report=report(identity, replicas, {}, 0))
    changes, questions, sizes = [], [], []
    for number in range(1, ROUNDS + 1):
        have = routes_since(have=0, gateway=gateways[0]).version
        states = {replicas[0].pk: "not_ready"} if number % 2 else {}
        began = time.perf_counter()
        replicas_report(identity=identity, report=report(identity, replicas, states, number))
        changes.append(time.perf_counter() - began)
        for gateway in gateways:
            began = time.perf_counter()
            answer = routes_since(have=have, gateway=gateway)
            questions.append(time.perf_counter() - began)
            assert len(answer.routes) == 1, len(answer.routes)
            sizes.append(len(msgspec.msgpack.encode(answer)))
    began = time.perf_counter()
    everything = routes_since(have=0, gateway=gateways[0])
    whole = time.perf_counter() - began
    assert len(everything.routes) == ENDPOINTS
    return changes, questions, sizes, whole, len(msgspec.msgpack.encode(everything))


def run(_out):
    """Measure; returns the rows."""
    with database():
        changes, questions, sizes, whole, whole_bytes = measure()
    change, question = statistics.median(changes) * 1000, statistics.median(questions) * 1000
    peer, note = "everything, told anew", f"{ENDPOINTS} endpoints of {REPLICAS} replicas, {ROUNDS} changes"
    size = statistics.median(sizes)
    return [
        Row("routing, a change of one replica", change, "ms", peer, change / whole / 1000, "<= 0.5", note),
        Row("routing, a gateway asks what changed", question, "ms", peer, question / whole / 1000, "<= 0.1", note),
        Row(
            "routing, bytes of that answer", size, "bytes", peer, size / whole_bytes, "<= 0.01", f"{whole_bytes} in all"
        ),
    ]
