"""The tab of an endpoint's latency: n and threshold beside percentiles, places apart, engines beside them, gaps by name."""

import pytest
from django.urls import reverse

from endpoints.engines.readings import LABELS
from endpoints.models import Replica
from fleet.agent.probes.result import ProbeResult
from frontend.serving.latency import PROBLEMS, VERDICTS
from monitoring.probing.models import Probe
from monitoring.probing.places import verdicts
from monitoring.probing.services import probe_create
from monitoring.probing.storing import results_store
from panel.core.clock import now
from tests.endpoints.test_latency import grew, probed, told
from tests.endpoints.world import Site, deployed, settle, status
from tests.fleet.factories import OPERATOR

pytestmark = pytest.mark.django_db


@pytest.fixture
def site(db):
    return Site()


@pytest.fixture
def endpoint(site, people):
    found = deployed("chat")
    settle(sites=[site])
    return found


@pytest.fixture
def read(ada, endpoint):
    def page(query=""):
        answer = ada.get(reverse("endpoint-latency", args=[endpoint.pk]) + query)
        assert answer.status_code == 200
        return " ".join(answer.content.decode().split())

    return page


def test_without_anything_it_says_what_is_missing_and_what_to_do(read):
    text = read()
    assert "No probe is about this endpoint" in text
    assert "No engine of it told of any request" in text
    assert "nothing heard of its metrics page yet" in text


def test_percentiles_stand_with_n_and_threshold_and_few_results_say_so(read, endpoint):
    probed(endpoint, [700.0] * 320, name="many")
    probed(endpoint, [50.0] * 20, name="few", connection="warm")
    text = read()
    assert "n = 320" in text
    assert "not enough (n = 20)" in text
    assert "missed" in text
    assert "500 ms" in text


def test_engines_stand_beside_with_the_edges_of_their_buckets(read, endpoint):
    (replica,) = Replica.objects.values_list("pk", flat=True)
    grew(replica, (250, 150, 0), seconds=80.0)
    told(replica, running=4, waiting=9, kv_cache_percent=93)
    text = read("?range=1h")
    assert "Time to the first token" in text
    assert "100 ms – 1.00 s" in text
    assert "Requests running and waiting" in text


def test_above_all_buckets_it_says_more_than_and_no_number(read, endpoint):
    (replica,) = Replica.objects.values_list("pk", flat=True)
    grew(replica, (0, 0, 400))
    assert "&gt; 1.00 s" in read("?range=1h")


def test_a_page_that_tells_nothing_and_readings_that_it_lacks_are_named(read, site):
    (order,) = site.orders()
    site.say(status(order, state="ready", metrics_family="vllm", metrics_missing=["queue_time"]))
    assert "Time in the queue" in read()
    site.say(status(order, state="ready", metrics_problem="off"))
    assert "--enable-metrics" in read()


def controlled(outcome, *, total_ms=5.0, slow_ms=100.0):
    target = {"kind": "http", "host": "panel.example", "is_control": True, "slow_ms": slow_ms}
    control = probe_create(actor=OPERATOR, name="control", target=target)
    begin = int(now().timestamp() * 1000) - 1_000
    found = ProbeResult(
        target=control.pk, kind="http", vantage="panel", connection="cold", scheduled_ms=begin, started_ms=begin,
        outcome=outcome, e2e_ms=total_ms, total_ms=total_ms,
    )  # fmt: skip
    results_store(server_id=0, results=[found], known={control.pk}, at=now())
    return verdicts(server_ids=[0], at=now())[0].state


@pytest.mark.parametrize(
    ("outcome", "fields", "state"),
    [("ok", {}, "good"), ("ok", {"total_ms": 400.0}, "slow"), ("timeout", {"total_ms": None}, "bad")],
)
def test_a_place_is_judged_by_its_control_target(endpoint, outcome, fields, state):
    assert controlled(outcome, **fields) == state


def test_a_place_without_a_control_target_says_that_nobody_can_tell(read, endpoint):
    probed(endpoint, [50.0] * 20)
    assert str(VERDICTS["unknown"][2]) in read()
    controlled("ok")
    Probe.objects.filter(name="control").update(subject_kind="", subject_id=None)
    assert str(VERDICTS["unknown"][2]) not in read()


def test_every_problem_and_reading_has_words():
    assert set(PROBLEMS) == {"no_page", "off", "refused", "unanswered", "too_large", "unknown"}
    assert all(str(label) for label in LABELS.values())
