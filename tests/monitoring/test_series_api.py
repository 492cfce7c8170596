"""Series over the API: JSON and floats from one path, refusals with a reason."""

import json
import struct

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from fleet.models import Gpu, Server
from monitoring.store.tables import HOST
from tests.accounts.people import person, token_client
from tests.monitoring.samples import BASE_HOUR, every, put

pytestmark = pytest.mark.usefixtures("tables")
FRAME = "application/vnd.fleetdeck.series"


@pytest.fixture
def client(db):
    return token_client(person("vera", "viewer"))


@pytest.fixture
def server(at_hour):
    """A server with two cards, samples of one hour, five minutes without any."""
    at_hour(1)
    server = Server.objects.create(
        name="gpu-1", state="ready", state_changed_at=timezone.now(), created_at=timezone.now()
    )
    for number in range(2):
        card = Gpu.objects.create(
            server=server, uuid=f"GPU-{number}", state_changed_at=timezone.now(), first_seen_at=timezone.now()
        )
        at_ms = np.delete(every(60), range(20, 25))
        put(card.pk, at_ms, power_watts=100.25 + number)
    put(server.pk, every(60), kind=HOST, cpu_percent=12.5)
    return server


def url(server, **query):
    query = {"from": BASE_HOUR * 3600, "to": (BASE_HOUR + 1) * 3600, "points": 60} | query
    return f"/api/v1/servers/{server.pk}/series/?" + "&".join(f"{name}={value}" for name, value in query.items())


def read_frame(content):
    """Return header and (series × 2 × points) of a frame, as a browser does."""
    assert content[:4] == b"FDS1"
    (length,) = struct.unpack_from("<I", content, 4)
    assert length % 4 == 0
    header = json.loads(content[8 : 8 + length])
    numbers = np.frombuffer(content, dtype="<f4", offset=8 + length)
    return header, numbers.reshape(len(header["series"]), 2, header["points"])


def test_a_server_answers_one_series_for_each_card_and_one_for_its_host(client, server):
    body = client.get(url(server, metrics="power_watts,host.cpu_percent")).json()
    assert body["step_seconds"] == 60
    assert body["from"] == "2026-05-10T08:00:00Z"
    cards = [one for one in body["series"] if one["gpu"] is not None]
    assert [(one["metric"], one["server"]) for one in cards] == [("power_watts", None)] * 2
    assert cards[0]["points"][0] == ["2026-05-10T08:00:00Z", 100.25, 100.25]
    assert cards[0]["points"][22] == ["2026-05-10T08:22:00Z", None, None]
    (host,) = [one for one in body["series"] if one["gpu"] is None]
    assert (host["server"], host["metric"], host["points"][0][1]) == (server.pk, "host.cpu_percent", 12.5)


def test_floats_say_the_same_as_json(client, server):
    query = url(server, metrics="power_watts,host.cpu_percent")
    as_json = client.get(query).json()
    response = client.get(query, headers={"accept": FRAME})
    assert response["content-type"] == FRAME
    header, numbers = read_frame(response.content)
    assert [(one["gpu"], one["server"], one["metric"]) for one in header["series"]] == [
        (one["gpu"], one["server"], one["metric"]) for one in as_json["series"]
    ]
    for series, (average, maximum) in zip(as_json["series"], numbers, strict=True):
        assert [point[1] for point in series["points"]] == [None if np.isnan(x) else float(x) for x in average]
        assert [point[2] for point in series["points"]] == [None if np.isnan(x) else float(x) for x in maximum]


def test_one_gpu_answers_its_own_series(client, server):
    card = Gpu.objects.get(uuid="GPU-1")
    body = client.get(f"/api/v1/gpus/{card.pk}/series/?metrics=power_watts&to=2026-05-10T09:00:00%2B00:00").json()
    (one,) = body["series"]
    assert one["gpu"] == card.pk
    assert body["from"] == "2026-05-10T08:00:00Z"
    assert one["points"][0][1] == 101.25


@pytest.mark.parametrize(
    ("query", "attr"),
    [
        ({"metrics": "nonsense"}, "metrics"),
        ({"metrics": ""}, "metrics"),
        ({"metrics": "power_watts", "from": "yesterday"}, "from"),
        ({"metrics": "power_watts", "from": "9" * 30}, "from"),
        ({"metrics": "power_watts", "from": (BASE_HOUR + 2) * 3600}, "to"),
        ({"metrics": "power_watts", "points": 0}, "points"),
        ({"metrics": "power_watts", "points": 100_000}, "points"),
    ],
)
@pytest.mark.parametrize("accept", ["application/json", FRAME])
def test_what_cannot_be_answered_is_refused_with_its_field(client, server, query, attr, accept):
    response = client.get(url(server, **query), headers={"accept": accept})
    assert response.status_code == 400
    assert response["content-type"].startswith("application/json")
    assert json.loads(response.content)["errors"][0]["attr"] == attr


def test_strangers_get_nothing_and_unknown_servers_are_not_found(client, server):
    from rest_framework.test import APIClient

    assert APIClient().get(url(server, metrics="power_watts")).status_code == 401
    server.pk += 1000
    assert client.get(url(server, metrics="power_watts")).status_code == 404


def test_the_number_of_queries_of_an_answer_is_fixed(client, server):
    with CaptureQueriesContext(connection) as captured:
        client.get(url(server, metrics="power_watts,utilization_percent,temperature_celsius,host.cpu_percent"))
    of_series = [one["sql"] for one in captured if "rollup" in one["sql"] or "_sample" in one["sql"]]
    assert len(of_series) == 4
