"""An agent asks what it should do: answered at once, or held until a commit changes it."""

import asyncio
import time

import httpx
import msgspec
import pytest
from asgiref.sync import sync_to_async
from channels.layers import get_channel_layer
from django.db import connections

from fleet.agent import wire
from fleet.assignments import app as module
from fleet.assignments.app import AssignmentsApplication
from fleet.assignments.waiters import ASSIGNMENTS_GROUP, PER_AGENT, Waiters
from fleet.models import Agent
from fleet.services.agents import agent_configure, agent_revoke
from tests.fleet.factories import OPERATOR, joined
from tests.waiting import eventually_here

pytestmark = pytest.mark.django_db(transaction=True)
PATIENCE_SECONDS = 20.0


class Panel:
    """The application, asked as agents do."""

    def __init__(self, application):
        self.application = application
        self._http = httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url="http://panel")

    @property
    def waiting(self):
        return len(self.application.waiters)

    async def get(self, token="", query="", **headers):
        authorization = {"Authorization": f"Bearer {token}"} if token else {}
        return await self._http.get(f"/api/agent/v1/assignments/?{query}", headers={**authorization, **headers})

    async def until_waiting(self, count):
        await eventually_here(lambda: self.waiting, lambda waiting: waiting == count, what=f"{count} waiting agents")


@pytest.fixture
async def panel():
    application = AssignmentsApplication()
    asked = Panel(application)
    yield asked
    await application.close()
    await sync_to_async(connections.close_all)()


@pytest.fixture
async def machine():
    """An agent and its token."""
    return await sync_to_async(joined)()


def configure(agent, seconds):
    return sync_to_async(agent_configure)(agent_id=agent.pk, actor=OPERATOR, sample_interval_seconds=seconds)


def told(answer):
    assert answer.status_code == 200, answer.text
    return msgspec.json.decode(answer.content, type=wire.Assignments)


async def test_assignments_are_told_to_the_agent_alone(panel, machine):
    _agent, token = machine
    refused = await panel.get()
    assert (refused.status_code, refused.json()["code"]) == (401, "token_unknown")
    assert refused.headers["WWW-Authenticate"] == "Bearer"
    assert told(await panel.get(token)) == wire.Assignments(1, 5.0, 5.0)
    packed = await panel.get(token, Accept="application/msgpack")
    assert msgspec.msgpack.decode(packed.content, type=wire.Assignments).version == 1


@pytest.mark.parametrize("query", ["", "wait=25", "wait=25&have=7", "wait=0&have=1", "wait=-1&have=1", "have=1"])
async def test_who_does_not_wait_or_has_another_version_is_answered_at_once(panel, machine, query):
    began = time.monotonic()
    assert told(await panel.get(machine[1], query)).version == 1
    assert time.monotonic() - began < 10
    assert panel.waiting == 0


@pytest.mark.parametrize("query", ["wait=soon", "wait=nan", "wait=25&have=new"])
async def test_what_cannot_be_read_is_refused(panel, machine, query):
    assert (await panel.get(machine[1], query)).status_code == 400


async def test_other_methods_are_refused(panel):
    answer = await panel._http.post("/api/agent/v1/assignments/")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "GET")


async def test_a_waiting_agent_hears_of_a_change_once_it_is_committed(panel, machine):
    agent, token = machine
    asking = asyncio.create_task(panel.get(token, "wait=25&have=1"))
    await panel.until_waiting(1)
    await configure(agent, 9)
    answer = told(await asyncio.wait_for(asking, 15))
    assert (answer.version, answer.sample_interval_seconds) == (2, 9.0)
    assert panel.waiting == 0


async def test_the_wait_ends_by_itself_with_the_present_state(panel, machine, monkeypatch):
    monkeypatch.setattr(module, "MAX_WAIT_SECONDS", 0.2)
    assert told(await panel.get(machine[1], "wait=3600&have=1")).version == 1
    assert panel.waiting == 0


async def test_a_change_that_nobody_told_of_is_seen_when_the_wait_ends(panel, machine):
    agent, token = machine
    asking = asyncio.create_task(panel.get(token, "wait=1&have=1"))
    await panel.until_waiting(1)
    await Agent.objects.filter(pk=agent.pk).aupdate(assignments_version=5)
    assert told(await asking).version == 5


