"""What engines told, on its way into reports: increments of histograms, restarts, bounds; pages that are none."""

import httpx
import pytest

from fleet.agent import clock, wire, wire_engines
from fleet.agent.engines.exposed.growth import Growth
from fleet.agent.engines.exposed.ledger import EngineLedger
from fleet.agent.engines.exposed.reading import read_metrics
from fleet.agent.engines.exposed.scraping import scrape
from fleet.agent.orders import ReadyCheck, ReplicaOrder

ORDER = ReplicaOrder(
    id=7, generation=1, endpoint="chat", revision=1, wanted="run", runtime="process", command=["x"], port=9,
    ready=ReadyCheck("tcp"), engine="vllm", metrics_path="/metrics", upstream_key="secret",
)  # fmt: skip


def page(requests=0, first=0, second=0, running=0, total=0.0):
    """A vLLM page: `first` requests within 0.1 s, `second` more within 1 s, the rest above."""
    counts = (("0.1", first), ("1.0", first + second), ("+Inf", requests))
    lines = [f'vllm:time_to_first_token_seconds_bucket{{le="{bound}"}} {number}' for bound, number in counts]
    lines += [f"vllm:time_to_first_token_seconds_sum {total}", f"vllm:time_to_first_token_seconds_count {requests}"]
    lines += [f"vllm:num_requests_running {running}", f"vllm:request_success_total {requests}"]
    return read_metrics("\n".join(lines) + "\n", kind="vllm")


def grown(*pages):
    growth = Growth()
    for each in pages:
        growth.add(each.time_to_first_token)
    return growth.take("time_to_first_token", 1, 2)


def test_the_first_look_at_an_engine_says_from_where_it_grows_and_no_more():
    assert grown(page(100, 90, 5)) is None


def test_what_came_between_two_looks_is_told_bucket_by_bucket():
    told = grown(page(100, 90, 5, total=20.0), page(104, 91, 7, total=23.5))
    assert (told.bounds, told.counts, told.sum_seconds) == ([0.1, 1.0], [1, 2, 1], pytest.approx(3.5))


def test_looks_add_up_and_are_told_once():
    growth = Growth()
    for each in (page(0), page(2, 2), page(5, 4)):
        growth.add(each.time_to_first_token)
    assert growth.take("time_to_first_token", 1, 2).counts == [4, 0, 1]
    assert growth.take("time_to_first_token", 1, 2) is None


def test_an_engine_that_was_started_again_counts_from_nothing():
    assert grown(page(100, 90, 5), page(3, 2, 1, total=0.4)).counts == [2, 1, 0]


def test_other_buckets_after_an_upgrade_are_not_mixed_with_the_old():
    other = read_metrics(
        'vllm:time_to_first_token_seconds_bucket{le="0.5"} 900\nvllm:time_to_first_token_seconds_bucket{le="+Inf"} 900\n'
    )
    told = grown(page(1, 1), page(4, 4), other)
    assert (told.bounds, told.counts) == ([0.1, 1.0], [3, 0, 0])


def test_a_report_carries_the_look_before_it_and_histograms_once_a_minute():
    ledger = EngineLedger()
    for second, requests in ((0, 0), (10, 2)):
        ledger.note(7, page(requests, requests), own_requests=1, at=clock.Moment(second * 1000, second * 1000))
    engines, rows = ledger.cut()
    assert engines == [wire_engines.Engine(7, 2, has_previous=False)]
    assert [row.requests for row in rows] == [0, 2]
    ledger.note(7, page(5, 5, running=3), own_requests=2, at=clock.Moment(61_000, 61_000))
    engines, rows = ledger.cut()
    assert (engines[0].rows, engines[0].has_previous) == (2, True)
    assert [(row.at_ms, row.requests, row.own_requests) for row in rows] == [(10_000, 2, 1), (61_000, 5, 2)]
    assert [(one.name, one.counts) for one in engines[0].histograms] == [("time_to_first_token", [5, 0, 0])]
    assert ledger.cut() == ([], [])


def test_a_replica_that_is_gone_is_told_to_its_end_and_then_forgotten():
    ledger = EngineLedger()
    ledger.note(7, page(0), own_requests=0, at=clock.Moment(0, 0))
    ledger.note(7, page(3, 3), own_requests=0, at=clock.Moment(10_000, 10_000))
    ledger.forget(7)
    engines, _rows = ledger.cut()
    assert engines[0].histograms[0].counts == [3, 0, 0]
    assert ledger.cut() == ([], [])
    ledger.note(7, page(9, 9), own_requests=0, at=clock.Moment(20_000, 20_000))
    assert [engine.has_previous for engine in ledger.cut()[0]] == [False]


def test_without_reports_the_oldest_goes():
    ledger = EngineLedger()
    for n in range(wire.LIMITS["samples_per_engine"] + 5):
        ledger.note(7, page(n), own_requests=0, at=clock.Moment(n * 1000, n * 1000))
    (engine,), rows = ledger.cut()
    assert (engine.rows, rows[0].requests) == (wire.LIMITS["samples_per_engine"], 5)


def asked(respond, order=ORDER, **options):
    with httpx.Client(transport=httpx.MockTransport(respond)) as http:
        return scrape(http, order, **options)


def test_a_page_is_asked_for_with_the_engine_s_key():
    def respond(request):
        assert request.headers["authorization"] == "Bearer secret"
        return httpx.Response(200, text="vllm:num_requests_running 2\n")

    assert asked(respond).found.running == 2


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (httpx.Response(404), "off"),
        (httpx.Response(401), "refused"),
        (httpx.Response(200, text="<html>"), "unknown"),
        (httpx.Response(200, content=b"\xff\xfe\x00" * 1000), "unknown"),
        (httpx.Response(200, content=b"a 1\n" * (3 << 20)), "too_large"),
        (httpx.Response(302, headers={"location": "http://169.254.169.254/"}), "off"),
    ],
)
def test_a_page_that_tells_nothing_says_why_and_no_zeros(answer, problem):
    seen = asked(lambda _request: answer)
    assert (seen.found, seen.problem) == (None, problem)


def test_an_engine_that_does_not_answer_is_named():
    def respond(request):
        raise httpx.ConnectError("refused", request=request)

    assert asked(respond).problem == "unanswered"
