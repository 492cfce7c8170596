"""The pages of the fleet as people of each role get them."""

import re
from datetime import timedelta

import pytest
from django.urls import reverse

from fleet.models import Gpu
from frontend.templatetags.fleet import heat_cells
from monitoring.activity import Activity
from monitoring.store.tables import GPU, HOST
from panel.core.clock import now
from tests.charts.fleet_data import WORK, gpu_of, history, latest, machine, working
from tests.charts.reading import text_of
from tests.charts.rows import gpu
from tests.fleet.factories import GIB, card_uuid, joined
from tests.frontend.html import Page

pytestmark = pytest.mark.django_db


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


# The log-in costs two (session, person), the shell one (silent agents), what is rented five of the overview (one of them for
# terms that end), endpoints four (their phases, those that hurt, deploys that returned, gateways).
GOLDEN = {"/": 20, "/fleet/": 9, "/fleet/?tab=gpus": 9, "/live/snapshots/?topic=fleet": 6}


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
