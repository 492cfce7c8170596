"""The fleet's topics: who may see them, what a snapshot holds, and that it costs the same for any number of cards."""

import json

import pytest

from fleet.models import Gpu, Job, JoinToken, Server
from monitoring.live import topics
from panel.accounts.enums import Role
from panel.accounts.models import User
from panel.core.clock import now
from panel.core.errors import NotFound
from panel.core.events import event_write

pytestmark = pytest.mark.django_db

FLEET_SNAPSHOT_QUERIES = 3
SERVER_SNAPSHOT_QUERIES = 4


def make_server(name, cards):
    server = Server.objects.create(name=name, state_changed_at=now(), created_at=now())
    for index in range(cards):
        Gpu.objects.create(
            server=server,
            uuid=f"GPU-{name}-{index}",
            index=index,
            state_changed_at=now(),
            first_seen_at=now(),
            state="ok",
        )
    return server


def snapshot(name):
    topic, identifier = topics.resolve(name)
    data = topic.snapshot(identifier)
    json.dumps(data)
    return data


def may(role, name):
    topic, identifier = topics.resolve(name)
    return topic.authorize(User(username="u", role=role), identifier)


@pytest.mark.parametrize("size", [1, 12])
def test_the_fleets_snapshot_costs_the_same_for_any_size(django_assert_num_queries, size):
    for number in range(size):
        make_server(f"s{number}", 8)
    with django_assert_num_queries(FLEET_SNAPSHOT_QUERIES):
        data = snapshot("fleet")
    assert len(data["servers"]) == size
    assert len(data["gpus"]) == size * 8
    assert {entry["gpus_known"] for entry in data["servers"].values()} == {8}


@pytest.mark.parametrize("cards", [1, 8])
def test_a_servers_snapshot_costs_the_same_for_any_number_of_cards(django_assert_num_queries, cards):
    server = make_server("one", cards)
    with django_assert_num_queries(SERVER_SNAPSHOT_QUERIES):
        data = snapshot(f"server.{server.pk}")
    assert list(data["server"]) == [str(server.pk)]
    assert {entry["uuid"] for entry in data["gpus"].values()} == {f"GPU-one-{index}" for index in range(cards)}


def test_retired_servers_and_forgotten_cards_are_not_in_the_fleet():
    old, server = make_server("old", 2), make_server("new", 2)
    Server.objects.filter(pk=old.pk).update(retired_at=now())
    Gpu.objects.filter(server=server, index=1).update(removed_at=now())
    data = snapshot("fleet")
    assert list(data["servers"]) == [str(server.pk)]
    assert len(data["gpus"]) == 1


def test_a_job_is_watched_without_its_result():
    server = make_server("one", 0)
    job = Job.objects.create(
        server=server, kind="acceptance", state="running", progress={"percent": 40, "step": "disk"}, result={"x": 1},
        time_limit_seconds=150, actor_kind="system", actor_name="test", created_at=now(), expires_at=now(),
    )  # fmt: skip
    entry = snapshot(f"job.{job.pk}")["jobs"][str(job.pk)]
    assert (entry["state"], entry["percent"], entry["step"]) == ("running", 40, "disk")
    assert "result" not in entry
    assert may(Role.VIEWER, f"job.{job.pk}")
    assert not may("", f"job.{job.pk}")


@pytest.mark.parametrize("name", ["server.999999", "gpu.999999", "join.999999", "job.999999"])
def test_what_does_not_exist_is_not_for_anyone_and_has_no_snapshot(name):
    assert not may(Role.ADMIN, name)
    with pytest.raises(NotFound):
        snapshot(name)


def test_viewers_see_the_fleet_and_only_operators_see_joins():
    server = make_server("one", 1)
    token = JoinToken.objects.create(name="t", prefix="abcdefgh", created_at=now(), expires_at=now())
    for name in ("fleet", "events", f"server.{server.pk}", f"gpu.{server.gpus.get().pk}"):
        assert may(Role.VIEWER, name)
        assert not may("", name)
    assert not may(Role.VIEWER, f"join.{token.pk}")
    assert may(Role.OPERATOR, f"join.{token.pk}")
    assert snapshot(f"join.{token.pk}")["join"][str(token.pk)]["token_used_at"] is None


def test_the_events_snapshot_holds_the_newest_oldest_first():
    for number in range(25):
        event_write(kind="server.joined", subject_kind="server", subject_id=number, subject_name=f"s{number}")
    names = [entry["subject_name"] for entry in snapshot("events")["events"].values()]
    assert names == [f"s{number}" for number in range(5, 25)]


@pytest.mark.parametrize(
    "name", ["", "server", "server.", "server.x", "server.01", "fleet.1", "server.1.2", "nothing", 3, None]
)
def test_names_that_are_no_topics_are_refused(name):
    with pytest.raises(NotFound):
        topics.resolve(name)
