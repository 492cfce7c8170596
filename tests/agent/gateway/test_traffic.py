"""What a gateway says went through it: each request once, with its outcome, key and tokens, whatever happens meanwhile."""

import json
import signal
import threading

import httpx
import pytest

from fleet.agent.gateway import accesslog, shipper, traffic
from tests.agent.gateway.place import HTTP, KEY, Place, ReplicaProcess, chat, ready, rule
from tests.waiting import eventually

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module", autouse=True)
def _short_spans():
    """Spans of a fraction of a second: what is tested does not depend on their length."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(traffic, "SPAN_MS", 400)
        patch.setattr(shipper, "SPAN_MS", 400)
        patch.setattr(shipper, "LATE_MS", 700)
        patch.setattr(shipper, "TICK_SECONDS", 0.1)
        yield


@pytest.fixture(scope="module")
def place(tmp_path_factory, _short_spans):
    """A gateway that reports often."""
    place = Place(tmp_path_factory.mktemp("gateway")).start()
    yield place
    place.end()


def serve(place, replicas, name, *more_keys):
    """Have an endpoint that no other test calls, and one key; returns how many requests were told of so far."""
    one, two = replicas
    upstreams = (one.upstream(1, slots=4), two.upstream(2, slots=4))
    place.say(chat(name, *upstreams, first_byte_seconds=30.0, idle_seconds=30.0), keys=[rule(41), *more_keys])
    for _ in range(3):
        ready(place, f"/{name}/echo")
    return eventually(lambda: place.panel.requests(name), lambda count: count >= 3, seconds=10)


def total(served, endpoint, name):
    """A figure of all reports together."""
    sums = {}
    for one in served.panel.traffic(endpoint):
        for key, value in getattr(one, name).items():
            sums[key] = sums.get(key, 0) + value
    return sums


def test_each_request_is_told_once_with_outcome_key_tokens_and_times(place, replicas):
    before = serve(place, replicas, "chat")
    for _ in range(5):
        assert place.post("/chat/v1", {"n": 4, "gap": 0.01}).status_code == 200
    told = {"stream": True, "n": 6, "stream_options": {"include_usage": True}}
    assert place.post("/chat/v1", told).status_code == 200
    untold = {"stream": True, "n": 6}
    assert place.post("/chat/v1", untold).status_code == 200
    assert place.get("/chat/status/500").status_code == 500
    assert place.get("/chat/v1", key="fdk_unknown").status_code == 401
    eventually(lambda: place.panel.requests("chat") - before, lambda count: count == 9, seconds=10)
    statuses = total(place, "chat", "statuses")
    assert (statuses["2xx"] - before, statuses["5xx"], statuses["4xx"]) == (7, 1, 1)
    assert total(place, "chat", "requests_by_key") == {"41": before + 8}
    # 5 answers of 3 + 4 tokens in one piece, and a stream that told 3 + 6
    assert total(place, "chat", "tokens_by_key") == {"41": 5 * 7 + 9}
    # a stream that told none: its six events, and a token for four bytes of the request
    assert total(place, "chat", "estimated_tokens_by_key") == {"41": 6 + len(json.dumps(untold)) // 4}
    times = [one.total for one in place.panel.traffic("chat")]
    assert sum(one.count for one in times) == before + 9
    assert [bucket for one in times for bucket in one.buckets if 2 ** (bucket / 32) >= 38], "no answer took its 40 ms"


def test_refusals_for_going_too_fast_are_told_apart(place, replicas):
    keys = [rule(42, "fdk_slow", requests_per_minute=1), rule(43, "fdk_held", is_held=True)]
    serve(place, replicas, "fast", *keys)
    assert [place.get("/fast/echo", key="fdk_slow").status_code for _ in range(3)] == [200, 429, 429]
    assert place.get("/fast/echo", key="fdk_held").status_code == 429
    eventually(lambda: sum(one.limited for one in place.panel.traffic("fast")), lambda count: count == 3, seconds=10)
    assert total(place, "fast", "requests_by_key")["42"] == 3


def test_a_stream_that_broke_off_and_a_caller_that_left_are_told_as_such(place):
    served = place
    victim = ReplicaProcess("victim")
    served.say(chat("brief", victim.upstream(3)), keys=[rule(41)])
    ready(served, "/brief/echo")
    request = {"stream": True, "n": 100, "gap": 0.05}
    headers = {"authorization": f"Bearer {KEY}"}
    with HTTP.stream("POST", f"{served.url}/brief/v1", json=request, headers=headers) as answer:
        next(answer.iter_text())
    with HTTP.stream("POST", f"{served.url}/brief/v1", json=request, headers=headers) as answer:
        pieces = answer.iter_text()
        next(pieces)
        victim.signal(signal.SIGKILL)
        with pytest.raises(httpx.RemoteProtocolError):
            list(pieces)
    victim.end()
    eventually(lambda: total(served, "brief", "statuses").get("cut"), lambda count: count == 1, seconds=10)
    assert total(served, "brief", "statuses")["left"] == 1


def test_requests_under_way_are_told_while_they_last(place, replicas):
    serve(place, replicas, "lasting")
    streams = [
        threading.Thread(target=place.post, args=("/lasting/v1", {"stream": True, "n": 20, "gap": 0.1}))
        for _ in range(3)
    ]
    for stream in streams:
        stream.start()
    eventually(
        lambda: max((one.in_flight or 0) for one in place.panel.traffic("lasting")), lambda most: most == 3, seconds=10
    )
    for stream in streams:
        stream.join()
    eventually(lambda: place.panel.last.endpoints, lambda endpoints: endpoints == [], seconds=10)


def test_answers_that_get_lost_and_restarts_of_the_agent_count_nothing_twice(own, replicas):
    served, before = own, serve(own, replicas, "chat")
    served.panel.loses_answers = True
    sent = 0
    for _ in range(3):
        for _ in range(7):
            served.get("/chat/echo")
            sent += 1
        served.restart()
    eventually(lambda: served.panel.repeated, lambda count: count > 0, seconds=20)
    served.panel.loses_answers = False
    served.restart()
    eventually(lambda: served.panel.requests("chat") - before, lambda count: count >= sent, seconds=60)
    served.get("/chat/echo")
    eventually(lambda: served.panel.requests("chat") - before, lambda count: count >= sent + 1, seconds=20)
    assert served.panel.requests("chat") - before == sent + 1


def test_what_went_through_while_the_panel_was_away_is_told_when_it_is_back(place, replicas):
    served, before = place, serve(place, replicas, "away")
    served.panel.is_away = True
    for _ in range(10):
        served.get("/away/echo")
    folder = served.folder / "traffic"
    eventually(lambda: list(folder.glob("*.batch")), seconds=10)
    served.panel.is_away = False
    eventually(lambda: served.panel.requests("away") - before, lambda count: count == 10, seconds=20)
    eventually(lambda: list(folder.glob("*.batch")), lambda left: left == [], seconds=10)


def test_the_log_is_moved_aside_without_losing_or_repeating_a_line(place, replicas, monkeypatch):
    before = serve(place, replicas, "logged")
    monkeypatch.setattr(accesslog, "LARGE_BYTES", 2_000)
    moved, move = [], accesslog.AccessLog.move_aside
    monkeypatch.setattr(accesslog.AccessLog, "move_aside", lambda log: moved.append(1) or move(log))
    sent = 0
    with httpx.Client(verify=False, headers={"authorization": f"Bearer {KEY}"}) as client:
        while len(moved) < 2:
            assert client.get(f"{place.url}/logged/echo").status_code == 200
            sent += 1
    old = place.folder / "envoy" / "access.log.1"
    eventually(lambda: place.panel.requests("logged") - before, lambda count: count >= sent, seconds=60)
    eventually(old.exists, lambda is_there: not is_there, seconds=10)
    assert place.panel.requests("logged") - before == sent


def test_a_request_with_the_endpoint_s_mark_is_a_probe_and_neither_key_nor_limit_yields_to_it(place, replicas):
    one, _two = replicas
    slow_key = KEY[:-4] + "slow"
    marked = {"x-fleetdeck-probe-mark": "m" * 32}
    route = chat("marked", one.upstream(1, slots=4), first_byte_seconds=30.0, idle_seconds=30.0, probe_mark="m" * 32)
    place.say(route, keys=[rule(41), rule(61, slow_key, requests_per_minute=3)])
    ready(place, "/marked/echo")
    eventually(lambda: place.get("/marked/echo", slow_key).status_code, lambda status: status == 200, seconds=10)
    statuses = [place.get("/marked/echo", slow_key, headers=marked).status_code for _ in range(6)]
    assert (statuses[0], statuses[-1]) == (200, 429)
    assert place.get("/marked/echo", None, headers=marked).status_code == 401
    eventually(lambda: sum(each.probes for each in place.panel.traffic("marked")), lambda count: count == 7, seconds=10)
    assert total(place, "marked", "requests_by_key")["61"] == 7
    callers = place.panel.requests("marked")
    wrong = {"x-fleetdeck-probe-mark": "n" * 32, "x-fleetdeck-probe": "panel"}
    assert place.get("/marked/echo", headers=wrong).status_code == 200
    eventually(lambda: place.panel.requests("marked"), lambda count: count == callers + 1, seconds=10)


def test_what_marks_a_probe_does_not_reach_replicas(place, replicas):
    one, _two = replicas
    place.say(chat("quiet", one.upstream(1, slots=4), probe_mark="m" * 32), keys=[rule(41)])
    ready(place, "/quiet/echo")
    seen = place.get("/quiet/echo", headers={"x-fleetdeck-probe-mark": "m" * 32, "x-fleetdeck-probe": "panel"}).json()
    names = {name.lower() for name in seen["headers"]}
    assert "x-fleetdeck-probe" in names
    assert "x-fleetdeck-probe-mark" not in names
