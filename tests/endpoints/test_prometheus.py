"""Newest values of probes, endpoints and engines at /metrics: well-formed in both formats, fresh, and never 0 for unknown."""

from collections import Counter

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families

from endpoints.models import Replica
from endpoints.prometheus import endpoint_metrics
from monitoring.exposition import Exposition
from monitoring.metrics import ENGINE_METRICS
from monitoring.models import LatestSample
from monitoring.probing.prometheus import probe_metrics
from panel.core.clock import now
from tests.endpoints.test_latency import probed
from tests.endpoints.world import deployed, settle, status

pytestmark = pytest.mark.django_db


@pytest.fixture
def endpoint(site):
    found = deployed("chat")
    settle(sites=[site])
    return found


def read(*families, is_openmetrics=False):
    """All samples by name, after what promtool checks: one head a family, no sample twice, names as they should be."""
    write = Exposition(is_openmetrics=is_openmetrics)
    text = "".join("".join(family(write)) for family in families) + ("# EOF\n" if is_openmetrics else "")
    parse = openmetrics_families if is_openmetrics else text_string_to_metric_families
    found = list(parse(text))
    assert max(Counter(family.name for family in found).values(), default=1) == 1
    assert all(family.documentation for family in found)
    samples = [(one.name, tuple(sorted(one.labels.items()))) for family in found for one in family.samples]
    assert len(set(samples)) == len(samples)
    assert not [name for name, _labels in samples if name.endswith("_ms") or name != name.lower()]
    return {(one.name, *one.labels.values()): one.value for family in found for one in family.samples}


def told(**values):
    import numpy as np

    (replica,) = Replica.objects.values_list("pk", flat=True)
    row = np.array([values.get(metric.name, np.nan) for metric in ENGINE_METRICS], dtype="<f4")
    LatestSample.objects.create(kind=3, subject_id=replica, at=now(), received_at=now(), values=row.tobytes())
    return str(replica)


@pytest.mark.parametrize("is_openmetrics", [False, True])
def test_an_engine_s_newest_values_stand_with_endpoint_replica_and_server(endpoint, site, is_openmetrics):
    (order,) = site.orders()
    site.say(status(order, state="ready", metrics_family="vllm"))
    replica = told(running=3, waiting=0)
    found = read(endpoint_metrics, is_openmetrics=is_openmetrics)
    where = ("chat", replica, "rack-1", "vllm")
    assert (found["fleetdeck_engine_running", *where], found["fleetdeck_engine_waiting", *where]) == (3, 0)
    assert ("fleetdeck_engine_kv_cache_percent", *where) not in found
    assert found["fleetdeck_replica_ready", *where] == 1
    assert found["fleetdeck_endpoint_ready_replicas", "chat"] == 1
    assert found["fleetdeck_endpoint_phase", "chat", "healthy"] == 1


def test_values_of_an_engine_that_fell_silent_are_gone(endpoint):
    told(running=3)
    LatestSample.objects.update(at="2020-01-01T00:00:00Z")
    assert not [key for key in read(endpoint_metrics) if key[0].startswith("fleetdeck_engine_")]


def test_metrics_that_cannot_be_read_say_why(endpoint, site):
    (order,) = site.orders()
    site.say(status(order, state="ready", metrics_problem="off"))
    (key,) = [key for key in read(endpoint_metrics) if key[0] == "fleetdeck_replica_metrics_problem"]
    assert key[-1] == "off"


def test_without_gateways_traffic_is_unknown_and_not_zero(endpoint):
    assert not [key for key in read(endpoint_metrics) if key[0] == "fleetdeck_endpoint_requests_per_second"]


@pytest.mark.parametrize("is_openmetrics", [False, True])
def test_a_probe_s_newest_result_stands_in_seconds_by_place_and_connection(endpoint, is_openmetrics):
    probe = probed(endpoint, [120.0], name='the "outer" one')
    probe.interval_seconds = 300
    probe.save()
    found = read(probe_metrics, is_openmetrics=is_openmetrics)
    where = ('the "outer" one', "chat", "panel", "cold")
    assert found["fleetdeck_probe_success", *where] == 1
    assert found["fleetdeck_probe_ttft_seconds", *where] == pytest.approx(0.12)
    assert ("fleetdeck_probe_dns_seconds", *where) not in found


def test_a_failed_probe_has_no_duration_and_an_old_one_nothing(endpoint):
    probe = probed(endpoint, [None])
    probe.interval_seconds = 300
    probe.save()
    where = ("outside", "chat", "panel", "cold")
    found = read(probe_metrics)
    assert found["fleetdeck_probe_success", *where] == 0
    assert ("fleetdeck_probe_ttft_seconds", *where) not in found
    probe.interval_seconds = 1
    probe.save()
    assert read(probe_metrics) == {}


def test_the_panel_s_own_address_has_them_too(endpoint, operator_client):
    probed(endpoint, [120.0]).delete()
    answer = operator_client.get("/metrics")
    assert answer.status_code == 200
    assert b'fleetdeck_endpoint_desired_replicas{endpoint="chat"} 1' in answer.content
