"""The socket as a browser meets it: real sessions, real Valkey, real database."""

import asyncio
import contextlib

import pytest
from asgiref.sync import sync_to_async
from django.contrib.sessions.backends.db import SessionStore
from django.db import connections
from django.test import Client

from monitoring.live import topics
from monitoring.live.consumer import LiveConsumer
from monitoring.live.hub import Hub, hub
from monitoring.live.topics import Topic
from panel.accounts.enums import Role
from panel.accounts.models import User
from panel.core import live
from panel.core.errors import NotFound
from tests.live.browser import Browser

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def board(monkeypatch):
    """A registry with two topics: `board.<id>` for everyone but id 9, `secret` for admins."""
    state = {"value": 0}
    kinds = [
        Topic(
            "board",
            lambda _user, identifier: identifier != 9,
            lambda identifier: {"cells": {str(identifier): state["value"]}},
        ),
        Topic("secret", lambda user, _id: user.role == Role.ADMIN, lambda _id: {"cells": {}}, has_id=False),
    ]
    monkeypatch.setattr(topics, "_registry", {kind.kind: kind for kind in kinds})
    return state


@pytest.fixture
async def viewer():
    return await User.objects.acreate_user("vera", password="quite-long-password", role=Role.VIEWER)


@pytest.fixture
async def socket(board, viewer):
    """A connected socket of a logged-in viewer."""
    client = Client()
    await sync_to_async(client.force_login)(viewer)
    browser = Browser(LiveConsumer.as_asgi(), cookies={"sessionid": client.cookies["sessionid"].value})
    await browser.connect()
    yield browser
    await browser.close()
    await hub().stop()
    await sync_to_async(connections.close_all)()


async def hear_until(socket, wanted, seconds=8):
    async with asyncio.timeout(seconds):
        while True:
            message = await socket.hear(seconds)
            if wanted(message):
                return message


async def test_a_subscriber_gets_a_snapshot_then_what_is_published(socket, board):
    board["value"] = 7
    await socket.say(type="subscribe", topics=["board.3"])
    snapshot = await socket.hear()
    assert (snapshot["type"], snapshot["topic"], snapshot["data"]) == ("snapshot", "board.3", {"cells": {"3": 7}})
    await live.apublish("board.3", {"cells": {"3": 8}})
    delta = await socket.hear()
    assert (delta["type"], delta["data"]) == ("delta", {"cells": {"3": 8}})
    assert (delta["from"], delta["seq"]) == (snapshot["seq"] + 1, snapshot["seq"] + 1)


async def test_a_burst_is_merged_into_few_frames_without_a_gap(socket, board):
    await socket.say(type="subscribe", topics=["board.3"])
    last = (await socket.hear())["seq"]
    for value in range(50):
        await live.apublish("board.3", {"cells": {"3": value}})
    frames = []
    while last < 50:
        frame = await socket.hear()
        assert frame["from"] == last + 1
        last = frame["seq"]
        frames.append(frame)
    assert frames[-1]["data"] == {"cells": {"3": 49}}
    assert len(frames) < 10


async def test_what_one_may_not_see_is_refused_and_the_rest_still_works(socket, board):
    await socket.say(type="subscribe", topics=["board.9", "secret", "board.03", "board.", "nothing.1", "board.1"])
    answers = [await socket.hear() for _ in range(6)]
    assert [answer["type"] for answer in answers].count("refused") == 5
    assert {answer["topic"] for answer in answers if answer["type"] == "snapshot"} == {"board.1"}
    await live.apublish("secret", {"cells": {"1": "hidden"}})
    await live.apublish("board.1", {"cells": {"1": 1}})
    assert (await socket.hear())["topic"] == "board.1"


async def test_after_unsubscribing_nothing_comes(socket, board):
    await socket.say(type="subscribe", topics=["board.3"])
    await socket.hear()
    await socket.say(type="unsubscribe", topics=["board.3"])
    await socket.say(type="subscribe", topics=["board.4"])
    await socket.hear()
    await live.apublish("board.3", {"cells": {"3": 1}})
    await live.apublish("board.4", {"cells": {"4": 1}})
    assert (await socket.hear())["topic"] == "board.4"
    assert "board.3" not in hub().subscriptions


