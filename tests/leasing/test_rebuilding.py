"""Recovery: a server is ordered again from its own record, waits for another machine, and keeps its history."""

import base64
import re

import pytest

from fleet.agent import wire
from fleet.enums import GpuState, LeaseState, OperationKind, OperationState, ServerState
from fleet.lifecycle import REBUILDING_REASON, REPLACED_REASON, RETIRED_REASON
from fleet.models import Agent, Gpu, JoinToken, Lease, Server
from fleet.services.joining import server_join
from fleet.services.power import lease_act
from fleet.services.silence import servers_mark_silent
from panel.core.clock import now
from panel.core.errors import Conflict
from panel.core.models import Event
from tests.fleet.factories import Machine, card, facts
from tests.leasing.conftest import ACTOR, fresh

OLD, NEW = "GPU-00000000-aaaa-4000-8000-000000000000", "GPU-00000000-bbbb-4000-8000-000000000000"


def comes_up(rounds, vendor, uuid):
    """Let the machine that was ordered last start, join with the line in its start-up script, and report one card."""
    rounds.step()
    vendor.advance()
    rounds.run(minutes=0.5)
    machine = list(vendor.machines.values())[-1]
    script = base64.b64decode(machine.facts["env"]["STARTUP_SCRIPT"]).decode()
    token = re.search(r"fdj_\w+_[\w-]+", script)[0]
    answer = server_join(
        request=wire.JoinRequest(token=token, hostname="box", agent_version="1"), address="203.0.113.7"
    )
    agent = Agent.objects.select_related("server").get(server_id=answer.server_id)
    reports(agent, uuid)
    rounds.run(minutes=0.5)
    return agent


def reports(agent, uuid):
    machine = Machine(agent, cards=0)
    machine.cards = [card(0, uuid=uuid, facts=facts(0))]
    machine.send()


def end(rounds):
    """End the open machine from the panel, until the provider has confirmed it."""
    lease = Lease.objects.get(ended_at=None)
    lease_act(lease_id=lease.pk, kind=OperationKind.TERMINATE, actor=ACTOR)
    rounds.run(minutes=0.5)
    assert fresh(lease).state == LeaseState.TERMINATED


@pytest.fixture
def server(rounds, account, vendor, django_capture_on_commit_callbacks):
    """A server that reported from a machine which was ended then."""
    rounds.order(account)
    comes_up(rounds, vendor, OLD)
    server = Server.objects.get()
    assert server.state == ServerState.READY
    with django_capture_on_commit_callbacks(execute=True):
        end(rounds)
    assert fresh(server).state == ServerState.RETIRED
    return server


def said(server):
    """Return the changes of state of a server, as (from, to, reason)."""
    events = Event.objects.filter(kind="server.state_changed", server_id=server.pk).order_by("pk")
    return [(each.data["from"], each.data["to"], each.data["reason"]) for each in events]


def test_a_server_that_is_ordered_again_waits_at_once_and_reports_again(rounds, account, vendor, server):
    operation = rounds.order(account, name=server.name, server_id=server.pk)
    server.refresh_from_db()
    assert (server.state, server.state_reason, server.retired_at) == (ServerState.PENDING, REBUILDING_REASON, None)
    assert said(server)[-1] == ("retired", "pending", "rebuilding")
    old = Gpu.objects.get(uuid=OLD)
    assert (old.state, old.state_reason) == (GpuState.UNKNOWN, REPLACED_REASON)
    assert old.removed_at is not None

    agent = comes_up(rounds, vendor, NEW)
    assert agent.server_id == server.pk
    server.refresh_from_db()
    assert (server.state, server.state_reason) == (ServerState.READY, "")
    assert fresh(operation).state == OperationState.SUCCEEDED
    assert [gpu.uuid for gpu in Gpu.objects.filter(removed_at=None)] == [NEW]
    assert Gpu.objects.filter(uuid=OLD).exists(), "the old machine's card is history"
    assert Lease.objects.filter(server=server).count() == 2
    assert not Event.objects.filter(kind="gpu.state_changed", severity="critical").exists()


def test_the_same_card_given_again_is_listed_again(rounds, account, vendor, server):
    rounds.order(account, name=server.name, server_id=server.pk)
    comes_up(rounds, vendor, OLD)
    old = Gpu.objects.get()
    assert (old.state, old.state_reason, old.removed_at) == (GpuState.OK, "", None)
    assert fresh(server).state == ServerState.READY


def test_an_order_into_a_record_that_fails_gives_it_back_retired_with_the_reason(rounds, account, vendor, server):
    rounds.order(account, name=server.name, server_id=server.pk)
    vendor.has_capacity = False
    rounds.step()
    server.refresh_from_db()
    assert (server.state, server.state_reason) == (ServerState.RETIRED, "no_capacity")
    assert server.retired_at is not None
    assert said(server)[-1] == ("pending", "retired", "no_capacity")
    old = Gpu.objects.get(uuid=OLD)
    assert (old.state_reason, old.removed_at) == (RETIRED_REASON, None)
    assert not JoinToken.objects.filter(used_at=None, revoked_at=None).exists()


def test_a_machine_that_is_gone_before_it_joined_gives_the_record_back(
    rounds, account, vendor, server, django_capture_on_commit_callbacks
):
    rounds.order(account, name=server.name, server_id=server.pk)
    rounds.step()
    vendor.advance()
    rounds.run(minutes=0.5)
    vendor.machines.clear()
    with django_capture_on_commit_callbacks(execute=True):
        rounds.run(minutes=3)
    assert Lease.objects.order_by("-pk").first().state == LeaseState.LOST
    server.refresh_from_db()
    assert (server.state, server.state_reason) == (ServerState.RETIRED, "provider_deleted")


def test_a_silent_server_whose_machine_was_lost_waits_and_is_silent_again_without_one(rounds, account, vendor):
    rounds.order(account)
    comes_up(rounds, vendor, OLD)
    vendor.machines.clear()
    rounds.run(minutes=3)
    servers_mark_silent(now=now())
    server = Server.objects.get()
    assert server.state == ServerState.NOT_REPORTING
    rounds.order(account, name=server.name, server_id=server.pk)
    assert fresh(server).state == ServerState.PENDING
    vendor.has_capacity = False
    rounds.step()
    server.refresh_from_db()
    assert (server.state, server.state_reason, server.retired_at) == (ServerState.NOT_REPORTING, "no_capacity", None)
    assert Gpu.objects.get().removed_at is None


def test_a_record_whose_name_another_server_has_by_now_is_not_built_again(rounds, account, server):
    Server.objects.create(name=server.name.upper(), state_changed_at=now(), created_at=now())
    with pytest.raises(Conflict) as refused:
        rounds.order(account, name=server.name, server_id=server.pk)
    assert refused.value.code == "name_taken"
    assert Lease.objects.count() == 1


def test_an_end_that_is_confirmed_late_does_not_retire_a_server_that_is_built_again(
    rounds, account, vendor, django_capture_on_commit_callbacks
):
    rounds.order(account)
    comes_up(rounds, vendor, OLD)
    server = Server.objects.get()
    with django_capture_on_commit_callbacks() as late:
        end(rounds)
    rounds.order(account, name=server.name, server_id=server.pk)
    for callback in late:
        callback()
    assert fresh(server).state != ServerState.RETIRED
    assert JoinToken.objects.filter(server=server, used_at=None, revoked_at=None).exists()
