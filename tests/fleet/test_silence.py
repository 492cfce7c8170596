"""Servers that fall silent and are heard again, and what people do with servers."""

from datetime import timedelta

import pytest
from django.core.cache import cache
from django.db import DatabaseError, connection
from django.test.utils import CaptureQueriesContext

from fleet.models import Agent, Gpu, Server
from fleet.services.agents import agent_authenticate
from fleet.services.hearing import hearing_note, hearing_since
from fleet.services.servers import (
    server_end,
    server_maintenance_set,
    server_remove,
    server_update,
    servers_mark_silent,
)
from fleet.services.silence import servers_watch
from fleet.tasks import servers_watch_task, sightings_clear_task
from panel.accounts.models import AuditEntry
from panel.core.clock import now
from panel.core.errors import Conflict, InvalidInput, NotFound
from panel.core.models import Event
from tests.fleet.factories import NOON, OPERATOR, Machine, card, joined, xid

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=1)


@pytest.fixture
def machine():
    machine = Machine(joined()[0])
    machine.send(at=NOON, gpus=[*machine.cards[:7], card(7, state="lost", reason="gpu_lost")])
    return machine


def changes():
    return [
        (event.data["from"], event.data["to"])
        for event in Event.objects.filter(kind="server.state_changed").order_by("id")
    ]


def test_one_missed_report_is_no_silence_and_two_are(machine):
    assert servers_mark_silent(now=NOON + 10 * SECOND) == 0
    assert servers_mark_silent(now=NOON + 13 * SECOND) == 1
    server = machine.server
    assert (server.state, server.state_reason, server.gpu_health) == ("not_reporting", "agent_silent", "unknown")
    assert set(server.gpus.values_list("state", "state_reason")) == {("unknown", "server_silent")}
    assert changes()[-1] == ("degraded", "not_reporting")
    assert servers_mark_silent(now=NOON + 18 * SECOND) == 0


def test_a_server_heard_again_is_what_it_was(machine):
    servers_mark_silent(now=NOON + 20 * SECOND)
    Agent.objects.update(last_seen_at=NOON + 25 * SECOND)
    assert servers_mark_silent(now=NOON + 26 * SECOND) == 1
    assert (machine.server.state, machine.server.state_reason, machine.server.gpu_health) == (
        "degraded",
        "gpu_lost",
        "failed",
    )
    assert (machine.gpu(7).state, machine.gpu(7).state_reason) == ("lost", "gpu_lost")
    assert machine.gpu(0).state == "ok"
    assert servers_mark_silent(now=NOON + 27 * SECOND) == 0


def test_the_next_report_ends_the_silence_with_one_event_each_way(machine):
    servers_mark_silent(now=NOON + 20 * SECOND)
    machine.send(at=NOON + 25 * SECOND)
    assert (machine.server.state, machine.server.gpu_health) == ("ready", "healthy")
    assert changes()[-2:] == [("degraded", "not_reporting"), ("not_reporting", "ready")]
    assert not Event.objects.filter(kind="gpu.state_changed").exists()


def test_agents_that_report_seldom_are_given_longer(machine):
    Agent.objects.update(report_interval_seconds=60)
    assert servers_mark_silent(now=NOON + timedelta(seconds=149)) == 0
    assert servers_mark_silent(now=NOON + timedelta(seconds=151)) == 1


def test_a_machine_that_joined_and_never_reported_stays_joining():
    agent, _token = joined("fresh")
    assert servers_mark_silent(now=now() + timedelta(hours=1)) == 0
    agent.server.refresh_from_db()
    assert agent.server.state == "joining"


def test_silence_in_maintenance_leaves_the_state_and_greys_the_cards(machine):
    server_maintenance_set(server_id=machine.agent.server_id, is_on=True, actor=OPERATOR)
    assert servers_mark_silent(now=NOON + 20 * SECOND) == 1
    assert (machine.server.state, machine.gpu(0).state) == ("maintenance", "unknown")
    assert servers_mark_silent(now=NOON + 25 * SECOND) == 0
    Agent.objects.update(last_seen_at=NOON + 30 * SECOND)
    assert servers_mark_silent(now=NOON + 31 * SECOND) == 1
    assert (machine.server.state, machine.gpu(0).state, machine.gpu(7).state) == ("maintenance", "ok", "lost")


def test_maintenance_ends_in_what_the_last_report_said(machine):
    server_id = machine.agent.server_id
    server_maintenance_set(server_id=server_id, is_on=True, actor=OPERATOR, reason="fans")
    Agent.objects.update(last_seen_at=now())
    server_maintenance_set(server_id=server_id, is_on=False, actor=OPERATOR)
    assert (machine.server.state, machine.server.state_reason) == ("degraded", "gpu_lost")
    assert changes()[-2:] == [("degraded", "maintenance"), ("maintenance", "degraded")]
    assert AuditEntry.objects.filter(action="server.maintenance").count() == 2


def test_maintenance_of_a_silent_server_ends_in_silence(machine):
    server_maintenance_set(server_id=machine.agent.server_id, is_on=True, actor=OPERATOR)
    server_maintenance_set(server_id=machine.agent.server_id, is_on=True, actor=OPERATOR)
    server_maintenance_set(server_id=machine.agent.server_id, is_on=False, actor=OPERATOR)
    assert machine.server.state == "not_reporting"
    assert AuditEntry.objects.filter(action="server.maintenance").count() == 2