async def test_a_change_between_look_and_wait_is_not_slept_through(panel, machine, monkeypatch):
    agent, token = machine
    add = Waiters.add

    async def add_and_change(self, agent_id):
        waiter = await add(self, agent_id)
        await Agent.objects.filter(pk=agent.pk).aupdate(assignments_version=6)
        return waiter

    monkeypatch.setattr(Waiters, "add", add_and_change)
    assert told(await asyncio.wait_for(panel.get(token, "wait=25&have=1"), 15)).version == 6


async def test_an_agent_whose_token_ends_while_it_waits_is_told_so(panel, machine):
    agent, token = machine
    asking = asyncio.create_task(panel.get(token, "wait=25&have=1"))
    await panel.until_waiting(1)
    await sync_to_async(agent_revoke)(agent=agent, actor=OPERATOR)
    assert (await asyncio.wait_for(asking, 15)).status_code == 401


async def test_hundreds_wait_on_the_loop_and_only_the_changed_one_is_released(panel):
    machines = [await sync_to_async(joined)(f"rack-{number}") for number in range(300)]
    asking = [asyncio.create_task(panel.get(token, "wait=25&have=1")) for _agent, token in machines]
    await panel.until_waiting(300)
    await configure(machines[7][0], 9)
    assert told(await asyncio.wait_for(asking[7], 15)).version == 2
    assert panel.waiting == 299
    assert sum(task.done() for task in asking) == 1
    panel.application.waiters.release_all()
    answers = await asyncio.gather(*asking)
    assert {told(answer).version for answer in answers[:7]} == {1}
    assert panel.waiting == 0


async def test_of_one_agents_waiters_the_newest_stay(panel, machine):
    agent, token = machine
    asking = []
    for number in range(PER_AGENT + 2):
        asking.append(asyncio.create_task(panel.get(token, "wait=25&have=1")))
        await panel.until_waiting(min(number + 1, PER_AGENT))
        if number >= PER_AGENT:
            assert told(await asyncio.wait_for(asking[number - PER_AGENT], 15)).version == 1
    await configure(agent, 9)
    assert [told(await task).version for task in asking[-PER_AGENT:]] == [2] * PER_AGENT


async def test_a_process_holds_no_more_than_it_may(panel, machine, monkeypatch):
    panel.application._started()
    panel.application.waiters = Waiters(per_process=1)
    asking = asyncio.create_task(panel.get(machine[1], "wait=25&have=1"))
    await panel.until_waiting(1)
    _other, token = await sync_to_async(joined)("other")
    refused = await panel.get(token, "wait=25&have=1")
    assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
    assert int(refused.headers["Retry-After"]) >= 1
    assert told(await panel.get(token)).version == 1
    panel.application.waiters.release_all()
    await asking


async def test_who_hangs_up_is_forgotten(panel, machine):
    hung_up = asyncio.Event()
    sent = []

    async def receive():
        await hung_up.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    headers = [(b"authorization", f"Bearer {machine[1]}".encode())]
    scope = {"type": "http", "method": "GET", "headers": headers, "query_string": b"wait=25&have=1"}
    asking = asyncio.create_task(panel.application(scope, receive, send))
    await panel.until_waiting(1)
    hung_up.set()
    await asyncio.wait_for(asking, 15)
    assert panel.waiting == 0


async def test_waiters_hear_again_after_the_line_to_valkey_broke(panel, machine, monkeypatch):
    agent, token = machine
    layer = get_channel_layer()
    receive, broken = layer.receive, []

    async def break_once(channel):
        if not broken:
            broken.append(channel)
            raise OSError("the line is cut")
        return await receive(channel)

    monkeypatch.setattr("fleet.assignments.waiters.RETRY_SECONDS", 0.05)
    monkeypatch.setattr(layer, "receive", break_once)
    assert told(await asyncio.wait_for(panel.get(token, "wait=25&have=1"), 15)).version == 1
    assert broken
    asking = asyncio.create_task(panel.get(token, "wait=25&have=1"))
    await panel.until_waiting(1)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not asking.done():
            await layer.group_send(ASSIGNMENTS_GROUP, {"type": "fleet.assignments_changed", "agent_id": agent.pk})
            await asyncio.sleep(0.05)
    assert told(await asking).version == 1
