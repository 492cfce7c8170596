"""What each kind of answer means for what was sent."""

import httpx
import msgspec
import pytest

from fleet.agent import clock, panel, wire
from fleet.agent.panel import PanelClient, RefusedError, TokenRefusedError, UnreachableError

ANSWER = wire.ReportAnswer(
    seq=1, assignments_version=3, sample_interval_seconds=5.0, report_interval_seconds=5.0, panel_time_ms=1
)


def client(handler, url="http://panel.test"):
    return PanelClient(url, "fda_abcdefgh_secret", transport=httpx.MockTransport(handler))


def answering(status, body=b"", **headers):
    if not isinstance(body, bytes):
        headers["content-type"] = "application/msgpack"
        body = msgspec.msgpack.encode(body)
    return lambda request: httpx.Response(status, content=body, headers=headers)


def test_a_report_carries_the_token_and_the_clocks_of_its_sending():
    seen = []

    def handler(request):
        seen.append(request)
        return answering(200, ANSWER)(request)

    before = clock.now()
    assert client(handler, "https://panel.test/fleet/").report(b"body") == ANSWER
    (request,) = seen
    assert str(request.url) == "https://panel.test/fleet/api/agent/v1/report/"
    assert request.headers["Authorization"] == "Bearer fda_abcdefgh_secret"
    assert request.headers["Content-Type"] == wire.CONTENT_TYPE
    assert request.headers["Content-Encoding"] == "zstd"
    assert before.at_ms <= int(request.headers[wire.HEADER_SENT_AT_MS]) <= clock.now().at_ms
    assert before.monotonic_ms <= int(request.headers[wire.HEADER_SENT_MONOTONIC_MS]) <= clock.now().monotonic_ms
    assert request.headers[wire.HEADER_OS_BOOT_ID] == clock.os_boot_id()
    assert request.content == b"body"


def test_an_answer_in_json_is_read_too():
    body = msgspec.json.encode(ANSWER)
    assert client(answering(200, body, **{"content-type": "application/json"})).report(b"") == ANSWER


@pytest.mark.parametrize("status", [401, 403])
def test_a_token_that_is_not_known_any_more(status):
    with pytest.raises(TokenRefusedError, match="revoked"):
        client(answering(status, wire.Refusal("token_refused", "The token was revoked."))).report(b"")


@pytest.mark.parametrize("status", [400, 413, 415, 422])
def test_a_batch_that_the_panel_will_never_take(status):
    with pytest.raises(RefusedError, match="too old") as caught:
        client(answering(status, wire.Refusal("too_old", "The batch is too old."))).report(b"")
    assert (caught.value.status, caught.value.code) == (status, "too_old")


def test_a_body_too_big_for_the_proxy_in_front_is_never_taken_either():
    with pytest.raises(RefusedError):
        client(answering(413, b"<html>413 Request Entity Too Large</html>")).report(b"")


@pytest.mark.parametrize("code", ["incomplete", "unsupported_protocol"])
def test_refusals_that_are_not_about_the_batch_keep_it(code):
    with pytest.raises(UnreachableError):
        client(answering(400, wire.Refusal(code, "Not now."))).report(b"")


@pytest.mark.parametrize("status", [400, 404, 408, 409, 422, 429, 500, 502, 503, 504])
def test_answers_of_proxies_and_broken_panels_keep_the_batch(status):
    with pytest.raises(UnreachableError, match=str(status)):
        client(answering(status, b"<html>oops</html>")).report(b"")


def test_a_panel_says_when_to_come_back():
    with pytest.raises(UnreachableError) as caught:
        client(answering(429, wire.Refusal("rate_limited", "Slow down."), **{"retry-after": "17"})).report(b"")
    assert caught.value.retry_after_seconds == 17


@pytest.mark.parametrize("value", ["soon", "-5", "", "1e9"])
def test_nonsense_in_retry_after_is_ignored(value):
    with pytest.raises(UnreachableError) as caught:
        client(answering(503, b"", **{"retry-after": value})).report(b"")
    assert caught.value.retry_after_seconds is None


def test_a_redirect_is_not_followed_with_the_token():
    with pytest.raises(UnreachableError, match="302"):
        client(answering(302, b"", location="http://elsewhere.test/")).report(b"")


@pytest.mark.parametrize("body", [b"", b"\x00", b"<html>", msgspec.msgpack.encode({"seq": "one"}), b"x" * 2_000_000])
def test_a_success_that_is_not_a_panel_s_keeps_the_batch(body):
    with pytest.raises(UnreachableError):
        client(answering(200, body)).report(b"")


def test_no_answer_keeps_the_batch():
    def handler(request):
        raise httpx.ConnectError("Name or service not known", request=request)

    with pytest.raises(UnreachableError, match="Name or service not known"):
        client(handler).report(b"")


def test_a_kept_connection_that_the_panel_closed_meanwhile_is_no_failure():
    calls = []

    def handler(request):
        calls.append(request)
        if len(calls) == 1:
            raise httpx.RemoteProtocolError("Server disconnected without sending a response.", request=request)
        return answering(200, ANSWER)(request)

    assert client(handler).report(b"body") == ANSWER
    assert calls[1].content == b"body"


def test_a_panel_that_closes_every_connection_is_a_failure():
    def handler(request):
        raise httpx.RemoteProtocolError("Server disconnected", request=request)

    with pytest.raises(UnreachableError):
        client(handler).report(b"")


def test_assignments_are_fetched():
    wanted = wire.Assignments(4, 1.0, 2.0, collect_pcie_throughput=True)
    assert client(answering(200, wanted)).assignments() == wanted


def test_joining_uses_the_token_up(panel):
    answer = panel_join(panel, "fdj_abcdefgh_good", name="rack 7")
    assert answer.agent_token == "fda_abcdefgh_secret"
    assert panel.joins[0].hostname == "rack 7"
    assert panel.joins[0].capabilities == ["nvml", "host"]


def test_joining_with_a_token_that_is_used_up_says_so(panel):
    with pytest.raises(TokenRefusedError, match="used up"):
        panel_join(panel, "fdj_abcdefgh_used")


def test_joining_where_nobody_listens_says_so():
    with pytest.raises(UnreachableError):
        panel.join("http://127.0.0.1:1", "fdj_abcdefgh_good")


def panel_join(small_panel, token, **options):
    return panel.join(small_panel.url, token, **options)
