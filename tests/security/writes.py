"""Every write of the API: a body that works, what has to be there before, and the action that the audit trail then has."""

import time

from django.contrib.sessions.backends.db import SessionStore

from fleet.models import Job, Server
from monitoring.models import Channel
from panel.accounts.audit import Actor
from panel.accounts.services import passkeys, two_factor
from tests.accounts.authenticator import SecurityKey
from tests.accounts.people import PASSWORD, session_client
from tests.security.alert_rows import ALERT_QUESTIONS, ALERT_WRITES
from tests.security.delivery_rows import DELIVERY_WRITES
from tests.security.endpoint_rows import ENDPOINT_WRITES, prepare_endpoints
from tests.security.leasing_rows import LEASING_WRITES, prepare_leasing
from tests.security.rows import ROW, SESSION_KEY
from tests.security.walker import addresses

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
    "post passkey-start": ({"password": PASSWORD}, "user.passkey_start"),
    "post passkey-list": ({}, "user.passkey_add"),
    "patch passkey-detail": ({"name": "other"}, "user.passkey_rename"),
    "post passkey-remove": ({"password": PASSWORD}, "user.passkey_remove"),
    "patch server-detail": ({"name": "renamed"}, "server.update"),
    "post server-maintenance": ({"is_on": True}, "server.maintenance"),
    "post server-rejoin": ({}, "join_token.create"),
    "post server-retire": ({"reason": "given back"}, "server.retire"),
    "delete server-detail": ({}, "server.remove"),
    "post server-forget-gpus": ({}, "gpu.forget"),
    "post gpu-forget": ({}, "gpu.forget"),
    "patch agent-detail": ({"sample_interval_seconds": 10}, "agent.configure"),
    "post job-cancel": ({}, "job.cancel"),
    "post acceptance-list": ({"expected": {"gpu_count": 8}}, "job.create"),
    "post agent-revoke": ({}, "agent.revoke"),
    "post join-token-list": ({"name": "node-9"}, "join_token.create"),
    "delete join-token-detail": ({}, "join_token.revoke"),
    "post diagnosis-list": ({"probe": ROW, "hosts": [{"server": ROW, "port": 9}]}, "diagnosis.start"),
    "post diagnosis-cancel": ({}, "diagnosis.cancel"),
    "post probe-list": ({"name": "web", "target": {"kind": "tcp", "host": "127.0.0.1", "port": 9}}, "probe.create"),
    "patch probe-detail": ({"interval_seconds": 60}, "probe.update"),
    "delete probe-detail": ({}, "probe.delete"),
    "post probe-run": ({}, "probe.run"),
    "post probe-run-everywhere": ({}, "probe.run"),
    "post probe-check": ({"target": {"kind": "tcp", "host": "127.0.0.1", "port": 9}}, "probe.check"),
    **ALERT_WRITES,
    **DELIVERY_WRITES,
    **ENDPOINT_WRITES,
    **{
        write: ({name: ROW if value == "ROW" else value for name, value in body.items()}, action)
        for write, (body, action) in LEASING_WRITES.items()
    },
}


# What is asked by POST because it is too long for an address, and changes nothing.
QUESTIONS = {"post sizing-list", "post endpoint-golive-estimate", *ALERT_QUESTIONS}


def api_writes():
    found = _sent_by_name()
    assert set(found) >= QUESTIONS
    return {name: sent for name, sent in found.items() if name not in QUESTIONS}


def _sent_by_name():
    return {
        f"{method} {address.name}": (method, f"/{address.path}".replace("/1/", f"/{ROW}/"))
        for address in addresses() if address.is_api
        for method in address.methods if method != "get"
    }  # fmt: skip


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
    if write == "post passkey-list":
        party = passkeys.RelyingParty("testserver", "http://testserver")
        options = passkeys.passkey_start(actor=Actor.system("test"), user=admin, party=party)
        return {"name": "key", "credential": SecurityKey().create(options)}
    if write == "delete session-detail":
        store = SessionStore(session_key=SESSION_KEY)
        store.save(must_create=True)
    if write == "delete server-detail":
        Server.objects.filter(pk=ROW).update(state="retired", retired_at="2026-01-01T00:00:00Z")
    if write == "post channel-enable":
        Channel.objects.filter(pk=ROW).update(is_enabled=False)
    if write == "post job-cancel":
        Job.objects.filter(pk=ROW).update(state="running", ended_at=None, reason="")
    return {**prepare_leasing(write, ROW), **prepare_endpoints(write, ROW)}
