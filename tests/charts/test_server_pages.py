"""The pages of one server and of one card: what is said of them, and what people do there."""

import re

import pytest
from django.urls import reverse

from fleet.agent import wire
from fleet.enums import ServerState
from fleet.models import Server
from panel.core.clock import now
from tests.charts.fleet_data import gpu_of, latest, machine, working
from tests.charts.reading import config_of, text_of
from tests.fleet.factories import GIB, card_uuid, xid

pytestmark = pytest.mark.django_db


def test_seven_of_eight_names_the_missing_card_and_since_when(viewer):
    made = working()
    made.send(gpus=[one for number, one in enumerate(made.cards) if number != 3])
    text = text_of(viewer.get(f"/servers/{made.agent.server_id}/"))
    assert f"7 of 8 GPUs. Missing: #3 ({card_uuid(3)[4:12]})." in text
    assert "Since" in text


def test_eight_cards_of_one_name_are_eight_cards_and_eight_lines(viewer):
    made = working()
    response = viewer.get(f"/servers/{made.agent.server_id}/")
    config = config_of(response)
    lines = next(chart for chart in config["charts"] if chart["id"] == "power")["choices"][0]["lines"]
    assert [line["short"] for line in lines] == [f"#{number}" for number in range(8)]
    assert len({line["subject"] for line in lines}) == 8
    assert response.content.decode().count("<article") == 8


def test_a_driver_mismatch_keeps_the_cards_listed_and_says_both_versions(viewer):
    made = working()
    driver = wire.Driver(state="version_mismatch", version="570.86", library_version="570.124", detail="API mismatch")
    made.send(driver=driver, gpus=[])
    response = viewer.get(f"/servers/{made.agent.server_id}/")
    text = text_of(response)
    assert "Kernel module 570.86, library 570.124." in text
    assert "Reboot needed" in text
    assert response.content.decode().count("<article") == 8


def test_hidden_processes_are_said_to_be_hidden_and_none_to_be_none(viewer):
    made = working(cards=1)
    address = f"/servers/{made.agent.server_id}/"
    assert "No processes: the whole list was read" in text_of(viewer.get(address))
    made.cards[0].processes_visibility = "hidden"
    made.send()
    text = text_of(viewer.get(address))
    assert "processes not visible from here" in text
    assert "No processes:" not in text


def test_process_names_are_text(viewer):
    made = working(cards=1)
    made.cards[0].processes = [wire.GpuProcess(pid=7, kinds=["compute"], name="<script>alert(1)</script>", user="=cmd")]
    made.send()
    page = viewer.get(f"/servers/{made.agent.server_id}/").content.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_a_clock_that_is_off_by_more_than_half_a_minute_has_a_badge(viewer):
    made = working(cards=1)
    agent = made.agent
    agent.clock_skew_seconds = 29.0
    agent.save()
    assert "clock off" not in text_of(viewer.get(f"/servers/{agent.server_id}/"))
    agent.clock_skew_seconds = -180.0
    agent.save()
    assert "clock off by 3 m" in text_of(viewer.get(f"/servers/{agent.server_id}/"))


def test_faults_are_listed_with_their_meaning_and_the_next_step(viewer):
    made = working()
    made.send(faults=[xid(79, now(), number=2)])
    text = text_of(viewer.get(f"/servers/{made.agent.server_id}/"))
    assert "XID 79" in text
    assert "fell off the PCI bus" in text
    assert "Reboot the server." in text


def test_mig_instances_stand_under_their_card_and_are_not_counted_beside_it(viewer):
    made = working(cards=1)
    parent = card_uuid(0)
    slices = [
        wire.Gpu(
            uuid=f"MIG-{number}",
            parent_uuid=parent,
            facts=wire.GpuFacts(name=f"MIG {number}g", memory_total_bytes=10 * GIB),
        )
        for number in (3, 2, 1)
    ]
    made.cards[0].facts.mig_mode = True
    made.send(gpus=[made.cards[0], *slices])
    latest(gpu_of(made).pk, now(), memory_used_bytes=59 * 2**20, power_watts=71)
    text = text_of(viewer.get(f"/servers/{made.agent.server_id}/"))
    assert "1 of 1 GPU" in text
    assert "3 MIG instances" in text
    assert "Cannot tell" in text
    assert "Idle" not in text


