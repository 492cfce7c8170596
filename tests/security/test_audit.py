"""The audit trail: only ever longer, and free of secrets."""

import pytest
from django.db import ProgrammingError, connection, transaction

from panel.accounts.audit import Actor, audit
from panel.accounts.models import AuditEntry
from tests.accounts.people import person

pytestmark = pytest.mark.django_db


@pytest.fixture
def entry(db):
    return audit(actor=Actor.system("test"), action="server.rename", target_name="a")


@pytest.mark.parametrize(
    "change",
    [
        lambda entry: AuditEntry.objects.filter(pk=entry.pk).update(actor_name="nobody"),
        lambda entry: AuditEntry.objects.all().delete(),
        lambda entry: entry.delete(),
        lambda entry: setattr(entry, "reason", "x") or entry.save(),
    ],
)
def test_the_database_refuses_to_change_or_remove_an_entry(entry, change):
    with pytest.raises(ProgrammingError, match="append-only"), transaction.atomic():
        change(entry)
    assert AuditEntry.objects.get().actor_name == "test"


def test_the_database_refuses_to_empty_the_trail(entry):
    with connection.cursor() as cursor:
        # asleep in the test database (tests/conftest.py); the transaction of this test wakes it for itself
        cursor.execute("ALTER TABLE accounts_auditentry ENABLE TRIGGER audit_no_truncate")
        with pytest.raises(ProgrammingError, match="append-only"), transaction.atomic():
            cursor.execute("TRUNCATE accounts_auditentry")
    assert AuditEntry.objects.count() == 1


def test_an_entry_falls_with_the_write_that_it_records():
    def write():
        with transaction.atomic():
            audit(actor=Actor.system("test"), action="x.y")
            raise LookupError

    with pytest.raises(LookupError):
        write()
    assert not AuditEntry.objects.exists()


def test_an_entry_says_who_what_and_on_what(rf):
    vera = person("vera", "operator")
    request = rf.get("/", REMOTE_ADDR="10.0.0.9")
    request.user, request.request_id = vera, "abc-12345"
    entry = audit(actor=Actor.from_request(request), action="user.update", target=vera, before={"a": 1}, after={"a": 2})
    entry.refresh_from_db()
    facts = {name: getattr(entry, name) for name in ("actor_kind", "actor_id", "actor_name", "address", "request_id")}
    assert facts == {
        "actor_kind": "user",
        "actor_id": vera.pk,
        "actor_name": "vera",
        "address": "10.0.0.9",
        "request_id": "abc-12345",
    }
    assert (entry.target_kind, entry.target_id, entry.target_name) == ("user", vera.pk, "vera")


def test_secrets_in_before_and_after_are_hidden():
    entry = audit(
        actor=Actor.system("test"), action="x.y", before={"api_key": "canary"}, after={"note": "password=canary"}
    )
    entry.refresh_from_db()
    assert "canary" not in f"{entry.before} {entry.after}"


def test_text_that_is_too_long_is_cut_instead_of_losing_the_entry():
    actor = Actor(kind="agent", id=1, name="x" * 500, request_id="r" * 100)
    audit(actor=actor, action="x.y", target_name="t" * 500, reason="z" * 900)
    assert len(AuditEntry.objects.get().reason) == 500
