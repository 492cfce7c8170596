"""This machine joins by itself, once; the demo gets a token that can do no more than let machines join."""

import json
import stat

import pytest

from fleet.agent import wire
from fleet.enums import ServerState
from fleet.models import JoinToken, Server
from fleet.services.joining import server_join
from panel.accounts.models import ApiToken
from panel.accounts.services.tokens import token_authenticate
from panel.accounts.services.users import admin_ensure
from panel.core.clock import now
from panel.up import joining

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _hostname(monkeypatch):
    monkeypatch.setattr(joining.platform, "node", lambda: "box")


@pytest.fixture
def record(tmp_path):
    return tmp_path / "agent.json"


def own_agent_token(record, *, has_identity=True):
    return joining.own_agent_token(record, has_identity=has_identity)


def use(record):
    """Join with the token of the record, as the agent does, and note it as the wrapper does."""
    content = json.loads(record.read_text())
    answer = server_join(request=wire.JoinRequest(token=content["token"], agent_version="1"), address=None)
    record.write_text(json.dumps({"join_token_id": content["join_token_id"], "is_joined": True}))
    return Server.objects.get(pk=answer.server_id)


def test_a_new_machine_gets_a_token_that_only_its_user_can_read(record):
    assert own_agent_token(record) == "This machine joins as 'box'"
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    assert use(record).name == "box"


def test_a_machine_that_has_joined_gets_no_second_token(record):
    own_agent_token(record)
    use(record)
    assert own_agent_token(record) == ""
    assert JoinToken.objects.count() == 1


def test_a_token_that_waits_is_used_again_by_the_next_start(record):
    own_agent_token(record)
    before = record.read_text()
    assert own_agent_token(record) == ""
    assert record.read_text() == before


def test_a_token_that_grew_old_is_replaced(record):
    own_agent_token(record)
    JoinToken.objects.update(expires_at=now())
    assert own_agent_token(record) == "This machine joins as 'box'"
    assert use(record).name == "box"


def test_a_lost_record_makes_the_waiting_token_void_and_leaves_a_new_one(record):
    own_agent_token(record)
    record.unlink()
    own_agent_token(record)
    assert JoinToken.objects.exclude(revoked_at=None).count() == 1
    assert use(record).name == "box"


def test_a_join_that_was_cut_off_after_the_panel_knew_of_it_is_done_again_for_the_same_server(record):
    own_agent_token(record)
    content = record.read_text()
    server = use(record)
    record.write_text(content)
    assert own_agent_token(record) == "This machine joins as 'box'"
    assert use(record) == server


def test_a_database_made_anew_is_joined_anew(record):
    own_agent_token(record)
    use(record)
    JoinToken.objects.all().delete()
    Server.objects.all().delete()
    assert own_agent_token(record) == "This machine joins as 'box'"
    assert use(record).name == "box"


def test_a_lost_data_directory_joins_as_the_silent_server_that_it_was(record):
    own_agent_token(record)
    server = use(record)
    record.unlink()
    Server.objects.update(state=ServerState.NOT_REPORTING)
    own_agent_token(record)
    assert use(record) == server


def test_an_agent_that_lost_its_state_joins_again_as_the_same_server(record):
    own_agent_token(record)
    server = use(record)
    assert own_agent_token(record, has_identity=False) == "This machine joins as 'box'"
    assert use(record) == server


def test_another_machine_of_the_same_name_that_reports_is_not_pushed_out(record):
    own_agent_token(record)
    other = use(record)
    record.unlink()
    Server.objects.update(state=ServerState.READY)
    assert own_agent_token(record) == "This machine joins as 'box (panel)'"
    assert use(record) != other


def test_a_machine_that_was_retired_in_the_panel_stays_off(record):
    own_agent_token(record)
    use(record)
    Server.objects.update(retired_at=now(), state=ServerState.RETIRED)
    for _ in range(2):
        assert "stays off" in own_agent_token(record)
        assert json.loads(record.read_text())["is_off"] is True
    record.unlink()
    assert own_agent_token(record) == "This machine joins as 'box'"


def test_the_demo_has_a_token_that_lets_machines_join_and_is_kept_while_it_works(tmp_path):
    admin_ensure(username="admin", password="a-long-enough-password-1")
    path = tmp_path / "demo-token"
    joining.demo_token(path)
    first = path.read_text()
    assert token_authenticate(token=first).scope == "operator"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    joining.demo_token(path)
    assert path.read_text() == first
    ApiToken.objects.update(revoked_at=now())
    joining.demo_token(path)
    assert path.read_text() != first