def test_a_server_without_a_gpu_is_a_server_all_the_same(viewer):
    made = machine(cards=0)
    text = text_of(viewer.get(f"/servers/{made.agent.server_id}/"))
    assert "No GPU here" in text
    assert "CPU and RAM" in text


def test_people_rename_pause_and_remove_a_server(operator):
    made = working()
    server = made.agent.server_id
    operator.post(reverse("server-rename", args=[server]), {"name": "rack-9", "provider": "Hetzner", "region": ""})
    row = Server.objects.get(pk=server)
    assert (row.name, row.provider) == ("rack-9", "Hetzner")
    operator.post(reverse("server-maintenance", args=[server]), {"is_on": "true"})
    assert Server.objects.get(pk=server).state == ServerState.MAINTENANCE
    operator.post(reverse("server-maintenance", args=[server]), {"is_on": "false"})
    assert Server.objects.get(pk=server).state != ServerState.MAINTENANCE
    operator.post(reverse("server-remove", args=[server]), {"typed_name": "rack-1"})
    assert Server.objects.get(pk=server).state != ServerState.RETIRED
    operator.post(reverse("server-remove", args=[server]), {"typed_name": "rack-9"})
    assert Server.objects.get(pk=server).state == ServerState.RETIRED
    assert reverse("server", args=[server]) not in operator.get("/fleet/").content.decode()
    assert "its history stays" in text_of(operator.get(f"/servers/{server}/"))


def test_a_name_that_is_taken_is_refused_in_words(operator):
    first, second = working(), working("rack-2", 1)
    response = operator.post(reverse("server-rename", args=[second.agent.server_id]), {"name": "RACK-1"}, follow=True)
    assert "There is a server of that name already." in text_of(response)
    assert first.server.name == "rack-1"


def test_a_card_that_was_never_read_has_empty_bars(viewer):
    made = machine(cards=1)
    page = viewer.get(f"/servers/{made.agent.server_id}/").content.decode()
    assert set(re.findall(r'<rect class="fill" width="([^"]*)"', page)) == {"0"}


def test_what_moves_with_a_servers_state_is_one_part_of_its_page(viewer):
    made = working(cards=2)
    made.send(faults=[xid(79, now())])
    part = viewer.get(f"/servers/{made.agent.server_id}/?part=status").content.decode()
    assert re.findall(r'id="(processes|faults|facts)"[^>]* hx-swap-oob="true"', part) == [
        "processes",
        "faults",
        "facts",
    ]
    assert "XID 79" in part
    charts = viewer.get(f"/servers/{made.agent.server_id}/?part=charts&range=1h").content.decode()
    assert charts.count("<figure") == 8
    assert re.search(r'href="\?range=1h" aria-current="true"', charts)
    assert "Times in UTC" in charts
    assert "<html" not in charts


def test_a_reading_that_a_card_does_not_offer_has_its_reason(viewer):
    made = working(cards=1)
    made.cards[0].unsupported = {
        "memory_temperature_celsius": "not_supported",
        "ecc_corrected_volatile": "no_permission",
    }
    made.send()
    text = text_of(viewer.get(f"/gpus/{gpu_of(made).pk}/"))
    assert "the card does not offer it" in text
    assert "n/a: the agent may not read it" in text


def test_a_card_that_moved_shows_every_place_that_it_was_in(viewer):
    old = working("rack-old", 1)
    new = working("rack-new", 1)
    response = viewer.get(f"/gpus/{gpu_of(new).pk}/")
    assert reverse("gpu", args=[gpu_of(old).pk]) in response.content.decode()
    config = config_of(response)
    assert config["urls"] == [f"/api/v1/gpus/{gpu_of(new).pk}/series/", f"/api/v1/gpus/{gpu_of(old).pk}/series/"]


def test_a_loaded_quiet_card_is_not_called_free(viewer):
    made = working(cards=1)
    made.cards[0].processes_visibility = "hidden"
    made.send()
    latest(gpu_of(made).pk, now(), utilization_percent=0, memory_used_bytes=int(0.907 * 140 * GIB))
    text = text_of(viewer.get(f"/gpus/{gpu_of(made).pk}/"))
    assert "Loaded, quiet" in text
    assert "Idle:" not in text
