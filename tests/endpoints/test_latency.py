"""How long an endpoint takes: probes by place and engines by their own histograms, beside one another and never mixed."""

from datetime import datetime, timedelta

import pytest
from django.db import connection

from endpoints.engine_figures import engine_series, missing_everywhere, replicas_told_of
from endpoints.models import Replica
from fleet.agent.probes.result import ProbeResult
from monitoring.engines.tables import NAMES
from monitoring.metrics import ENGINE_METRICS
from monitoring.probing.services import probe_create
from monitoring.probing.storing import results_store
from panel.core.clock import now
from tests.endpoints.world import deployed, settle, status
from tests.fleet.factories import OPERATOR

pytestmark = pytest.mark.django_db
TTFT = NAMES.index("time_to_first_token")


@pytest.fixture
def endpoint(site):
    found = deployed("chat", desired_replicas=2)
    settle(sites=[site])
    return found


def replicas():
    return list(Replica.objects.order_by("pk").values_list("pk", flat=True))


def told(replica, *, age=30, **values):
    """Store one sample of a replica's engine."""
    names = [metric.name for metric in ENGINE_METRICS if metric.name in values]
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO engine_sample (subject_id, at, {', '.join(names)}) VALUES (%s, %s{', %s' * len(names)})",
            [replica, now() - timedelta(seconds=age), *(values[name] for name in names)],
        )


def grew(replica, counts, *, bounds=(0.1, 1.0), age=30, seconds=None, name=TTFT):
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO engine_histogram VALUES (%s, %s, %s, %s, %s, %s)",
            [replica, name, now() - timedelta(seconds=age), list(bounds), list(counts), seconds],
        )


def probed(endpoint, durations, *, name="outside", connection="cold", server_id=0, threshold_ms=500.0):
    target = {"kind": "chat", "host": "gateway.example", "model": "m", "connections": ["cold", "warm"]}
    given = {"subject_kind": "endpoint", "subject_id": endpoint.pk, "metric": "ttft", "threshold_ms": threshold_ms}
    probe = probe_create(actor=OPERATOR, name=name, target=target, **given)
    begin = int(now().timestamp() * 1000) - 200_000
    results = [
        ProbeResult(
            target=probe.pk, kind="chat", vantage="panel", connection=connection, scheduled_ms=begin + n * 100,
            started_ms=begin + n * 100, outcome="ok" if value is not None else "timeout", ttft_ms=value, e2e_ms=value,
        )
        for n, value in enumerate(durations)
    ]  # fmt: skip
    assert results_store(server_id=server_id, results=results, known={probe.pk}, at=now()) == len(results)
    return probe


def asked(client, part="latency", **query):
    response = client.get(f"/api/v1/endpoints/chat/{part}/", query)
    assert response.status_code == 200, response.content
    return response.json()


def test_replicas_counts_add_up_and_the_fullest_cache_counts(endpoint):
    a, b = replicas()
    told(a, running=3, waiting=0, kv_cache_percent=20)
    told(b, running=5, waiting=7, kv_cache_percent=97)
    end = now()
    found = engine_series(
        endpoint=endpoint, metrics=["running", "waiting", "kv_cache_percent"], start=end - timedelta(minutes=5), end=end,
        points=5,
    )  # fmt: skip
    peaks = {
        (one.kind, one.subject_id, one.metric): max(value for value in one.maximum.tolist() if value == value)
        for one in found.series
    }
    assert [peaks["endpoint", endpoint.pk, name] for name in ("running", "waiting", "kv_cache_percent")] == [8, 7, 97]
    assert peaks["replica", a, "running"] == 3


def test_series_over_the_api_name_endpoint_and_replicas_and_gaps_are_null(endpoint, viewer_client):
    (a, _b) = replicas()
    told(a, generation_tokens_per_second=41.5)
    body = asked(viewer_client, "series", metrics="generation_tokens_per_second", points=10)
    assert [set(one) - {"metric", "points"} for one in body["series"]] == [{"endpoint"}, {"replica"}, {"replica"}]
    together = [point[1] for point in body["series"][0]["points"]]
    assert {value for value in together if value is not None} == {41.5}
    assert None in together
    assert viewer_client.get("/api/v1/endpoints/chat/series/?metrics=joy").status_code == 400


