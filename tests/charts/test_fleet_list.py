"""Filters, order and columns of the Fleet page's lists."""

from datetime import timedelta

import pytest

from frontend.columns import columns_chosen, columns_save
from frontend.fleet_csv import CSV_HEADERS, csv_row
from frontend.fleet_list import COLUMNS, filtered, read_filter, shown_columns
from monitoring.activity import Activity
from tests.charts.rows import NOON, fleet, gpu, server

CARDS = [
    gpu(0, values={"utilization_percent": 20.0}),
    gpu(1, values={"utilization_percent": 90.0, "temperature_celsius": 88.0}),
    gpu(2, values={"utilization_percent": None}, activity=Activity.CANNOT_TELL),
    gpu(3, values={"utilization_percent": 99.0}, activity=Activity.NO_DATA, is_fresh=False),
]
RACK_1 = server("rack-1", 1, gpus=CARDS, provider="Hetzner", region="fsn1")
RACK_2 = server(
    "Rack-2", 2, gpus=[gpu(0, server="Rack-2", server_id=2, name="NVIDIA L20")], provider="AutoDL", state="degraded"
)
FLEET = fleet(RACK_1, RACK_2)


def names(query):
    wanted = read_filter(query)
    return [
        row.server.name if wanted.tab == "servers" else f"{row.server_name} {row.label}"
        for row in filtered(FLEET, wanted)
    ]


def test_the_lists_are_ordered_by_name_unless_asked():
    assert names({}) == ["rack-1", "Rack-2"]
    assert names({"tab": "gpus"}) == ["rack-1 #0", "rack-1 #1", "rack-1 #2", "rack-1 #3", "Rack-2 #0"]


def test_what_has_no_value_of_now_comes_last_in_both_directions():
    assert names({"tab": "gpus", "sort": "utilization"})[-2:] == ["rack-1 #2", "rack-1 #3"]
    assert names({"tab": "gpus", "sort": "-utilization"}) == [
        "Rack-2 #0",
        "rack-1 #1",
        "rack-1 #0",
        "rack-1 #2",
        "rack-1 #3",
    ]


def test_ordered_by_state_what_needs_somebody_comes_first():
    assert names({"sort": "state"}) == ["Rack-2", "rack-1"]
    assert names({"tab": "gpus", "sort": "state"})[0] == "rack-1 #3"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"q": "rack-2"}, ["Rack-2"]),
        ({"q": "FSN1"}, ["rack-1"]),
        ({"q": "GPU-00020000"}, ["Rack-2"]),
        ({"state": "degraded"}, ["Rack-2"]),
        ({"state": "attention"}, ["rack-1", "Rack-2"]),
        ({"provider": "Hetzner"}, ["rack-1"]),
        ({"model": "NVIDIA L20"}, ["Rack-2"]),
        ({"tab": "gpus", "state": "no_data"}, ["rack-1 #3"]),
        ({"tab": "gpus", "state": "attention"}, ["rack-1 #1", "rack-1 #3"]),
        ({"tab": "gpus", "q": "rack-1 #1"}, ["rack-1 #1"]),
        ({"tab": "gpus", "server": "2"}, ["Rack-2 #0"]),
        ({"tab": "gpus", "provider": "AutoDL"}, ["Rack-2 #0"]),
        ({"q": "nowhere"}, []),
    ],
)
def test_filters_let_through_what_they_name(query, expected):
    assert names(query) == expected


@pytest.mark.parametrize(
    "query",
    [
        {"tab": "nonsense"},
        {"sort": "gpus"},
        {"sort": "-; drop"},
        {"state": "nonsense"},
        {"server": "1e9"},
        {"server": "9" * 30},
    ],
)
def test_an_address_that_makes_no_sense_is_the_plain_list(query):
    wanted = read_filter(query)
    assert (wanted.tab, wanted.sort, wanted.state, wanted.server) == ("servers", "name", "", None)
    assert len(filtered(FLEET, wanted)) == 2


@pytest.mark.parametrize("tab", COLUMNS)
def test_every_column_that_sorts_sorts(tab):
    for column in COLUMNS[tab]:
        if column.sort is not None:
            for sort in (column.key, column.descending):
                assert len(filtered(FLEET, read_filter({"tab": tab, "sort": sort}))) == (2 if tab == "servers" else 5)


def test_totals_of_a_server_leave_out_cards_that_do_not_report():
    assert RACK_1.total("power_watts") == 612.0 * 3
    assert RACK_1.highest("temperature_celsius") == 88.0
    assert RACK_1.busy == 2
    assert server(gpus=[CARDS[3]]).total("power_watts") is None


def test_a_row_of_the_csv_has_a_cell_for_each_column_and_nothing_stale():
    for row, tab in ((RACK_1, "servers"), (CARDS[0], "gpus"), (CARDS[3], "gpus")):
        assert len(csv_row(row)) == len(CSV_HEADERS[tab])
    readings = dict(zip(CSV_HEADERS["gpus"], csv_row(CARDS[3]), strict=True))
    assert readings["utilization_percent"] is None
    assert readings["activity"] == "no_data"
    assert readings["reading_utc"] == NOON.isoformat()


def test_a_choice_of_columns_is_kept_for_the_person_and_can_be_taken_back(people, viewer):
    assert [column.key for column in shown_columns("gpus", None)][:3] == ["name", "state", "model"]
    viewer.post("/fleet/columns/", {"tab": "gpus", "query": "tab=gpus", "column": ["uuid", "power", "nonsense"]})
    assert columns_chosen(user=people["viewer"], tab="gpus") == ["uuid", "power"]
    assert columns_chosen(user=people["operator"], tab="gpus") is None
    assert [column.key for column in shown_columns("gpus", ["uuid", "power"])] == ["name", "uuid", "power"]
    page = viewer.get("/fleet/?tab=gpus").content.decode()
    assert 'value="uuid" checked' in page
    viewer.post("/fleet/columns/", {"tab": "gpus", "reset": "1", "column": ["uuid"]})
    assert columns_chosen(user=people["viewer"], tab="gpus") is None


def test_headers_are_links_that_sort_with_their_unit(viewer):
    from tests.charts.fleet_data import working

    working(cards=1)
    page = viewer.get("/fleet/?tab=gpus&sort=-utilization").content.decode()
    assert 'aria-sort="descending" data-column="utilization"><a href="?tab=gpus&amp;sort=utilization">' in page
    assert '<a href="?tab=gpus&amp;sort=-power">Power / limit <span class="unit">W</span>' in page
    assert '<a href="?tab=gpus&amp;sort=model">Model' in page


def test_saving_columns_twice_keeps_one_choice(people):
    for keys in (["power"], ["model", "uuid"]):
        columns_save(user=people["viewer"], tab="gpus", keys=keys)
    assert columns_chosen(user=people["viewer"], tab="gpus") == ["model", "uuid"]


def test_a_power_share_is_of_the_limit_that_the_card_enforces():
    laptop = gpu(0, power_limit_watts=160.0, values={"power_watts": 80.0})
    assert laptop.power_percent == 50.0
    assert gpu(0, power_limit_watts=None).power_percent is None


def test_a_reading_is_dated_by_its_own_time():
    assert gpu(0, at=NOON - timedelta(days=31)).at == NOON - timedelta(days=31)
