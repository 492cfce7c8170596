"""Whatever writes leaves an entry in the audit trail: every write of the API, tried with a body that works."""

import pytest

from panel.accounts.models import AuditEntry
from tests.accounts.people import person, token_client
from tests.security.rows import one_of_everything
from tests.security.writes import WRITES, api_writes, prepare

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(db):
    admin = person("ada", "admin")
    one_of_everything(admin)
    return admin


def test_the_table_has_every_write_of_the_api():
    assert set(WRITES) == set(api_writes())


@pytest.mark.parametrize("write", WRITES)
def test_every_write_of_the_api_leaves_an_entry(write, admin):
    body, action = WRITES[write]
    body = {**body, **prepare(write, admin)}
    before = AuditEntry.objects.order_by("-id").first().pk
    method, path = api_writes()[write]
    answer = getattr(token_client(admin), method)(path, body)
    assert answer.status_code in (200, 201, 202, 204), answer.content
    entry = AuditEntry.objects.filter(pk__gt=before, action=action).first()
    assert entry is not None, list(AuditEntry.objects.values_list("action", flat=True))
    assert entry.actor_name == ("other" if write == "post auth-token" else "test of ada")
    assert entry.request_id == answer["X-Request-ID"]
    assert entry.address == "127.0.0.1"


@pytest.mark.parametrize("write", WRITES)
def test_a_write_that_is_sent_twice_never_breaks_the_panel(write, admin):
    body = {**WRITES[write][0], **prepare(write, admin)}
    method, path = api_writes()[write]
    client = token_client(admin)
    answers = [getattr(client, method)(path, body).status_code for _attempt in range(3)]
    assert answers[0] < 300
    assert max(answers) < 500
