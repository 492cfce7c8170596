"""What pages hear after a commit: what changed, once, and nothing for a report that says nothing new."""

import json
from collections import defaultdict
from datetime import timedelta

import pytest

from fleet.agent import wire
from fleet.models import Agent
from fleet.selectors import gpu_live, join_live, server_live
from fleet.services.gpus import gpu_forget
from fleet.services.joining import join_token_create
from fleet.services.servers import server_end, servers_mark_silent
from tests.fleet.factories import NOON, OPERATOR, Machine, card, join_token_of, joined, sample

pytestmark = pytest.mark.django_db


@pytest.fixture
def told(monkeypatch):
    """Everything that was published: topic → list of data."""
    heard = defaultdict(list)

    def keep(topic, data):
        heard[topic].append(json.loads(json.dumps(data)))  # as JSON, or it could not be sent

    monkeypatch.setattr("fleet.services.telling.publish", keep)
    monkeypatch.setattr("panel.core.live.publish", keep)
    return heard


@pytest.fixture
def machine():
    return Machine(joined()[0])


def send(machine, commits, **kwargs):
    with commits(execute=True):
        machine.send(**kwargs)


def test_the_first_report_tells_the_server_its_cards_and_the_join(machine, told, django_capture_on_commit_callbacks):
    send(machine, django_capture_on_commit_callbacks, at=NOON, host=wire.HostFacts(hostname="n"))
    server_id = str(machine.agent.server_id)
    [fleet] = told["fleet"]
    assert (fleet["servers"][server_id]["state"], fleet["servers"][server_id]["gpus_known"]) == ("ready", 8)
    assert len(fleet["gpus"]) == 8
    assert told[f"server.{server_id}"][0]["server"][server_id]["last_seen_at"] == NOON.isoformat()
    gpu_id = str(machine.gpu(0).pk)
    assert told[f"gpu.{gpu_id}"][0]["gpus"][gpu_id]["state"] == "ok"
    token = join_token_of(machine.agent)
    [join] = told[f"join.{token.pk}"]
    steps = join["join"][str(token.pk)]
    assert (steps["server_id"], steps["facts_at"], steps["gpu_count"]) == (machine.agent.server_id, NOON.isoformat(), 8)


def test_a_report_that_says_nothing_new_tells_nobody(machine, told, django_capture_on_commit_callbacks):
    machine.send(at=NOON, gpus=[card(number) for number in range(8)])
    told.clear()
    send(machine, django_capture_on_commit_callbacks, at=NOON + timedelta(seconds=5))
    assert not told


def test_a_lost_card_is_told_with_its_event_and_its_neighbours_are_not(
    machine, told, django_capture_on_commit_callbacks
):
    machine.send(at=NOON)
    gpus = [card(0, state="lost", reason="gpu_lost", facts=None), *machine.cards[1:]]
    send(machine, django_capture_on_commit_callbacks, at=NOON, gpus=gpus)
    lost = str(machine.gpu(0).pk)
    [fleet] = told["fleet"]
    assert {gpu_id: gpu["state"] for gpu_id, gpu in fleet["gpus"].items()} == {lost: "lost"}
    [events] = told["events"]  # one message for all that the transaction wrote
    kinds = [event["kind"] for event in events["events"].values()]
    assert sorted(kinds) == ["gpu.state_changed", "server.state_changed"]


def test_what_is_rolled_back_is_not_told(machine, told, monkeypatch, django_capture_on_commit_callbacks):
    def break_off(**_):
        raise RuntimeError("the power failed")

    monkeypatch.setattr("fleet.services.inventory.server_judge", break_off)
    with django_capture_on_commit_callbacks(execute=True), pytest.raises(RuntimeError, match="power"):
        machine.send(at=NOON, host=wire.HostFacts(hostname="n"))
    assert not told
    assert not machine.server.gpus.exists()


def test_process_lists_are_told_when_they_were_read(machine, told, django_capture_on_commit_callbacks):
    machine.send(at=NOON)
    process = wire.GpuProcess(pid=7, kinds=["compute"], name="python")
    gpus = [card(0, processes=[process], processes_visibility="visible"), *machine.cards[1:]]
    send(machine, django_capture_on_commit_callbacks, at=NOON, gpus=gpus)
    gpu_id = str(machine.gpu(0).pk)
    [entry] = told[f"gpu.{gpu_id}"]
    assert entry["processes"][gpu_id]["processes"][0]["pid"] == 7


def test_the_first_sample_ticks_the_join(machine, told, django_capture_on_commit_callbacks):
    machine.send(at=NOON)
    token = join_token_of(machine.agent)
    send(
        machine, django_capture_on_commit_callbacks, at=NOON, gpus=[card(0, samples=[sample(NOON)]), *machine.cards[1:]]
    )
    assert told[f"join.{token.pk}"][-1]["join"][str(token.pk)]["first_sample_at"] == NOON.isoformat()


def test_many_silent_servers_are_one_word_to_the_fleet(told, django_capture_on_commit_callbacks):
    machines = [Machine(joined(f"rack-{number}")[0], cards=2) for number in range(3)]
    for machine in machines:
        machine.send(at=NOON)
    told.clear()
    with django_capture_on_commit_callbacks(execute=True):
        servers_mark_silent(now=NOON + timedelta(minutes=1))
    [fleet] = told["fleet"]
    assert {server["state"] for server in fleet["servers"].values()} == {"not_reporting"}
    assert {gpu["state_reason"] for gpu in fleet["gpus"].values()} == {"server_silent"}
    assert len(fleet["gpus"]) == 6


def test_a_forgotten_card_and_a_retired_server_are_told(machine, told, django_capture_on_commit_callbacks):
    machine.send(at=NOON)
    machine.send(at=NOON, gpus=machine.cards[:7])
    gone = machine.gpu(7)
    with django_capture_on_commit_callbacks(execute=True):
        gpu_forget(gpu_id=gone.pk, actor=OPERATOR)
    assert told["fleet"][-1]["gpus"][str(gone.pk)]["removed_at"]
    with django_capture_on_commit_callbacks(execute=True):
        server_end(server_id=machine.agent.server_id, reason="retired", actor=OPERATOR)
    assert told["fleet"][-1]["servers"][str(machine.agent.server_id)]["state"] == "retired"


def test_a_join_that_was_not_used_shows_no_server_even_to_be_joined_again(machine):
    machine.send(at=NOON)
    made = join_token_create(name="", server=machine.server, actor=OPERATOR)
    steps = join_live(made.row)
    assert (steps["token_used_at"], steps["server_id"], steps["gpu_count"]) == (None, None, None)


def test_frames_are_json_and_name_what_they_are(machine):
    machine.send(at=NOON)
    server = machine.server
    frame = json.loads(json.dumps(server_live(server)))
    assert (frame["id"], frame["name"], frame["gpus_answering"]) == (server.pk, "rack-1", 8)
    assert json.loads(json.dumps(gpu_live(machine.gpu(0))))["uuid"] == machine.gpu(0).uuid
    Agent.objects.all().delete()
    server.refresh_from_db()
    assert server_live(type(server).objects.get())["last_seen_at"] is None
