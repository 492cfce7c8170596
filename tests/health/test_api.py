"""`/api/v1/health/` and `/metrics`."""

from datetime import timedelta

import pytest
import time_machine as clock
from django.utils import timezone
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families
from rest_framework.test import APIClient

from fleet.models import Gpu, Server
from monitoring.models import LatestSample
from monitoring.store.tables import GPU, HOST
from panel.core.clock import now
from panel.core.health import health_checks
from tests.accounts.people import person, token_client
from tests.fleet.factories import Machine, joined

pytestmark = pytest.mark.django_db


@pytest.fixture
def viewer_client():
    return token_client(person("vera", "viewer"))


@pytest.fixture
def machine():
    agent, _ = joined("rack-1")
    machine = Machine(agent, cards=2)
    machine.send()
    return machine


def put_latest(kind, subject_id, at=None, **values):
    import numpy as np

    packed = np.full(len(kind.metrics), np.nan, dtype="<f4")
    for name, value in values.items():
        packed[kind.columns.index(name)] = value
    at = at or now()
    LatestSample.objects.create(kind=kind.code, subject_id=subject_id, at=at, received_at=at, values=packed.tobytes())


def scrape(client):
    response = client.get("/metrics")
    assert response.status_code == 200, response.content
    return {
        sample.name: [s for family in families for s in family.samples if s.name == sample.name]
        for families in [list(text_string_to_metric_families(response.content.decode()))]
        for family in families
        for sample in family.samples
    }


def test_the_checks_are_answered_with_the_worst_of_them(viewer_client):
    answer = viewer_client.get("/api/v1/health/")
    assert answer.status_code == 200
    body = answer.json()
    assert body["status"] == "critical"
    beat = next(check for check in body["checks"] if check["code"] == "beat_age_seconds")
    assert beat["status"] == "critical"
    assert beat["advice"]
    assert {check["code"] for check in body["checks"]} == {check.code for check in health_checks()}


def test_strangers_learn_nothing_of_the_panels_health():
    assert APIClient().get("/api/v1/health/").status_code == 401
    assert APIClient().get("/metrics").status_code == 401


def test_a_browser_session_is_no_token_for_metrics(client):
    user = person("vera", "viewer")
    client.force_login(user)
    assert client.get("/metrics").status_code == 401


def test_a_scraper_may_ask_for_any_format_it_likes(viewer_client):
    for accept in ("", "text/plain", "application/openmetrics-text; version=1.0.0", "*/*", "application/xml"):
        response = viewer_client.get("/metrics", headers={"accept": accept})
        assert response.status_code == 200, accept
        expected = "application/openmetrics-text" if "openmetrics" in accept else "text/plain"
        assert response["Content-Type"].startswith(expected)
    joined("rack-1")
    openmetrics = viewer_client.get("/metrics", headers={"accept": "application/openmetrics-text; version=1.0.0"})
    text = openmetrics.content.decode()
    assert text.endswith("# EOF\n")
    families = {family.name: family for family in openmetrics_families(text)}
    assert families["fleetdeck_agent_lost_samples"].type == "counter"
    assert families["fleetdeck_server"].type == "info"
    assert families["fleetdeck_server_state"].type == "gauge"


def test_fresh_readings_come_with_server_uuid_index_and_model_and_missing_ones_are_left_out(viewer_client, machine):
    first, second = Gpu.objects.order_by("index")
    put_latest(GPU, first.pk, utilization_percent=87, power_watts=612.5)
    put_latest(GPU, second.pk, utilization_percent=0)
    put_latest(HOST, machine.agent.server_id, cpu_percent=12.5)
    metrics = scrape(viewer_client)
    labels = {"server": "rack-1", "uuid": first.uuid, "index": "0", "model": "NVIDIA H200"}
    readings = {sample.labels["index"]: sample for sample in metrics["fleetdeck_gpu_utilization_percent"]}
    assert readings["0"].labels == labels
    assert (readings["0"].value, readings["1"].value) == (87, 0)
    assert [sample.value for sample in metrics["fleetdeck_gpu_power_watts"]] == [612.5]
    assert "fleetdeck_gpu_temperature_celsius" not in metrics
    assert [sample.value for sample in metrics["fleetdeck_server_cpu_percent"]] == [12.5]
    assert metrics["fleetdeck_gpu_memory_total_bytes"][0].value == 140 * 1024**3


def test_a_stale_reading_is_left_out_while_the_state_says_why(viewer_client, machine):
    gpu = Gpu.objects.order_by("index").first()
    put_latest(GPU, gpu.pk, at=now() - timedelta(minutes=5), utilization_percent=87)
    metrics = scrape(viewer_client)
    assert "fleetdeck_gpu_utilization_percent" not in metrics
    states = {s.labels["state"]: s.value for s in metrics["fleetdeck_gpu_state"] if s.labels["uuid"] == gpu.uuid}
    assert sum(states.values()) == 1


def test_retired_servers_and_removed_cards_are_gone(viewer_client, machine):
    Gpu.objects.filter(index=0).update(removed_at=now())
    metrics = scrape(viewer_client)
    assert {sample.labels["index"] for sample in metrics["fleetdeck_gpu_state"]} == {"1"}
    Server.objects.update(retired_at=now())
    metrics = scrape(viewer_client)
    assert "fleetdeck_gpu_state" not in metrics
    assert "fleetdeck_server_state" not in metrics


def test_a_name_cannot_break_out_of_its_label(viewer_client):
    joined('evil"} 1\\n# {')
    metrics = scrape(viewer_client)
    assert {sample.labels["server"] for sample in metrics["fleetdeck_server_state"]} == {'evil"} 1\\n# {'}


def test_the_panel_itself_stands_beside_the_fleet(viewer_client):
    metrics = scrape(viewer_client)
    status = {s.labels["check"]: s.labels["status"] for s in metrics["fleetdeck_check_status"] if s.value == 1}
    assert status["beat_age_seconds"] == "critical"
    assert status["database_connections"] == "ok"
    assert metrics["fleetdeck_panel_database_connections"][0].value >= 1
    assert metrics["fleetdeck_web_process_resident_memory_bytes"][0].value > 1e6
    before = sum(s.value for s in metrics.get("fleetdeck_web_requests_total", []))
    viewer_client.get("/api/v1/health/")
    assert sum(s.value for s in scrape(viewer_client)["fleetdeck_web_requests_total"]) >= before + 2


def test_however_large_the_fleet_the_number_of_queries_stays(viewer_client, django_assert_num_queries):
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    def count():
        with CaptureQueriesContext(connection) as queries:
            viewer_client.get("/metrics")
        return len(queries)

    with clock.travel(timezone.now(), tick=False):
        agent, _ = joined("rack-0")
        Machine(agent, cards=1).send()
        count()
        few = count()
        for number in range(1, 4):
            agent, _ = joined(f"rack-{number}")
            Machine(agent, cards=8).send()
        assert count() == few