def test_an_engine_s_percentiles_are_of_merged_buckets_with_their_edges(endpoint, viewer_client):
    a, b = replicas()
    grew(a, (990, 10, 0), seconds=50.0)
    grew(b, (0, 100, 0), seconds=50.0, age=90)
    (engine,) = asked(viewer_client)["engines"]
    assert (engine["name"], engine["n"], engine["mean_ms"]) == (
        "time_to_first_token",
        1100,
        pytest.approx(90.909, rel=1e-3),
    )
    p99 = engine["percentiles"][2]
    assert (p99["value_ms"], p99["low_ms"], p99["high_ms"]) == (pytest.approx(910), 100, 1000)
    assert [one["replica"] for one in engine["replicas"]] == [a, b]
    assert sum(step["percentiles"][0]["n"] for step in engine["steps"]) == 1100


def test_over_all_bounds_an_engine_s_percentile_is_no_number(endpoint, viewer_client):
    grew(replicas()[0], (0, 0, 400))
    p99 = asked(viewer_client)["engines"][0]["percentiles"][2]
    assert (p99["value_ms"], p99["low_ms"], p99["high_ms"], p99["is_over_range"]) == (None, 1000, None, True)


def test_places_and_connections_of_probes_stay_apart_with_n_and_threshold(endpoint, viewer_client):
    probed(endpoint, [100.0] * 300 + [None] * 10, name="outside")
    probed(endpoint, [20.0] * 8, name="warm ones", connection="warm", threshold_ms=None)
    rows = asked(viewer_client)["probes"]
    assert [(row["name"], row["place"], row["connection"], row["metric"]) for row in rows] == [
        ("outside", "panel", "cold", "ttft"),
        ("warm ones", "panel", "warm", "ttft"),
    ]
    cold, warm = rows
    p50, p95, p99 = cold["percentiles"]
    assert (p50["value_ms"], p95["value_ms"], p99["value_ms"], p99["is_over"]) == (100, 100, None, True)
    assert (cold["failures"], cold["share_over"], cold["threshold_ms"]) == (10, pytest.approx(10 / 310), 500)
    assert [one["is_enough"] for one in warm["percentiles"]] == [True, False, False]


def test_probes_of_other_endpoints_and_engines_of_others_are_not_told(endpoint, viewer_client, site):
    other = deployed("image")
    settle(sites=[site])
    probed(other, [5.0] * 10, name="other")
    body = asked(viewer_client)
    assert (body["probes"], body["engines"]) == ([], [])


def test_sources_say_whose_names_the_pages_have_and_what_is_missing_everywhere(endpoint, site, viewer_client):
    first, second = site.orders()
    site.say(
        status(first, state="ready", metrics_family="vllm", metrics_missing=["queue_time", "prefill_time"]),
        status(
            second, state="ready", metrics_family="vllm", metrics_missing=["queue_time"], metrics_broken=["inter_token"]
        ),
    )
    body = asked(viewer_client)
    assert body["missing"] == ["queue_time"]
    assert [(one["family"], one["broken"], one["problem"]) for one in body["sources"]] == [
        ("vllm", [], ""),
        ("vllm", ["inter_token"], ""),
    ]


def test_what_was_known_of_a_page_stays_while_nothing_is_said_of_it(endpoint, site):
    first, second = site.orders()
    site.say(status(first, state="ready", metrics_problem="off"), status(second, state="ready"))
    site.say(status(first, state="ready"), status(second, state="ready"))
    found = Replica.objects.get(pk=first.id)
    assert found.metrics["problem"] == "off"
    assert missing_everywhere([]) == []


def test_an_agent_may_tell_of_its_own_replicas_and_of_those_that_ended_lately(endpoint, site):
    a, b = replicas()
    Replica.objects.filter(pk=a).update(ended_at=now() - timedelta(hours=2))
    assert replicas_told_of(site.server.pk) == {a: endpoint.pk, b: endpoint.pk}
    Replica.objects.filter(pk=a).update(ended_at=now() - timedelta(days=4))
    assert replicas_told_of(site.server.pk) == {b: endpoint.pk}
    assert replicas_told_of(site.server.pk + 1) == {}


@pytest.mark.parametrize(
    "query", [{"points": 0}, {"from": "joy"}, {"from": "2020-01-01T00:00:00Z"}, {"from": "9999-01-01"}]
)
def test_a_range_that_is_none_is_refused(endpoint, viewer_client, query):
    assert viewer_client.get("/api/v1/endpoints/chat/latency/", query).status_code == 400


def test_times_of_steps_are_whole_minutes(endpoint, viewer_client):
    grew(replicas()[0], (1, 0, 0))
    body = asked(viewer_client, points=500)
    assert body["step_seconds"] == 60
    (step,) = body["engines"][0]["steps"]
    assert datetime.fromisoformat(step["at"]).second == 0
