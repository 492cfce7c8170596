"""Join tokens, agents and faults over the API."""

from datetime import timedelta

import pytest

from fleet.models import Agent, JoinToken
from fleet.services.joining import join_token_create
from panel.accounts.models import AuditEntry
from panel.core.clock import now
from tests.fleet.factories import OPERATOR, card_uuid, xid
from tests.fleet.places import AGENTS, FAULTS, SERVERS, TOKENS, ids, names

pytestmark = pytest.mark.django_db


def test_a_join_token_is_made_with_its_command_and_shown_once(operator_client):
    answer = operator_client.post(TOKENS, {"name": "rack-7", "provider": "IDC"})
    assert answer.status_code == 201, answer.content
    body = answer.json()
    assert body["token"].startswith("fdj_")
    assert body["token"] in body["command"]
    assert "http://testserver/agent/install.sh" in body["command"]
    assert body["expires_at"] > now().isoformat()
    assert "token" not in operator_client.get(f"{TOKENS}{body['id']}/").json()
    assert body["token"] not in str(AuditEntry.objects.values())
    assert names(operator_client.get(f"{TOKENS}?is_usable=true")) == ["rack-7"]
    assert operator_client.delete(f"{TOKENS}{body['id']}/").status_code == 204
    assert names(operator_client.get(f"{TOKENS}?is_usable=true")) == []


@pytest.mark.parametrize("body", [{}, {"name": ""}, {"name": "rack-1"}, {"name": "x", "mirror": "ftp://x"}])
def test_a_join_token_that_cannot_be_made_is_a_400_and_leaves_nothing(operator_client, machine, body):
    before = JoinToken.objects.count()
    assert operator_client.post(TOKENS, body).status_code == 400
    assert JoinToken.objects.count() == before


def test_a_server_is_joined_again_by_a_token_of_its_own(operator_client, machine):
    answer = operator_client.post(f"{SERVERS}{machine.agent.server_id}/rejoin/", {})
    assert answer.status_code == 201
    assert JoinToken.objects.get(pk=answer.json()["id"]).server_id == machine.agent.server_id


def test_an_agents_intervals_are_changed_and_it_hears_of_it(operator_client, machine):
    place = f"{AGENTS}{machine.agent.pk}/"
    answer = operator_client.patch(place, {"sample_interval_seconds": 1})
    assert (answer.status_code, answer.json()["sample_interval_seconds"], answer.json()["assignments_version"]) == (
        200,
        1.0,
        2,
    )
    assert operator_client.patch(place, {"sample_interval_seconds": 0.5}).status_code == 400
    assert operator_client.patch(place, {"report_interval_seconds": "NaN"}).status_code == 400
    assert AuditEntry.objects.get(action="agent.configure").after == {"sample_interval_seconds": 1.0}


def test_an_admin_revokes_an_agent(admin_client, machine):
    answer = admin_client.post(f"{AGENTS}{machine.agent.pk}/revoke/", {"reason": "stolen"})
    assert answer.status_code == 202
    assert answer.json()["revoked_at"]
    assert len(ids(admin_client.get(f"{AGENTS}?is_revoked=true"))) == 1
    assert Agent.objects.get().revoked_at is not None


def test_faults_are_listed_with_their_meaning(viewer_client, machine):
    at = now()
    machine.send(at=at, faults=[xid(79, at, number=2, message="GPU has fallen off the bus"), xid(13, at, number=1)])
    rows = viewer_client.get(f"{FAULTS}?severity=critical").json()["results"]
    assert [(row["code"], row["gpu_uuid"], row["is_open"]) for row in rows] == [(79, card_uuid(2), True)]
    assert "bus" in rows[0]["advice"]["sentence"]
    assert len(ids(viewer_client.get(f"{FAULTS}?server={machine.agent.server_id}"))) == 2
    assert ids(viewer_client.get(f"{FAULTS}?gpu={machine.gpu(1).pk}&code=13"))
    assert not ids(viewer_client.get(f"{FAULTS}?since={(at + timedelta(hours=1)).isoformat().replace('+', '%2B')}"))


def test_join_tokens_of_others_hold_no_secret(operator_client):
    join_token_create(name="a", actor=OPERATOR)
    rows = operator_client.get(TOKENS).json()["results"]
    assert rows
    assert not {"token", "token_hash"} & set(rows[0])
