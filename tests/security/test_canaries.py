"""Canaries: secrets planted through every way in, and looked for in everything that comes out."""

import json
import logging
import logging.config
import time
from io import StringIO

import pytest
from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder
from django.test import Client

from fleet.models import Lease
from fleet.services.joining import join_token_create
from fleet.services.sync import account_sync
from panel.accounts.audit import Actor
from panel.accounts.models import ApiToken, AuditEntry, TwoFactor, User
from panel.accounts.services import two_factor
from panel.core.models import Event
from tests.accounts.people import PASSWORD, person, token_client, token_of
from tests.fakes.runpod import FakeRunPod, problem
from tests.security.walker import addresses

pytestmark = pytest.mark.django_db

CANARY_PASSWORD = "canary-password-7f3a"
CANARY_WRONG = "canary-wrong-91bc"
CANARY_KEY = "canary-provider-key-55d0"


@pytest.fixture
def log_lines():
    """Collect everything that any logger writes, at the most talkative level, as our own formatter prints it."""
    stream = StringIO()
    config = {**settings.LOGGING, "root": {"handlers": ["stderr"], "level": "DEBUG"}}
    logging.config.dictConfig(config)
    root = logging.getLogger()
    (handler,) = [
        found for found in root.handlers if isinstance(found.formatter, logging.Formatter) and found.level == 0
    ][:1]
    collector = logging.StreamHandler(stream)
    collector.setFormatter(handler.formatter)
    root.addHandler(collector)
    yield stream
    root.removeHandler(collector)
    logging.config.dictConfig(settings.LOGGING)


def post(client, path, body, **headers):
    return client.post(path, json.dumps(body), content_type="application/json", headers=headers)


class EchoingProvider(FakeRunPod):
    """A provider that says the key aloud, in every answer."""

    credentials = {"api_key": CANARY_KEY}

    def key_refused(self, request):
        return problem(401, "Unauthorized", f"invalid key {request.headers['authorization']}")

    def pod(self, machine):
        return super().pod(machine) | {"image": CANARY_KEY}


def plant_provider_keys(program):
    """Send a right and a wrong key to a provider that says them aloud, and ask it about its machines."""
    vendor = EchoingProvider()
    vendor.add(f"box-{CANARY_KEY}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fleet.providers.registry.transport_for", lambda kind: vendor.transport)
        wrong = {"name": "wrong", "kind": "runpod", "credentials": {"api_key": CANARY_WRONG}}
        assert program.post("/api/v1/accounts/", wrong, format="json").status_code == 400
        right = {"name": "right", "kind": "runpod", "credentials": {"api_key": CANARY_KEY}, "is_adopting": True}
        account = program.post("/api/v1/accounts/", right, format="json").json()["id"]
        account_sync(account_id=account)
        vendor.is_key_valid = False
        account_sync(account_id=account)
    assert Lease.objects.count() == 1
    return {"provider key": CANARY_KEY}