@pytest.fixture
def listening():
    """Run the watch every five seconds, and say before each round what a web process says; times are seconds after noon."""
    cache.clear()

    def watch(start, end, *, is_heard=True):
        marked = []
        for second in range(start, end):
            at = NOON + second * SECOND
            if is_heard:
                hearing_note(now=at)
            if second % 5 == 0 and servers_watch(now=at):
                marked.append(second)
        return marked

    yield watch
    cache.clear()


def test_a_panel_that_listened_all_the_time_marks_silence_at_once(machine, listening):
    assert listening(-90, 30) == [15]


def test_nobody_falls_silent_while_the_panel_takes_no_reports(machine, listening):
    listening(-90, 2)
    assert listening(2, 300, is_heard=False) == []
    assert machine.server.state == "degraded"


def test_after_a_pause_the_clock_of_silence_starts_anew(machine, listening):
    listening(-90, 2)
    listening(2, 32, is_heard=False)
    assert listening(32, 105) == []
    assert listening(105, 120) == [110]
    assert machine.server.state == "not_reporting"


def test_an_agent_heard_after_the_pause_is_judged_as_ever(machine, listening):
    listening(-90, 2)
    listening(2, 32, is_heard=False)
    listening(32, 40)
    Agent.objects.update(last_seen_at=NOON + 40 * SECOND)
    assert listening(40, 70) == [55]


def test_a_pause_of_two_seconds_is_none(machine, listening):
    listening(-90, 5)
    listening(5, 7, is_heard=False)
    assert listening(7, 30) == [15]


def test_a_process_that_cannot_reach_the_database_does_not_listen(listening, monkeypatch):
    listening(0, 10)
    monkeypatch.setattr("fleet.services.hearing.connection", Refusing())
    with pytest.raises(DatabaseError):
        hearing_note(now=NOON + 30 * SECOND)
    assert hearing_since(now=NOON + 30 * SECOND) is None


class Refusing:
    def cursor(self):
        raise DatabaseError


def test_those_heard_again_are_marked_so_even_while_nobody_can_be_silent(machine, listening):
    listening(-90, 30)
    Agent.objects.update(last_seen_at=NOON + 59 * SECOND)
    assert listening(60, 61, is_heard=False) == [60]
    assert machine.server.state == "degraded"


def test_the_tasks_run(machine):
    cache.clear()
    servers_watch_task()
    sightings_clear_task()
    assert machine.server.state == "degraded"


def test_silence_of_many_servers_costs_queries_by_the_server_and_not_by_the_card():
    for number in range(10):
        Machine(joined(f"rack-{number}")[0], cards=16).send(at=NOON)
    with CaptureQueriesContext(connection) as captured:
        assert servers_mark_silent(now=NOON + 20 * SECOND) == 10
    # per server: one event, one update of its cards
    assert len([query for query in captured if "SAVEPOINT" not in query["sql"]]) <= 6 + 2 * 10


def test_retiring_ends_the_agents_token_and_keeps_the_history(machine):
    agent, token = joined("other")
    server_end(server_id=agent.server_id, reason="retired", actor=OPERATOR, note="contract over")
    assert agent_authenticate(token=token) is None
    server = Server.objects.get(pk=agent.server_id)
    assert (server.state, server.state_reason) == ("retired", "retired")
    assert AuditEntry.objects.get(action="server.retire").reason == "contract over"
    server_end(server_id=agent.server_id, reason="retired", actor=OPERATOR)
    assert AuditEntry.objects.filter(action="server.retire").count() == 1
    joined("other")


def test_retired_cards_are_unknown_and_no_longer_watched(machine):
    server_end(server_id=machine.agent.server_id, reason="retired", actor=OPERATOR)
    assert set(Gpu.objects.values_list("state", "state_reason")) == {("unknown", "server_retired")}
    assert servers_mark_silent(now=NOON + timedelta(hours=1)) == 0


def test_only_a_retired_server_can_be_removed_for_good(machine):
    server_id = machine.agent.server_id
    machine.send(at=NOON, faults=[xid(79, NOON)])
    with pytest.raises(Conflict) as caught:
        server_remove(server_id=server_id, actor=OPERATOR)
    assert caught.value.code == "not_retired"
    server_end(server_id=server_id, reason="retired", actor=OPERATOR)
    server_remove(server_id=server_id, actor=OPERATOR)
    assert not Server.objects.exists()
    assert AuditEntry.objects.get(action="server.remove").before == {"name": "rack-1"}
    with pytest.raises(NotFound):
        server_remove(server_id=server_id, actor=OPERATOR)


def test_what_people_call_a_server_is_changed_with_a_record(machine):
    server_update(server_id=machine.agent.server_id, actor=OPERATOR, name="new", labels={"team": "ml", "n": 3})
    assert (machine.server.name, machine.server.labels) == ("new", {"team": "ml", "n": "3"})
    entry = AuditEntry.objects.get(action="server.update")
    assert entry.before == {"name": "rack-1", "labels": {}}
    assert entry.after == {"name": "new", "labels": {"team": "ml", "n": "3"}}
    server_update(server_id=machine.agent.server_id, actor=OPERATOR, name="new")
    assert AuditEntry.objects.filter(action="server.update").count() == 1


@pytest.mark.parametrize(
    "wrong", [{"name": " "}, {"name": "OTHER"}, {"labels": {" ": "x"}}, {"labels": {str(n): "" for n in range(40)}}]
)
def test_what_people_call_a_server_is_checked(machine, wrong):
    joined("other")
    with pytest.raises(InvalidInput) as caught:
        server_update(server_id=machine.agent.server_id, actor=OPERATOR, **wrong)
    assert caught.value.field in wrong
