"""Whatever writes leaves an entry in the audit trail: every write of the API, tried with a body that works."""

import time

import pytest
from django.contrib.sessions.backends.db import SessionStore

from fleet.models import Server
from panel.accounts.audit import Actor
from panel.accounts.models import AuditEntry
from panel.accounts.services import two_factor
from tests.accounts.people import PASSWORD, person, session_client, token_client
from tests.security.rows import ROW, SESSION_KEY, one_of_everything
from tests.security.walker import addresses

pytestmark = pytest.mark.django_db
NEW_PASSWORD = "another-long-one"

# method and name of the address → (body, action that the trail then has)
WRITES = {
    "post auth-token": ({"username": "other", "password": PASSWORD}, "auth.login"),
    "post user-list": ({"username": "vera", "password": PASSWORD}, "user.create"),
    "patch user-detail": ({"role": "operator"}, "user.update"),
    "delete user-detail": ({}, "user.delete"),
    "post user-password": ({"password": NEW_PASSWORD}, "user.password"),
    "post user-end-sessions": ({}, "session.end_all"),
    "post user-reset-two-factor": ({}, "user.two_factor_off"),
    "patch user-me": ({"theme": "dark"}, "user.preferences"),
    "post user-change-password": ({"current_password": PASSWORD, "password": NEW_PASSWORD}, "user.password"),
    "post token-list": ({"name": "ci"}, "token.create"),
    "delete token-detail": ({}, "token.revoke"),
    "delete session-detail": ({}, "session.end"),
    "post session-end-others": ({}, "session.end_all"),
    "post two-factor-start": ({"password": PASSWORD}, "user.two_factor_start"),
    "post two-factor-confirm": ({}, "user.two_factor_on"),
    "post two-factor-disable": ({"password": PASSWORD}, "user.two_factor_off"),
    "patch server-detail": ({"name": "renamed"}, "server.update"),
    "post server-maintenance": ({"is_on": True}, "server.maintenance"),
    "post server-rejoin": ({}, "join_token.create"),
    "post server-retire": ({"reason": "given back"}, "server.retire"),
    "delete server-detail": ({}, "server.remove"),
    "post server-forget-gpus": ({}, "gpu.forget"),
    "post gpu-forget": ({}, "gpu.forget"),
    "patch agent-detail": ({"sample_interval_seconds": 10}, "agent.configure"),
    "post agent-revoke": ({}, "agent.revoke"),
    "post join-token-list": ({"name": "node-9"}, "join_token.create"),
    "delete join-token-detail": ({}, "join_token.revoke"),
}


def api_writes():
    return {
        f"{method} {address.name}": (method, f"/{address.path}".replace("/1/", f"/{ROW}/"))
        for address in addresses() if address.is_api
        for method in address.methods if method != "get"
    }  # fmt: skip


@pytest.fixture
def admin(db):
    admin = person("ada", "admin")
    one_of_everything(admin)
    return admin


def prepare(write, admin):
    """Bring about what the write needs to have an effect."""
    if write == "post user-end-sessions":
        other = type(admin).objects.get(pk=ROW)
        session_client(other).get("/api/v1/users/me/")
    if write in ("post user-reset-two-factor", "post two-factor-disable", "post two-factor-confirm"):
        user = type(admin).objects.get(pk=ROW) if "reset" in write else admin
        secret = two_factor.two_factor_start(actor=Actor.system("test"), user=user).secret
        code = two_factor._totp(secret).generate(int(time.time())).decode()
        if write == "post two-factor-confirm":
            return {"code": code}
        two_factor.two_factor_confirm(actor=Actor.system("test"), user=user, code=code)
    if write == "delete session-detail":
        store = SessionStore(session_key=SESSION_KEY)
        store.save(must_create=True)
    if write == "delete server-detail":
        Server.objects.filter(pk=ROW).update(state="retired", retired_at="2026-01-01T00:00:00Z")
    return {}


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