async def test_logging_out_closes_the_socket_within_seconds(socket, viewer):
    await sync_to_async(SessionStore(socket.scope["cookies"]["sessionid"]).delete)()
    closing = await hear_until(socket, lambda message: message["type"] == "closing", seconds=5)
    assert closing["reason"] == "logged_out"
    assert await socket.hear_closing() == 4401


@pytest.mark.parametrize("change", ["deactivate", "password"])
async def test_a_deactivated_person_or_a_changed_password_closes_the_socket(socket, viewer, change):
    if change == "deactivate":
        viewer.is_active = False
    else:
        viewer.set_password("another-long-password")
    await viewer.asave()
    assert await hear_until(socket, lambda message: message["type"] == "closing", seconds=5)


async def test_a_lowered_role_ends_the_topics_that_need_it(socket, viewer):
    viewer.role = Role.ADMIN
    await viewer.asave()
    await socket.say(type="subscribe", topics=["secret"])
    assert (await socket.hear())["type"] == "snapshot"
    await asyncio.wait_for(_seen_by_guard(viewer), 5)
    viewer.role = Role.VIEWER
    await viewer.asave()
    refused = await hear_until(socket, lambda message: message["type"] == "refused", seconds=5)
    assert refused["topic"] == "secret"


async def test_a_hub_stops_though_a_library_loses_a_cancellation(board):
    async def deaf_once():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        await asyncio.sleep(60)

    stopping = Hub()
    stopping._tasks = [asyncio.create_task(deaf_once())]
    await asyncio.sleep(0)
    await asyncio.wait_for(stopping.stop(), 10)


async def _seen_by_guard(viewer):
    from monitoring.live.sessions import guard

    await guard().check()
    assert viewer.role in guard()._roles.values()


@pytest.mark.parametrize("cookies", [{}, {"sessionid": ""}, {"sessionid": "x" * 32}, {"sessionid": "' OR 1=1"}])
async def test_a_stranger_is_told_and_closed(board, cookies):
    browser = Browser(LiveConsumer.as_asgi(), cookies=cookies)
    await browser.connect()
    assert (await browser.hear())["reason"] == "logged_out"
    assert await browser.hear_closing() == 4401
    await sync_to_async(connections.close_all)()


@pytest.mark.parametrize("text", ["", "[1]", '{"type": 3}', "x" * 20_000])
async def test_a_message_that_is_not_understood_ends_the_socket(socket, text):
    await socket.send_text(text)
    assert (await socket.hear())["type"] == "closing"
    assert await socket.hear_closing() == 4400


async def test_lost_messages_lead_to_a_fresh_snapshot(socket, board):
    await socket.say(type="subscribe", topics=["board.3"])
    await socket.hear()
    board["value"] = 42
    hub()._run_id = "another run"
    snapshot = await hear_until(socket, lambda message: message["type"] == "snapshot", seconds=8)
    assert snapshot["data"] == {"cells": {"3": 42}}


async def test_a_topic_that_vanishes_is_refused(board, socket, monkeypatch):
    def gone(_identifier):
        raise NotFound("This board does not exist any more.")

    monkeypatch.setattr(topics, "_registry", {"board": Topic("board", lambda *_: True, gone)})
    await socket.say(type="subscribe", topics=["board.3"])
    assert (await socket.hear())["code"] == "not_found"
    assert "board.3" not in hub().subscriptions


async def test_looked_at_servers_are_marked_as_watched(socket, board, monkeypatch):
    kind = Topic("board", lambda *_: True, lambda _id: {}, watches=lambda identifier: identifier)
    monkeypatch.setattr(topics, "_registry", {"board": kind})
    await socket.say(type="subscribe", topics=["board.77"])
    await socket.hear()
    watched = live.Watched()
    assert 77 in await sync_to_async(watched.servers)()
