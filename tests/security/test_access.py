"""Who may reach what: every address, every action of the API and every live topic, tried by everybody. Denied by default."""

import contextlib
from datetime import timedelta

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIRequestFactory

from fleet.services.joining import join_token_create
from monitoring.live.topics import registered
from panel.accounts.api.permissions import required_capability
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability, has_capability
from panel.accounts.enums import Role
from tests.accounts.people import person, token_of
from tests.security.walker import addresses
from tests.security.writes import QUESTIONS

pytestmark = pytest.mark.django_db

# What strangers may reach, and why. Everything else needs a log-in or a token.
OPEN = {
    "login": "here one logs in",
    "logout": "it only ends what is there",
    "auth-token": "here programs log in",
    "api-schema": "the same for every installation",
    "api-docs": "the same for every installation",
    "": "the API's answer to addresses that it does not have",
    "jsi18n": "translations of the log-in page's scripts",
    "preferences": "language and theme of the log-in page, kept in cookies",
    "mail-stop": "takes a signed link, and acts on a POST alone",
    "agent-join": "takes a join token in its body",
    "agent-join-status": "takes a join token",
    "agent-leave": "takes an agent's token",
    "agent-job": "takes an agent's token",
    "agent-load": "takes an agent's token",
    "agent-replicas": "takes an agent's token",
    "agent-replica-logs": "takes an agent's token",
    "agent-routes": "takes an agent's token",
    "agent-probes": "takes an agent's token",
    "agent-traffic": "takes an agent's token",
    "agent-downlink": "takes an agent's token",
    "agent-uplink": "takes an agent's token",
    "agent-installer": "the same for every installation but for the panel's address",
    "agent-requirements": "the same for every installation",
    "agent-requirements-gateway": "the same for every installation",
    "agent-wheel": "the same for every installation",
}
# What a viewer may change: their own. Tables that every page of theirs may touch: the trace of their session.
OWN = {Capability.PROFILE_EDIT, Capability.TOKENS_OWN}
TRACES = ("accounts_loginsession", "django_session")
REFUSED = (401, 403)


def is_refusal(answer):
    """Say whether the answer keeps a stranger out: 401, 403, or the way to the log-in page."""
    return answer.status_code in REFUSED or (answer.status_code == 302 and answer["Location"].startswith("/login/"))


def closed():
    return [address for address in addresses() if address.name not in OPEN]


class UndoError(Exception):
    """Takes back whatever a request wrote."""


def send(client, method, address):
    answers = []
    with contextlib.suppress(UndoError), transaction.atomic():
        answers.append(getattr(client, method)(f"/{address.path}", content_type="application/json"))
        raise UndoError
    return answers[0]


def client_with(token):
    return Client(headers={"Authorization": f"Bearer {token}"}, raise_request_exception=False)


def test_the_walk_finds_pages_and_every_part_of_the_api():
    paths = {address.path for address in addresses()}
    assert {
        "login/",
        "settings/users/1/remove/",
        "api/v1/users/1/password/",
        "api/v1/tokens/",
        "api/agent/v1/join/",
    } <= paths
    assert len(paths) > 40


def test_strangers_reach_only_what_is_listed():
    client = Client(raise_request_exception=False)
    reached = {
        f"{method} {address}" for address in closed() for method in address.methods
        if not is_refusal(send(client, method, address))
    }  # fmt: skip
    assert reached == set()


@pytest.mark.parametrize("dead", [{"expires_in": timedelta(seconds=-1)}, {"revoked": True}], ids=["expired", "revoked"])
def test_a_dead_admin_token_reaches_no_more_than_a_stranger(dead):
    client = client_with(token_of(person("ada", "admin"), **dead))
    reached = {
        f"{method} {address}" for address in closed() for method in address.methods
        if not is_refusal(send(client, method, address))
    }  # fmt: skip
    assert reached == set()


def test_a_token_opens_no_page_not_even_an_admins():
    client = client_with(token_of(person("ada", "admin")))
    reached = {
        str(address) for address in closed() if not address.is_api and not is_refusal(send(client, "get", address))
    }  # fmt: skip
    assert reached == set()


