"""One row of everything that serves, and every write of the endpoints' API with a body that works."""

from datetime import timedelta

from endpoints.models import (
    ApiKey,
    Endpoint,
    Gateway,
    Replica,
    ReplicaLog,
    Revision,
    Rollout,
    RoutingClock,
    Secret,
    ServingHost,
)
from fleet.models import Server
from monitoring.models import GoLivePart, GoLivePiece, GoLiveRun
from panel.core.clock import now

SPEC = {
    "kind": "custom",
    "runtime": "process",
    "custom": {"command": ["engine", "{port}"], "ready_path": "/health"},
}


# Of an engine that answers no stream.
ASKED = {"peak_per_second": 20, "measure": "total"}


def endpoint_rows(row):
    """Make the rows, each with the id (and, where it is asked for by that, the name or number) `row`."""
    at = now()
    endpoint = Endpoint.objects.create(
        pk=row, name=str(row), upstream_key="k", phase="healthy", phase_changed_at=at, created_at=at, desired_replicas=1
    )
    shared = {"endpoint": endpoint, "spec": SPEC, "engine": "custom", "runtime": "process", "gpus": 0, "created_at": at}
    Revision.objects.create(pk=row - 1, number=1, state="good", **shared)
    revision = Revision.objects.create(pk=row, number=row, state="good", **shared)
    endpoint.active_revision = endpoint.target_revision = revision
    endpoint.save()
    Rollout.objects.create(
        pk=row, endpoint=endpoint, to_revision=revision, state="succeeded", started_at=at, deadline_at=at, ended_at=at,
        actor_name="test",
    )  # fmt: skip
    Replica.objects.create(
        pk=row, endpoint=endpoint, revision=revision, server_id=row, port=20_000, runtime="process", state="ready",
        state_changed_at=at, created_at=at,
    )  # fmt: skip
    ReplicaLog.objects.create(replica_id=row, generation=1, offset=0, text="started\n", received_at=at)
    ServingHost.objects.create(server_id=row)
    Gateway.objects.create(pk=row, server_id=row, created_at=at)
    RoutingClock.objects.create(pk=1, version=5)
    ApiKey.objects.create(
        pk=row, name="caller", prefix="dddddddd", digest="0" * 64, created_at=at, created_by_name="test"
    )
    golive_rows(row, ended_at=at)
    Secret.objects.create(name=str(row), value="v", created_at=at, changed_at=at, created_by_name="test")


def golive_rows(row, **changes):
    """A go-live test of the endpoint with its place and a piece."""
    at = now()
    run = GoLiveRun.objects.create(
        pk=row, subject_kind="endpoint", subject_id=row, subject_name=str(row), state="cancelled", asked=ASKED,
        actor_name="test", created_at=at, deadline_at=at + timedelta(hours=1), **changes,
    )  # fmt: skip
    plan = {"at_seconds": [], "tokens": [], "n": 0}
    part = GoLivePart.objects.create(pk=row, run=run, server_id=row, state="ended", targets=[], plan=plan)
    GoLivePiece.objects.create(part=part, sequence=0, shots=[])


ENDPOINT_WRITES = {
    "post endpoint-list": ({"name": "chat", "spec": SPEC, "gpus": 0}, "endpoint.create"),
    "patch endpoint-detail": ({"in_flight_limit": 5}, "endpoint.update"),
    "delete endpoint-detail": ({}, "endpoint.delete"),
    "post endpoint-scale": ({"desired_replicas": 2}, "endpoint.scale"),
    "post endpoint-restart": ({}, "endpoint.restart"),
    "post endpoint-rollback": ({}, "endpoint.rollback"),
    "post endpoint-pause": ({}, "endpoint.pause"),
    "post endpoint-resume": ({}, "endpoint.resume"),
    "post endpoint-cancel": ({}, "endpoint.cancel"),
    "post endpoint-golive": ({"asked": ASKED, "places": ["hosts"], "consent": True}, "golive.start"),
    "post endpoint-gate-again": ({}, "endpoint.gate_again"),
    "post golive-cancel": ({}, "golive.cancel"),
    "post revision-list": ({"spec": SPEC, "gpus": 0}, "endpoint.deploy"),
    "post endpoint-key-list": ({"name": "caller"}, "key.create"),
    "delete endpoint-key-detail": ({}, "key.revoke"),
    "put secret-detail": ({"value": "hf_x"}, "secret.set"),
    "delete secret-detail": ({}, "secret.delete"),
    "post gateway-list": ({}, "gateway.create"),
    "patch gateway-detail": ({"port": 9090}, "gateway.update"),
    "delete gateway-detail": ({}, "gateway.delete"),
    "patch serving-detail": ({"address": "10.0.0.7"}, "serving.update"),
    "post serving-cordon": ({"is_evacuating": True}, "server.cordon"),
    "post serving-uncordon": ({}, "server.uncordon"),
}


def prepare_endpoints(write, row):
    """Bring about what the write needs; return what its body needs beside."""
    if write in {"post endpoint-pause", "post endpoint-resume", "post endpoint-cancel"}:
        state = "paused" if write == "post endpoint-resume" else "running"
        deadline = now() + timedelta(hours=1)
        Rollout.objects.filter(pk=row).update(state=state, ended_at=None, deadline_at=deadline)
    if write == "post golive-cancel":
        GoLiveRun.objects.filter(pk=row).update(state="running", ended_at=None)
    if write == "post endpoint-gate-again":
        deadline = now() + timedelta(hours=1)
        Rollout.objects.filter(pk=row).update(
            state="running", ended_at=None, deadline_at=deadline, gate=ASKED, golive_run_id=row
        )
    if write == "post gateway-list":
        at = now()
        other = Server.objects.create(name="node-2", state="ready", state_changed_at=at, created_at=at)
        return {"server": other.pk}
    return {}
