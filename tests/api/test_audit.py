"""The audit trail and the events over the API."""

import csv
import io
from datetime import timedelta

import pytest

from panel.accounts.audit import Actor, audit
from panel.accounts.models import AuditEntry
from panel.core.clock import now
from panel.core.enums import Severity
from panel.core.events import event_write
from panel.core.models import Event

pytestmark = pytest.mark.django_db
AUDIT = "/api/v1/audit/"


@pytest.fixture
def entries(db, viewer):
    audit(actor=Actor(kind="user", id=1, name="ada"), action="server.rename", target_name="node-1", after={"name": "x"})
    audit(actor=Actor(kind="token", id=2, name="ci of ada"), action="token.create", target_name="ci")
    audit(actor=Actor.system("beat"), action="token.revoke", target=viewer)


def actions(client, **query):
    return [row["action"] for row in client.get(AUDIT, query).json()["results"]]


def test_the_trail_is_listed_newest_first(operator_client, entries):
    assert actions(operator_client) == ["token.revoke", "token.create", "server.rename"]


def test_the_trail_is_filtered(operator_client, entries, viewer):
    assert actions(operator_client, actor="ada") == ["token.create", "server.rename"]
    assert actions(operator_client, actor_kind="system") == ["token.revoke"]
    assert actions(operator_client, action="token.") == ["token.revoke", "token.create"]
    assert actions(operator_client, action="token.create") == ["token.create"]
    assert actions(operator_client, target_kind="user", target_id=viewer.pk) == ["token.revoke"]
    assert actions(operator_client, search="NODE") == ["server.rename"]
    later = (now() + timedelta(hours=1)).isoformat()
    assert actions(operator_client, **{"from": later}) == []
    assert len(actions(operator_client, to=later)) == 3


@pytest.mark.parametrize(
    "query",
    [{"from": "yesterday"}, {"target_id": "x"}, {"target_id": 2**64}, {"actor_kind": "ghost"}, {"search": "x" * 101}],
)
def test_a_filter_that_makes_no_sense_is_a_400(operator_client, query):
    answer = operator_client.get(AUDIT, query)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["attr"] == next(iter(query))


def test_nothing_writes_to_the_trail_over_the_api(admin_client, entries):
    pk = AuditEntry.objects.first().pk
    for method in ("post", "put", "patch", "delete"):
        assert getattr(admin_client, method)(f"{AUDIT}{pk}/").status_code in (403, 405)
    assert AuditEntry.objects.count() == 3


def test_the_trail_as_csv_holds_no_formula(operator_client):
    for name in ("=HYPERLINK(1)", "+1", "-1", "@SUM(A1)", "\tx", "  =1+1", "plain, with comma"):
        audit(actor=Actor(kind="agent", id=1, name=name), action="x.y", after={"name": "=1"})
    answer = operator_client.get(f"{AUDIT}export/")
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
    assert [row["actor_name"] for row in reversed(rows)] == [
        "'=HYPERLINK(1)", "'+1", "'-1", "'@SUM(A1)", "'\tx", "'  =1+1", "plain, with comma",
    ]  # fmt: skip
    assert rows[0]["after"] == '{"name": "=1"}'
    assert not [cell for row in rows for cell in row.values() if cell.startswith(("=", "+", "-", "@"))]


def test_an_event_is_listed_and_published_when_its_transaction_commits(
    viewer_client, monkeypatch, django_capture_on_commit_callbacks
):
    published = []
    monkeypatch.setattr("panel.core.live.publish", lambda topic, data: published.append((topic, data)))
    with django_capture_on_commit_callbacks(execute=True):
        event = event_write(
            kind="gpu.xid", severity=Severity.CRITICAL, subject_kind="gpu", subject_id=4, subject_name="H100 0",
            server_id=3, data={"code": 79},
        )  # fmt: skip
        assert published == []
    (topic, data), (row,) = published[0], viewer_client.get("/api/v1/events/").json()["results"]
    assert topic == "events"
    told = data["events"][str(event.pk)]
    assert {key: told[key] for key in told if key != "at"} == {key: row[key] for key in row if key != "at"}
    assert row["data"] == {"code": 79}


def test_events_are_filtered(viewer_client):
    for kind, severity, server in (
        ("gpu.xid", "critical", 1),
        ("gpu.lost", "warning", 1),
        ("server.joined", "info", 2),
    ):
        Event.objects.create(
            at=now(), kind=kind, severity=severity, subject_kind=kind.split(".")[0], subject_name="x", server_id=server
        )

    def kinds(**query):
        return [row["kind"] for row in viewer_client.get("/api/v1/events/", query).json()["results"]]

    assert kinds(kind="gpu.") == ["gpu.lost", "gpu.xid"]
    assert kinds(severity="info") == ["server.joined"]
    assert kinds(server_id=1, severity="critical") == ["gpu.xid"]
    assert kinds(subject_kind="server") == ["server.joined"]