def api_actions():
    """Yield every address of the API with a method and the capability that it asks for."""
    factory = APIRequestFactory()
    for address in closed():
        for method in address.methods if address.is_api else ():
            view = address.view.cls()
            view.action = dict(address.actions).get(method)
            yield address, method, required_capability(view, factory.generic(method.upper(), "/"))


def test_every_action_of_the_api_names_its_capability():
    nameless = {f"{method} {address}" for address, method, capability in api_actions() if capability is None}
    assert nameless == set()


@pytest.mark.parametrize("role", Role.values)
def test_a_token_reaches_exactly_what_its_role_has(role):
    client = client_with(token_of(person("somebody", role)))
    wrong = set()
    for address, method, capability in api_actions():
        is_refused = send(client, method, address).status_code in REFUSED
        if is_refused == has_capability(role, capability):
            wrong.add(f"{method} {address}")
    assert wrong == set()


def test_a_narrow_token_of_an_admin_reaches_what_a_viewer_does():
    client = client_with(token_of(person("ada", "admin"), scope="viewer"))
    wrong = set()
    for address, method, capability in api_actions():
        is_refused = send(client, method, address).status_code in REFUSED
        if is_refused == has_capability(Role.VIEWER, capability):
            wrong.add(f"{method} {address}")
    assert wrong == set()


def test_viewers_write_nothing_over_the_api_but_their_own():
    allowed = {
        f"{method} {address}" for address, method, capability in api_actions()
        if method != "get" and has_capability(Role.VIEWER, capability) and capability not in OWN
        and f"{method} {address.name}" not in QUESTIONS
    }  # fmt: skip
    assert allowed == set()


def pages():
    """Yield every page that needs a log-in, with the capability that it names."""
    for address in closed():
        if not address.is_api:
            yield address, getattr(address.view, "capability", None)


def browser(user):
    client = Client(raise_request_exception=False)
    client.force_login(user)
    return client


def test_every_page_names_its_capability():
    assert {str(address) for address, capability in pages() if capability is None} == set()


@pytest.mark.parametrize("role", Role.values)
def test_a_person_reaches_exactly_the_pages_of_their_role(role):
    client, wrong = browser(person("somebody", role)), set()
    for address, capability in pages():
        for method in ("get", "post"):
            answer = send(client, method, address)
            if answer.status_code != 405 and is_refusal(answer) == has_capability(role, capability):
                wrong.add(f"{method} {address}")
    assert wrong == set()


def writes(queries):
    """Return the statements that change something else than the trace of a session."""
    statements = [query["sql"] for query in queries if query["sql"].startswith(("INSERT", "UPDATE", "DELETE"))]
    return [statement for statement in statements if not any(table in statement for table in TRACES)]


def test_viewers_write_nothing_through_pages_but_their_own():
    client, written = browser(person("somebody")), {}
    for address, capability in pages():
        if capability not in OWN:
            with CaptureQueriesContext(connection) as queries:
                send(client, "post", address)
            if writes(queries):
                written[str(address)] = writes(queries)
    assert written == {}


@pytest.mark.parametrize("kind", sorted(registered()))
def test_live_topics_ask_for_a_role_too(kind):
    topic = registered()[kind]
    stranger = person("somebody")
    stranger.role = ""
    assert not topic.authorize(stranger, 1)
    if topic.has_id:
        assert not topic.authorize(person("ada", "admin"), 2**40)  # one that does not exist


@pytest.mark.parametrize(
    ("role", "seen"), [("viewer", {"fleet"}), ("operator", {"fleet", "join"}), ("admin", {"fleet", "join"})]
)
def test_polled_topics_are_authorised_like_those_of_a_socket(role, seen):
    token = join_token_create(actor=Actor.system("test"), name="node-1").row
    answer = browser(person("somebody", role)).get(
        f"/live/snapshots/?topic=fleet&topic=join.{token.pk}&topic=secrets.1"
    )
    assert {frame["topic"].partition(".")[0] for frame in answer.json()["frames"]} == seen


def test_no_topic_is_open_to_somebody_without_a_log_in():
    for topic in registered().values():
        with pytest.raises((AttributeError, TypeError)):
            topic.authorize(AnonymousUser(), 1)
