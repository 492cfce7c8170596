"""A machine joins with a one-time token, asks what to do, and leaves."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
import time_machine
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.agent import wire
from fleet.enums import ServerState
from fleet.models import Agent, JoinToken, Server
from fleet.services.agents import agent_authenticate, agent_revoke
from fleet.services.joining import join_token_create, join_token_revoke
from fleet.services.servers import server_end
from panel.accounts.models import AuditEntry
from panel.core.clock import now
from panel.core.errors import Conflict, InvalidInput
from panel.core.models import Event
from tests.fleet.factories import OPERATOR, joined

pytestmark = pytest.mark.django_db
JOIN = "/api/agent/v1/join/"
LEAVE = "/api/agent/v1/leave/"


@pytest.fixture(autouse=True)
def _fresh_counts():
    cache.clear()


def post_join(client, token, **kwargs):
    body = msgspec.json.encode(wire.JoinRequest(token=token, agent_version="0.1.0", **kwargs))
    return client.post(JOIN, body, content_type="application/json")


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def test_a_machine_joins_under_the_tokens_name(client):
    made = join_token_create(name="h200-3", provider="IDC", region="Shanghai", actor=OPERATOR)
    answer = post_join(client, made.token, hostname="node-3", capabilities=["nvml"])
    assert answer.status_code == 201
    joined_as = msgspec.json.decode(answer.content, type=wire.JoinAnswer)
    server = Server.objects.get()
    assert (joined_as.server_id, joined_as.server_name) == (server.pk, "h200-3")
    assert (server.state, server.provider, server.region) == ("joining", "IDC", "Shanghai")
    agent = agent_authenticate(token=joined_as.agent_token)
    assert agent.server_id == server.pk
    assert Event.objects.get(kind="server.joined").data["hostname"] == "node-3"


def test_msgpack_is_answered_with_msgpack(client):
    made = join_token_create(name="a", actor=OPERATOR)
    body = msgspec.msgpack.encode(wire.JoinRequest(token=made.token, agent_version="0.1.0"))
    answer = client.post(JOIN, body, content_type="application/msgpack")
    assert msgspec.msgpack.decode(answer.content, type=wire.JoinAnswer).server_name == "a"


def test_tokens_are_stored_as_hashes_only(client):
    made = join_token_create(name="a", actor=OPERATOR)
    agent_token = post_join(client, made.token).json()["agent_token"]
    with connection.cursor() as cursor:
        for table in ("fleet_jointoken", "fleet_agent", "accounts_auditentry", "core_event"):
            cursor.execute(f"SELECT row_to_json(t)::text FROM {table} t")
            text = " ".join(row[0] for row in cursor.fetchall())
            assert made.token not in text
            assert agent_token not in text


def test_a_token_lets_one_machine_join_once(client):
    made = join_token_create(name="a", actor=OPERATOR)
    assert post_join(client, made.token).status_code == 201
    again = post_join(client, made.token)
    assert (again.status_code, again.json()["code"]) == (401, "token_used")
    assert Server.objects.count() == 1


def test_a_token_of_yesterday_is_refused(client):
    made = join_token_create(name="a", actor=OPERATOR)
    with time_machine.travel(now() + timedelta(hours=24, seconds=1), tick=False):
        answer = post_join(client, made.token)
    assert (answer.status_code, answer.json()["code"]) == (401, "token_expired")
    assert JoinToken.objects.get().used_at is None


def test_a_token_that_was_taken_back_is_refused(client):
    made = join_token_create(name="a", actor=OPERATOR)
    join_token_revoke(join_token=made.row, actor=OPERATOR)
    assert post_join(client, made.token).json()["code"] == "token_revoked"


def test_a_used_token_cannot_be_taken_back():
    agent, _token = joined()
    with pytest.raises(Conflict):
        join_token_revoke(join_token=agent.server.join_tokens.get(), actor=OPERATOR)


@pytest.mark.parametrize("token", ["", "fdj_", "fdj_abcdefgh_" + "x" * 43, "fda_abcdefgh_" + "x" * 43, "x" * 200])
def test_an_unknown_token_is_refused(client, token):
    answer = post_join(client, token)
    assert (answer.status_code, answer.json()["code"]) == (401, "token_unknown")


def test_an_agents_token_opens_no_join(client):
    _agent, token = joined()
    assert post_join(client, token).status_code == 401


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"token": 1}', b"\xff\xfe", b'{"token":"' + b"a" * 300 + b'"}'])
def test_a_body_that_is_none_is_a_400_with_a_sentence(client, body):
    answer = client.post(JOIN, body, content_type="application/json")
    assert answer.status_code == 400
    assert answer.json()["code"] == "invalid_input"
    assert answer.json()["message"]


def test_a_body_over_the_bound_is_a_413(client):
    answer = client.post(JOIN, b"{" + b" " * 20_000 + b"}", content_type="application/json")
    assert answer.status_code == 413


def test_joins_are_limited_by_address(client):
    with time_machine.travel(datetime(2026, 3, 10, 12, 0, 10, tzinfo=UTC), tick=False):
        codes = [post_join(client, "fdj_abcdefgh_" + "x" * 43).status_code for _ in range(61)]
        assert codes == [401] * 60 + [429]
        assert post_join(client, "x").headers["Retry-After"] == "50"


def test_a_rack_of_machines_may_join_at_once_from_one_address(client):
    with time_machine.travel(datetime(2026, 3, 10, 12, 0, 10, tzinfo=UTC), tick=False):
        for number in range(65):
            made = join_token_create(name=f"rack-{number}", actor=OPERATOR)
            assert post_join(client, made.token).status_code == 201


def test_other_methods_are_refused_and_named(client):
    answer = client.get(JOIN)
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")


@pytest.mark.parametrize("name", ["", "  ", "x" * 101, "\x00"])
def test_a_name_must_be_usable(name):
    with pytest.raises(InvalidInput) as caught:
        join_token_create(name=name, actor=OPERATOR)
    assert caught.value.field == "name"


def test_a_name_is_given_once_without_regard_to_case():
    joined("Rack-1")
    with pytest.raises(InvalidInput) as caught:
        join_token_create(name="rack-1", actor=OPERATOR)
    assert caught.value.code == "name_taken"


def test_a_name_is_promised_once():
    first = join_token_create(name="rack-1", actor=OPERATOR)
    with pytest.raises(InvalidInput) as caught:
        join_token_create(name="RACK-1", actor=OPERATOR)
    assert caught.value.code == "name_promised"
    join_token_revoke(join_token=first.row, actor=OPERATOR)
    join_token_create(name="rack-1", actor=OPERATOR)


def test_a_name_taken_between_token_and_join_leaves_the_token_unused(client):
    made = join_token_create(name="rack-1", actor=OPERATOR)
    Server.objects.create(name="RACK-1", state_changed_at=now(), created_at=now())
    answer = post_join(client, made.token)
    assert (answer.status_code, answer.json()["code"]) == (409, "name_taken")
    assert JoinToken.objects.get().used_at is None


def test_a_server_joined_again_keeps_its_row_and_its_old_agent_is_refused(client):
    agent, old = joined("rack-1", provider="IDC")
    made = join_token_create(name="ignored", server=agent.server, actor=OPERATOR)
    answer = post_join(client, made.token)
    assert answer.json()["server_id"] == agent.server_id
    assert answer.json()["server_name"] == "rack-1"
    assert agent_authenticate(token=old) is None
    assert agent_authenticate(token=answer.json()["agent_token"]).server_id == agent.server_id
    assert Agent.objects.count() == 1


def test_a_retired_server_comes_back_with_a_token_made_for_it(client):
    agent, _token = joined("rack-1")
    server_end(server_id=agent.server_id, reason="retired", actor=OPERATOR)
    made = join_token_create(name="", server=Server.objects.get(), actor=OPERATOR)
    assert post_join(client, made.token).status_code == 201
    server = Server.objects.get()
    assert (server.state, server.retired_at) == (ServerState.JOINING, None)


def test_authentication_costs_one_query(django_assert_num_queries):
    _agent, token = joined()
    with django_assert_num_queries(1):
        assert agent_authenticate(token=token)
    with django_assert_num_queries(0):
        assert agent_authenticate(token="fdt_abcdefgh_" + "x" * 43) is None


def test_an_agent_that_leaves_retires_its_server_and_is_refused_from_then_on(client):
    agent, token = joined()
    other, other_token = joined("other")
    assert client.post(LEAVE, headers=bearer(token)).status_code == 204
    server = Server.objects.get(pk=agent.server_id)
    assert (server.state, server.state_reason) == ("retired", "left")
    assert server.retired_at is not None
    assert client.post(LEAVE, headers=bearer(token)).status_code == 401
    entry = AuditEntry.objects.get(action="server.retire")
    assert (entry.actor_kind, entry.actor_id, entry.after) == ("agent", agent.pk, {"state": "retired"})
    assert agent_authenticate(token=other_token)
    assert Server.objects.get(pk=other.server_id).state == "joining"


def test_a_revoked_agent_is_refused():
    agent, token = joined()
    agent_revoke(agent=agent, actor=OPERATOR, reason="stolen")
    assert agent_authenticate(token=token) is None
    assert AuditEntry.objects.get(action="agent.revoke").reason == "stolen"


def test_the_same_secret_with_another_prefix_is_refused():
    _agent, token = joined()
    other, _other = joined("other")
    kind, _prefix, secret = token.split("_", 2)
    assert agent_authenticate(token=f"{kind}_{other.token_prefix}_{secret}") is None


def test_a_join_costs_few_queries(client):
    made = join_token_create(name="a", actor=OPERATOR)
    with CaptureQueriesContext(connection) as captured:
        post_join(client, made.token)
    statements = [query["sql"] for query in captured if "SAVEPOINT" not in query["sql"]]
    assert len(statements) <= 8, "\n".join(statements)


def test_a_newer_line_for_a_server_takes_back_older_ones_and_leaves_the_start_up_scripts():
    server = joined("gpu-9")[0].server
    startup, first, second = (
        join_token_create(name="", actor=OPERATOR, server=server, is_for_startup=is_for_startup)
        for is_for_startup in (True, False, False)
    )
    revoked = dict(JoinToken.objects.values_list("pk", "revoked_at"))
    assert revoked[first.row.pk] is not None
    assert revoked[second.row.pk] is None
    assert revoked[startup.row.pk] is None
