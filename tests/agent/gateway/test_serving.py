"""What callers meet at a gateway: where requests go, what is passed on, what is refused and how it is worded."""

import socket
import threading
import time

import pytest

from tests.agent.gateway.place import HTTP, KEY, chat, rule, words
from tests.waiting import eventually

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def served(place, replicas):
    one, two = replicas
    place.say(
        chat(
            "chat",
            one.upstream(1, slots=2),
            two.upstream(2, slots=2),
            hosts=["chat.example.com"],
            upstream_key="eng%ine",
        ),
        chat("open", one.upstream(1), requires_key=False),
        chat("empty"),
        chat("tiny", one.upstream(1, slots=1), in_flight_limit=3),
        chat("untold", one.upstream(1), in_flight_limit=1),
        keys=[rule(1)],
    )
    return place


def error_of(response):
    assert response.headers["content-type"] == "application/json"
    return response.json()["error"]


def test_a_request_goes_by_the_first_part_of_its_path_or_by_its_host_name(served):
    assert served.get("/chat/echo?a=1").json()["path"] == "/echo?a=1"
    by_name = served.get("/echo/deep", headers={"host": "chat.example.com:8080"})
    assert by_name.json()["path"] == "/echo/deep"


def test_a_replica_learns_its_own_key_and_nothing_of_the_caller(served):
    headers = served.get(
        "/chat/echo", headers={"cookie": "session=1", "x-forwarded-for": "198.51.100.7", "x-api-key": "other"}
    ).json()["headers"]
    assert headers["authorization"] == "Bearer eng%ine"
    assert not {"cookie", "x-forwarded-for", "x-api-key", "x-envoy-external-address"} & headers.keys()
    assert KEY not in str(headers)
    assert "authorization" not in served.get("/open/echo").json()["headers"]


def test_callers_cannot_change_retries_and_time_limits(served):
    answer = served.post(
        "/chat/v1", {"n": 1, "gap": 0.2}, headers={"x-envoy-upstream-rq-timeout-ms": "1", "x-envoy-max-retries": "0"}
    )
    assert answer.status_code == 200


def test_a_path_does_not_lead_around_the_key(served):
    assert served.get("/open/..%2fchat/echo").status_code == 400
    # httpx would tidy the path up by itself
    with socket.create_connection(("127.0.0.1", served.order.port)) as connection:
        connection.sendall(b"GET /open/../chat/echo HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        assert connection.makefile("rb").readline().startswith(b"HTTP/1.1 401")


def test_a_stream_arrives_piece_by_piece_and_whole(served):
    arrived = []
    request = {"stream": True, "n": 6, "gap": 0.1, "stream_options": {"include_usage": True}}
    with HTTP.stream(
        "POST", f"{served.url}/chat/v1", json=request, headers={"authorization": f"Bearer {KEY}"}
    ) as answer:
        assert answer.headers["content-type"] == "text/event-stream"
        text = ""
        for part in answer.iter_text():
            arrived.append(time.monotonic())
            text += part
    assert words(text) == (6, True)
    assert len(arrived) >= 6, "the pieces came in one lump"


def test_an_endpoint_without_replicas_says_when_to_come_again(served):
    answer = served.get("/empty/v1")
    assert (answer.status_code, error_of(answer)["code"]) == (503, "no_replica_ready")
    assert int(answer.headers["retry-after"]) > 0


def test_what_is_not_there_is_said_in_the_same_shape(served):
    answer = served.get("/nothing/v1")
    assert (answer.status_code, error_of(answer)["code"]) == (404, "unknown_endpoint")


def test_a_request_that_is_too_large_is_refused_with_and_without_a_stated_length(served):
    with socket.create_connection(("127.0.0.1", served.order.port)) as connection:
        connection.sendall(
            f"POST /chat/v1 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\ncontent-length: 67108864\r\n\r\n".encode()
        )
        told = connection.makefile("rb").read().decode()
    assert told.startswith("HTTP/1.1 413")
    assert '"code":"request_too_large"' in told
    untold = served.get("/chat/v1", method="POST", content=(b"x" * 1_000_000 for _ in range(34)))
    assert (untold.status_code, error_of(untold)["code"]) == (413, "request_too_large")
    headers = served.get("/chat/v1", headers={"x-large": "x" * 70_000})
    assert (headers.status_code, error_of(headers)["code"]) == (431, "headers_too_large")


def test_a_large_request_is_sent_again_whole_when_replicas_hang_up(served):
    size = 5_000_000
    answer = served.get("/chat/close-once/1", method="POST", content=b"x" * size)
    assert answer.json()["bytes"] == size


def hold(served, path, count):
    """Have so many requests under way at an endpoint; returns what joins them."""
    request = {"stream": True, "n": 10, "gap": 0.1}

    def one():
        eventually(lambda: served.post(path, request).status_code, lambda status: status == 200, seconds=10)

    threads = [threading.Thread(target=one) for _ in range(count)]
    for thread in threads:
        thread.start()
    return lambda: [thread.join() for thread in threads]


@pytest.mark.parametrize(("endpoint", "limit", "queue"), [("tiny", 3, 2), ("untold", 1, None)])
def test_a_full_endpoint_refuses_with_the_length_of_its_queue(served, endpoint, limit, queue):
    join = hold(served, f"/{endpoint}/v1", limit)
    refused = eventually(
        lambda: served.post(f"/{endpoint}/v1", {"n": 1}), lambda answer: answer.status_code == 429, seconds=10
    )
    join()
    assert int(refused.headers["retry-after"]) > 0
    error = error_of(refused)
    assert (error["code"], error["in_flight"], error["queue_length"]) == ("endpoint_full", limit, queue)
    assert served.post(f"/{endpoint}/v1", {"n": 1}).status_code == 200


def test_an_engines_own_answer_of_an_error_reaches_the_caller_as_it_is(served):
    answer = served.get("/chat/status/500")
    assert (answer.status_code, answer.json()) == (500, {"error": "as told"})
    assert served.get("/chat/status/422").status_code == 422


def test_a_balancer_before_gateways_can_ask_whether_one_lives(served):
    assert served.get("/-/alive", key=None).text == "ok\n"