def plant(admin):
    """Send secrets in by every door; return them all by name."""
    browser, program = Client(raise_request_exception=False), token_client(admin)
    planted = {"password": CANARY_PASSWORD, "wrong password": CANARY_WRONG}
    program.post("/api/v1/users/", {"username": "vera", "password": CANARY_PASSWORD})
    program.post("/api/v1/users/", {"username": "vera", "password": CANARY_PASSWORD})  # refused: she is there
    vera = User.objects.get(username="vera")
    browser.post("/login/", {"username": "vera", "password": CANARY_WRONG})
    browser.post("/login/", {"username": CANARY_WRONG, "password": CANARY_WRONG})
    browser.post("/login/", {"username": "vera", "password": CANARY_PASSWORD, "next": "/nowhere/"})
    planted["session key"] = browser.session.session_key
    planted["log-in token"] = post(
        Client(), "/api/v1/auth/token/", {"username": "vera", "password": CANARY_PASSWORD}
    ).json()["token"]
    made = program.post("/api/v1/tokens/", {"name": "ci", "scope": "viewer"})
    planted["api token"] = made.json()["token"]
    planted["own token"] = token_of(admin)
    client = Client(headers={"Authorization": f"Bearer {planted['own token']}"})
    client.get("/api/v1/users/me/")
    client.get(f"/api/v1/users/?cursor={planted['own token']}&password={CANARY_WRONG}")
    Client(headers={"Authorization": f"Bearer {planted['own token']}x"}).get("/api/v1/users/")
    planted["totp secret"] = two_factor.two_factor_start(actor=Actor.from_user(vera), user=vera).secret
    code = two_factor._totp(planted["totp secret"]).generate(int(time.time())).decode()
    for index, recovery in enumerate(two_factor.two_factor_confirm(actor=Actor.from_user(vera), user=vera, code=code)):
        planted[f"recovery code {index}"] = recovery
    planted["join token"] = join_token_create(actor=Actor.from_user(admin), name="node-1").token
    planted |= plant_provider_keys(program)
    planted["csrf cookie"] = browser.get("/login/").cookies.get("csrftoken", browser.cookies.get("csrftoken")).value
    return planted


def break_everything(admin, planted):
    """Raise errors with secrets at hand: in a view, in a task, in a command."""
    client = Client(raise_request_exception=False, headers={"Authorization": f"Bearer {planted['own token']}"})
    with pytest.MonkeyPatch.context() as patch:

        def fail(**arguments):
            raise RuntimeError(f"lost {arguments}, and {planted['join token']}")

        patch.setattr("panel.accounts.services.users.user_create", fail)
        answer = post(client, "/api/v1/users/", {"username": "x", "password": CANARY_PASSWORD})
        assert answer.status_code == 500
    yield answer.content.decode()
    details = {"kwargs": repr({"password": CANARY_PASSWORD}), "args": repr([planted["api token"]])}
    logging.getLogger("celery.app.trace").error("Task failed: %(args)s %(kwargs)s", details, extra={"data": details})


def outputs(admin):
    """Yield everything that can be read back: every list and object of the API, pages, the trail, the events."""
    program, browser = token_client(admin), Client(raise_request_exception=False)
    browser.force_login(admin)
    for address in addresses():
        if "get" in address.methods:
            client = program if address.is_api else browser
            answer = client.get(f"/{address.path}")
            if not answer.streaming:
                yield str(address), answer.content.decode(errors="replace")
    for model in (AuditEntry, Event):
        yield model.__name__, json.dumps(list(model.objects.values()), cls=DjangoJSONEncoder)
    for model in (User, ApiToken, TwoFactor):
        yield model.__name__, str([str(row) + repr(row) for row in model.objects.all()])


def test_no_secret_comes_out_anywhere(log_lines):
    admin = person("ada", "admin")
    planted = plant(admin)
    found = [
        f"500 shows {name}"
        for text in break_everything(admin, planted)
        for name, secret in planted.items()
        if secret in text
    ]
    for where, text in outputs(admin):
        found += [f"{where} shows {name}" for name, secret in planted.items() if secret in text]
    written = log_lines.getvalue()
    found += [f"the log shows {name}" for name, secret in planted.items() if secret in written]
    assert found == []
    assert written.count("\n") > 50  # the log was really looked at
    assert AuditEntry.objects.filter(action="auth.login_failed").count() == 2


def test_secrets_are_stored_as_hashes_or_encrypted(db):
    from django.db import connection

    admin = person("ada", "admin")
    planted = plant(admin)
    with connection.cursor() as cursor:
        dump = ""
        for table in connection.introspection.table_names():
            cursor.execute(f'SELECT * FROM "{table}"')
            dump += str(cursor.fetchall())
    kept = {"session key"}  # Django's own table holds it; it ends with the session
    assert [name for name, secret in planted.items() if secret in dump and name not in kept] == []
    assert PASSWORD not in dump
