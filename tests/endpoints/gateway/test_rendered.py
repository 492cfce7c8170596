"""Configurations for nginx and HAProxy: tried with the real programs, in front of real replicas."""

import signal
import threading
import time

import pytest

from endpoints.gateway.haproxy import render_haproxy
from endpoints.gateway.nginx import render_nginx
from fleet.agent.orders import Route, Upstream
from tests.agent.gateway.place import HTTP, words
from tests.endpoints.gateway.proxies import haproxy, nginx, replicas
from tests.waiting import eventually, free_port

KINDS = {"nginx": (render_nginx, nginx), "haproxy": (render_haproxy, haproxy)}


@pytest.fixture(scope="module", params=sorted(KINDS))
def front(request, tmp_path_factory):
    """A proxy before two replicas: its address, and a third one that a test may kill."""
    render, run = KINDS[request.param]
    port = free_port()
    with replicas("one", "two", "victim") as (one, two, victim):
        common = {"idle_seconds": 20.0, "first_byte_seconds": 20.0, "health_path": "/health"}
        pair = [one.upstream(1, slots=4), two.upstream(2, slots=4)]
        routes = [
            Route("chat", pair, hosts=["chat.example.com"], upstream_key="engine-key", **common),
            Route("art.v2", [one.upstream(1, slots=1)], in_flight_limit=2, in_flight_per_replica=2, **common),
            Route("empty", []),
            Route("brief", [one.upstream(1), victim.upstream(3)], **common),
        ]
        text = render(routes, port=port, has_secrets=True)
        with run(tmp_path_factory.mktemp(request.param), text, port) as url:
            ready = lambda: HTTP.get(f"{url}/chat/echo").status_code  # noqa: E731
            eventually(ready, lambda status: status == 200, seconds=10)
            yield url, victim, (one, two)


@pytest.mark.e2e
def test_requests_reach_replicas_with_their_key_and_without_the_callers(front):
    url, *_ = front
    answer = HTTP.get(f"{url}/chat/echo?a=1", headers={"authorization": "Bearer fdk_callers", "cookie": "a=b"}).json()
    assert answer["path"] == "/echo?a=1"
    assert answer["headers"]["authorization"] == "Bearer engine-key"
    assert "cookie" not in answer["headers"]
    assert HTTP.get(f"{url}/echo", headers={"host": "chat.example.com"}).json()["path"] == "/echo"
    assert {HTTP.get(f"{url}/chat/echo").json()["name"] for _ in range(20)} == {"one", "two"}


@pytest.mark.e2e
def test_a_stream_passes_piece_by_piece(front):
    url, *_ = front
    arrived, text = [], ""
    with HTTP.stream("POST", f"{url}/chat/v1", json={"stream": True, "n": 6, "gap": 0.1}) as answer:
        for part in answer.iter_text():
            arrived.append(time.monotonic())
            text += part
    assert words(text) == (6, True)
    assert len(arrived) >= 5, "the pieces came in one lump"


@pytest.mark.e2e
def test_refusals_have_the_shape_that_clients_read(front):
    url, *_ = front
    missing = HTTP.get(f"{url}/nothing/v1")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "unknown_endpoint")
    empty = HTTP.get(f"{url}/empty/v1")
    assert (empty.status_code, empty.json()["error"]["code"]) == (503, "no_replica_ready")
    assert int(empty.headers["retry-after"]) > 0


@pytest.mark.e2e
def test_what_is_beyond_the_limit_is_refused_and_says_when_to_come_again(front):
    url, *_ = front
    request = {"stream": True, "n": 10, "gap": 0.1}

    def one():
        eventually(
            lambda: HTTP.post(f"{url}/art.v2/v1", json=request).status_code,
            lambda status: status == 200,
            seconds=20,
        )

    threads = [threading.Thread(target=one) for _ in range(4)]  # more than the limit: it stays full for a while
    for thread in threads:
        thread.start()
    refused = eventually(
        lambda: HTTP.post(f"{url}/art.v2/v1", json={"n": 1}),
        lambda answer: answer.status_code == 429,
        seconds=10,
    )
    for thread in threads:
        thread.join()
    assert refused.json()["error"]["code"] == "endpoint_full"
    assert int(refused.headers["retry-after"]) > 0


@pytest.mark.e2e
def test_requests_that_were_not_begun_are_sent_to_the_other_replica(front):
    url, victim, _ = front
    for number in range(6):
        assert HTTP.post(f"{url}/brief/close-once/{number}?of=victim", json={}).status_code == 200
    victim.signal(signal.SIGKILL)
    victim.process.wait()
    answers = [HTTP.get(f"{url}/brief/echo") for _ in range(30)]
    assert {answer.status_code for answer in answers} == {200}, answers[-1].text
    assert {answer.json()["name"] for answer in answers} == {"one"}


@pytest.mark.e2e
def test_replicas_that_are_all_busy_for_a_moment_are_not_taken_for_dead(front):
    url, _, alive = front
    for replica in alive:
        replica.signal(signal.SIGSTOP)
    back = threading.Timer(2.0, lambda: [replica.signal(signal.SIGCONT) for replica in alive])
    back.start()
    try:
        answers = [HTTP.get(f"{url}/chat/echo") for _ in range(3)]
    finally:
        back.join()
    assert {answer.status_code for answer in answers} == {200}, answers[0].text


ROUTE = Route(
    "chat", [Upstream(1, "10.0.0.7", 8000, 2), Upstream(2, "2001:db8::7", 8000)], upstream_key="engine-secret"
)


@pytest.mark.parametrize("render", [render_nginx, render_haproxy])
def test_no_secret_stands_in_a_configuration_that_was_not_asked_for_it(render):
    assert "engine-secret" not in render([ROUTE])
    assert "engine-secret" in render([ROUTE], has_secrets=True)


@pytest.mark.parametrize("render", [render_nginx, render_haproxy])
@pytest.mark.parametrize(
    "route",
    [
        Route("chat;}", []),
        Route("chat", [], hosts=["a; return 200"]),
        Route("chat", [Upstream(1, "10.0.0.7; evil", 80)]),
        Route("chat", [], upstream_key='x"; evil "'),
        Route("chat", [], upstream_key="$variable"),
        Route("chat", [], health_path="/health; evil"),
    ],
)
def test_values_that_would_mean_something_else_are_refused(render, route):
    with pytest.raises(ValueError, match=r"."):
        render([route], has_secrets=True)


@pytest.mark.parametrize(
    ("render", "replica"),
    [(render_nginx, "server [2001:db8::7]:8000"), (render_haproxy, "[2001:db8::7]:8000 maxconn 1")],
)
def test_replicas_limits_and_addresses_are_those_of_the_route(render, replica):
    text = render([ROUTE])
    assert replica in text
    assert "10.0.0.7:8000" in text
    assert "256" in text


def test_callers_of_nginx_can_be_limited_by_the_minute():
    text = render_nginx([ROUTE], requests_per_minute=30)
    assert "rate=30r/m" in text
    assert "limit_req zone=fleetdeck_callers" in text
    assert "limit_req" not in render_nginx([ROUTE])
