"""The pages of the fleet as people of each role get them."""

import html
import json
import re
from datetime import timedelta

import pytest
from django.urls import reverse

from fleet.agent import wire
from fleet.enums import ServerState
from fleet.models import Gpu, Server
from frontend.templatetags.fleet import heat_cells
from monitoring.activity import Activity
from monitoring.store.tables import GPU, HOST
from panel.core.clock import now
from tests.charts.fleet_data import WORK, gpu_of, history, latest, machine, working
from tests.charts.rows import gpu
from tests.fleet.factories import GIB, card_uuid, joined, xid
from tests.frontend.html import Page

pytestmark = pytest.mark.django_db


def text_of(response):
    """What the page says, without its markup."""
    assert response.status_code == 200, response.status_code
    return re.sub(
        r"\s+", " ", re.sub(r"<(script|style|svg)\b.*?</\1>|<[^>]+>", " ", response.content.decode(), flags=re.DOTALL)
    )


def config_of(response):
    """What a page hands to its charts."""
    return json.loads(html.unescape(re.search(r'data-config="([^"]*)"', response.content.decode())[1]))


def pages_of(made):
    gpu = gpu_of(made)
    server = made.agent.server_id
    return [
        "/",
        "/?part=status",
        "/fleet/",
        "/fleet/?tab=gpus",
        "/fleet/rows/?tab=gpus&chunk=0",
        f"/servers/{server}/",
        f"/servers/{server}/?part=status",
        f"/gpus/{gpu.pk}/",
        f"/gpus/{gpu.pk}/?part=status",
        f"/servers/{server}/charts/power/",
        f"/gpus/{gpu.pk}/charts/utilization/",
    ]


def test_every_page_is_well_formed_and_has_a_name_for_everything(viewer):
    made = working()
    history(gpu_of(made).pk, **WORK)
    for address in pages_of(made):
        response = viewer.get(address)
        assert response.status_code == 200, address
        if "part" not in address and "rows" not in address:
            assert Page(response.content.decode()).faults() == [], address


def test_strangers_are_sent_to_the_log_in_page(browser):
    made = working()
    stranger = browser("")
    for address in pages_of(made):
        response = stranger.get(address)
        assert response.status_code == 302, address
        assert response["Location"].startswith("/login/"), address
    assert stranger.get("/live/snapshots/?topic=fleet").status_code == 302


def test_a_viewer_looks_and_may_not_act(viewer, operator):
    made = working()
    server = made.agent.server_id
    assert "server-remove" not in viewer.get(f"/servers/{server}/").content.decode()
    for action in ("server-rename", "server-maintenance", "server-remove"):
        assert viewer.post(reverse(action, args=[server])).status_code == 403
    assert viewer.post("/fleet/columns/", {"tab": "gpus", "column": ["state"]}).status_code == 302
    assert operator.get(reverse("server-remove", args=[server])).status_code == 405


@pytest.mark.parametrize(
    "address", ["/servers/999/", "/gpus/999/", "/servers/999/charts/power/", "/gpus/999/summaries/"]
)
def test_what_is_not_there_is_a_404(viewer, address):
    assert viewer.get(address).status_code == 404


def test_a_chart_that_a_server_does_not_have_is_a_404(viewer):
    made = working()
    assert viewer.get(f"/servers/{made.agent.server_id}/charts/nonsense/").status_code == 404


# --- overview ---------------------------------------------------------------------------------------------------------


def test_an_empty_overview_teaches_how_to_join_and_how_to_look_around(viewer, ada):
    assert "make demo" in text_of(viewer.get("/"))
    assert reverse("join") in ada.get("/").content.decode()
    assert reverse("join") not in viewer.get("/").content.decode()


def test_the_overview_counts_only_what_reported_and_says_how_many_did(viewer):
    made = working()
    for number in (6, 7):
        latest(gpu_of(made, number).pk, now() - timedelta(minutes=5), **WORK)
    text = text_of(viewer.get("/"))
    assert "6 of 8 reporting" in text
    assert "97%" in text.replace(" %", "%")


def test_a_fleet_of_which_nobody_reports_has_no_mean_and_no_zero(viewer):
    machine()
    page = viewer.get("/").content.decode()
    assert re.search(r'data-count="mean"><span class="missing"', page)
    assert "0 of 8 reporting" in re.sub(r"<[^>]+>", "", page)


def test_the_overview_says_what_needs_somebody_with_one_action(viewer):
    made = working()
    made.send(gpus=[one for number, one in enumerate(made.cards) if number != 3])
    page = viewer.get("/").content.decode()
    assert f"7 of 8 GPUs. Gone: #3 {card_uuid(3)[4:12]}." in page
    assert reverse("server", args=[made.agent.server_id]) in page


def test_a_list_of_cards_without_any_says_whether_servers_are_there(viewer):
    assert "No server has joined yet" in text_of(viewer.get("/fleet/?tab=gpus"))
    machine(cards=0)
    assert "No GPU has been found yet" in text_of(viewer.get("/fleet/?tab=gpus"))


def test_machines_that_are_joining_are_said_to_and_nothing_is_claimed_of_them(viewer):
    joined("rack-1")
    text = text_of(viewer.get("/"))
    assert "rack-1 is joining" in text
    assert "every card answers" not in text
    assert "no GPU" not in text


# --- server -----------------------------------------------------------------------------------------------------------


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


# --- GPU --------------------------------------------------------------------------------------------------------------


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


# --- charts without scripts -------------------------------------------------------------------------------------------


