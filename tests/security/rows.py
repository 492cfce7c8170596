"""One row of everything that the API has, all under one known id, so that a request about that id meets something."""

from datetime import timedelta

from fleet.models import Agent, Gpu, GpuFault, Job, JoinToken, Server
from monitoring.models import DiagnosisReport, Probe
from panel.accounts.audit import Actor, audit
from panel.accounts.models import ApiToken, LoginSession, Passkey
from panel.core.clock import now
from panel.core.models import Event
from tests.accounts.people import person
from tests.security.alert_rows import alert_rows
from tests.security.delivery_rows import delivery_rows
from tests.security.endpoint_rows import endpoint_rows
from tests.security.leasing_rows import leasing_rows

ROW = 100_000  # far from what sequences give out
SESSION_KEY = "x" * 32


def one_of_everything(owner):
    """Make the rows; the session belongs to `owner`, the token to a viewer whose id is ROW too."""
    at, later = now(), now() + timedelta(days=1)
    other = person("other", pk=ROW)
    shared = {"token_hash": "0" * 64, "created_at": at, "expires_at": later}
    ApiToken.objects.create(pk=ROW, user=other, name="x", prefix="aaaaaaaa", **shared)
    server = Server.objects.create(pk=ROW, name="node-1", state="ready", state_changed_at=at, created_at=at)
    Agent.objects.create(pk=ROW, server=server, token_prefix="bbbbbbbb", token_hash="0" * 64, joined_at=at)
    gpu = Gpu.objects.create(
        pk=ROW,
        server=server,
        uuid="GPU-1",
        index=0,
        name="H100",
        state="missing",
        state_changed_at=at,
        first_seen_at=at,
    )
    GpuFault.objects.create(pk=ROW, server=server, gpu=gpu, code=79, source="nvml", first_at=at, last_at=at)
    JoinToken.objects.create(pk=ROW, name="node-2", prefix="cccccccc", **shared)
    Passkey.objects.create(
        pk=ROW, user=owner, name="key", rp_id="testserver", credential_id=b"1", public_key=b"1", created_at=at
    )
    LoginSession.objects.create(pk=ROW, user=owner, session_key=SESSION_KEY, created_at=at, last_seen_at=at)
    Event.objects.create(pk=ROW, at=at, kind="gpu.xid", subject_kind="gpu", subject_id=ROW, server_id=ROW)
    Job.objects.create(
        pk=ROW, server=server, kind="acceptance", state="failed", reason="crashed", time_limit_seconds=150,
        actor_kind="system", actor_name="test", created_at=at, ended_at=at, expires_at=later,
    )  # fmt: skip
    Probe.objects.create(
        pk=ROW, name="health", target={"kind": "tcp", "host": "127.0.0.1", "port": 9}, vantages=["panel"], created_at=at
    )
    DiagnosisReport.objects.create(
        pk=ROW, subject_kind="endpoint", subject_id=ROW, subject_name="health", probe_id=ROW, metric="e2e", threshold_ms=100,
        target={"kind": "tcp", "host": "127.0.0.1", "port": 9}, begin_at=at, slot_seconds=10, rounds=40, created_at=at,
        ends_at=later,
    )  # fmt: skip
    alert_rows(ROW)
    delivery_rows(ROW)
    leasing_rows(ROW)
    endpoint_rows(ROW)
    audit(actor=Actor.system("test"), action="test.start")