def test_a_chart_is_a_table_without_scripts_newest_first_25_a_page(viewer):
    made = working(cards=2)
    history(gpu_of(made).pk, power_watts=600.0)
    newest = history(gpu_of(made, 1).pk, power_watts=580.0)
    page = viewer.get(f"/servers/{made.agent.server_id}/charts/power/")
    assert page.content.decode().count("<tr>") == 26
    rows = re.findall(r"<tbody><tr>.*?</tr>", page.content.decode(), flags=re.DOTALL)
    assert "600" in rows[0]
    assert "580" in rows[0]
    assert newest.strftime("%H:%M") in rows[0]
    assert viewer.get(f"/servers/{made.agent.server_id}/charts/power/?page=2").status_code == 200


def test_the_csv_of_a_chart_has_base_units_and_one_column_a_line_and_kind(viewer):
    made = working(cards=1)
    history(gpu_of(made).pk, memory_used_bytes=float(2 * GIB))
    lines = viewer.get(f"/servers/{made.agent.server_id}/charts/memory/csv/").content.decode("utf-8-sig").splitlines()
    assert lines[0].startswith("time_utc,#0 ")
    assert lines[0].endswith(" peak")
    assert lines[1].split(",")[1] == str(float(2 * GIB))


def test_the_sentences_of_the_charts_are_answered_for_any_range(viewer):
    made = working(cards=2)
    history(gpu_of(made).pk, utilization_percent=40.0, power_watts=300.0)
    history(gpu_of(made, 1).pk, utilization_percent=60.0, power_watts=500.0)
    history(made.agent.server_id, kind=HOST, cpu_percent=12.0)
    sentences = viewer.get(f"/servers/{made.agent.server_id}/summaries/?range=15m").json()
    assert sentences["utilization"].startswith("Now 50% on average; #1 highest with 60%.")
    assert sentences["power"].startswith("Now 800\N{NO-BREAK SPACE}W together; #1 highest with 500")
    assert "CPU 12%" in sentences["host"]
    empty = viewer.get(
        f"/servers/{made.agent.server_id}/summaries/?from=2020-01-01T00:00:00Z&to=2020-01-01T01:00:00Z"
    ).json()
    assert empty["power"] == "No readings in the chosen time."


# --- live snapshots over HTTP -----------------------------------------------------------------------------------------


def test_snapshots_are_those_of_the_socket_and_leave_out_what_is_not_there(viewer):
    made = working(cards=1)
    answer = viewer.get(
        f"/live/snapshots/?topic=fleet&topic=server.{made.agent.server_id}&topic=server.999&topic=nonsense"
    )
    frames = {frame["topic"]: frame for frame in answer.json()["frames"]}
    assert set(frames) == {"fleet", f"server.{made.agent.server_id}"}
    entry = frames["fleet"]["data"]["gpus"][str(gpu_of(made).pk)]
    assert entry["utilization_percent"] == 97
    assert {"sm_activity_percent", "encoder_percent", "decoder_percent"} <= set(entry)
    assert answer["Cache-Control"] == "no-store"


# --- query counts -----------------------------------------------------------------------------------------------------


def count_queries(client, address, counter):
    client.get(address)  # what a process learns once is not the page's
    with counter() as found:
        assert client.get(address).status_code == 200
    return len(found)


@pytest.fixture
def counter():
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    return lambda: CaptureQueriesContext(connection)


# The log-in costs two (session, person), the shell one (silent agents), what is rented four of the overview, endpoints four
# (their phases, those that hurt, deploys that returned, gateways).
GOLDEN = {"/": 18, "/fleet/": 9, "/fleet/?tab=gpus": 9, "/live/snapshots/?topic=fleet": 6}


@pytest.mark.parametrize("address", GOLDEN)
def test_lists_take_as_many_queries_for_a_large_fleet_as_for_a_small_one(viewer, counter, address):
    working("rack-1", 1)
    small = count_queries(viewer, address, counter)
    for number in range(2, 6):
        working(f"rack-{number}", 8)
    assert count_queries(viewer, address, counter) == small
    assert small <= GOLDEN[address]


def test_a_server_and_a_card_take_a_fixed_number_of_queries(viewer, counter):
    made = working("rack-1", 1)
    history(gpu_of(made).pk, **WORK)
    server, gpu = f"/servers/{made.agent.server_id}/", f"/gpus/{gpu_of(made).pk}/"
    one = [count_queries(viewer, address, counter) for address in (server, gpu)]
    big = working("rack-2", 8)
    for row in Gpu.objects.filter(server=big.agent.server):
        history(row.pk, kind=GPU, **WORK)
    many = [
        count_queries(viewer, address, counter)
        for address in (f"/servers/{big.agent.server_id}/", f"/gpus/{gpu_of(big).pk}/")
    ]
    assert many == one
    assert one[0] <= 20
    assert one[1] <= 20


def test_the_key_of_the_strip_lists_what_is_there(viewer):
    made = working()
    latest(gpu_of(made, 1).pk, now(), **{**WORK, "utilization_percent": None})
    page = viewer.get("/").content.decode()
    key = page[page.index("heat-key") :]
    key = key[: key.index("</div>")]
    assert 'data-heat="cannot_tell"' in key
    for absent in ("idle", "ghost", "missing", "no_data", "parked"):
        assert f'data-heat="{absent}"' not in key


def test_a_busy_card_that_tells_no_share_is_not_painted_as_one_that_does():
    card = gpu(0, activity=Activity.BUSY, values={"utilization_percent": None})
    assert 'data-heat="busy"' in heat_cells([card])
    assert 'data-heat="5"' in heat_cells([gpu(1, activity=Activity.BUSY)])
