"""Streams of engines: what counts as the first token, by whose count, and what is no proper end."""

import asyncio

import pytest

from tests.probes.conftest import target
from tests.probes.servers import Server, chunk_of, stream, usage_of

WAIT = 0.05
WAIT_MS = WAIT * 1000
ROLE = chunk_of({"role": "assistant", "content": ""})
END = chunk_of({}, "stop")
DONE = "[DONE]"


def word(text):
    return chunk_of({"content": text})


async def chat(prober, handler, **options):
    async with Server(handler) as server:
        found = await prober.run(target("chat", server.port, model="m", **options))
    return found, server


async def test_the_first_token_is_the_first_text_and_not_the_role(prober):
    found, _ = await chat(prober, stream(ROLE, WAIT, word("a"), WAIT, word("b"), END, usage_of(3), DONE))
    assert found.outcome == "ok"
    assert found.ttft_ms - found.ttfe_ms >= WAIT_MS * 0.9
    assert found.ttfe_ms >= found.ttfb_ms
    assert found.e2e_ms >= found.ttft_ms + WAIT_MS * 0.9
    assert found.ttfot_ms == found.ttft_ms


async def test_time_per_token_is_by_the_engines_own_count_whatever_the_chunks(prober):
    found, _ = await chat(prober, stream(ROLE, word("a b c"), WAIT, word("d e"), END, usage_of(5, prompt=11), DONE))
    assert (found.completion_tokens, found.prompt_tokens, found.tokens) == (5, 11, "usage")
    assert found.tpot_ms == pytest.approx((found.e2e_ms - found.ttft_ms) / 4, abs=0.01)
    assert found.chunk_max_ms == pytest.approx(found.e2e_ms - found.ttft_ms, abs=0.01)


async def test_without_the_engines_count_there_is_no_time_per_token(prober):
    found, _ = await chat(prober, stream(word("a"), word("b"), END, DONE))
    assert (found.outcome, found.tpot_ms) == ("ok", None)
    assert (found.completion_tokens, found.tokens) == (2, "estimated")


async def test_one_token_has_no_time_per_token(prober):
    found, _ = await chat(prober, stream(word("a"), END, usage_of(1), DONE))
    assert (found.tpot_ms, found.chunk_p50_ms) == (None, None)


@pytest.mark.parametrize(
    "delta",
    [
        {"reasoning_content": "hm"},
        {"reasoning": "hm"},
        {"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": "{"}}]},
    ],
)
async def test_reasoning_and_tool_calls_are_tokens_but_not_text(prober, delta):
    found, _ = await chat(prober, stream(ROLE, chunk_of(delta), WAIT, word("x"), END, usage_of(3), DONE))
    assert found.ttfot_ms - found.ttft_ms >= WAIT_MS * 0.9


async def test_a_stream_of_reasoning_alone_has_no_first_text(prober):
    found, _ = await chat(
        prober, stream(chunk_of({"reasoning": "a"}), chunk_of({"reasoning": "b"}), END, usage_of(2), DONE)
    )
    assert (found.outcome, found.ttfot_ms) == ("ok", None)
    assert found.ttft_ms is not None


async def test_comments_that_keep_a_stream_alive_are_no_first_event(prober):
    found, _ = await chat(prober, stream(b": ping\n\n", WAIT, b": ping\n\n", word("a"), END, DONE))
    assert found.ttfe_ms - found.ttfb_ms >= WAIT_MS * 0.9


async def test_the_end_is_the_last_token_and_not_what_comes_after_it(prober):
    found, _ = await chat(prober, stream(word("a"), word("b"), END, WAIT, usage_of(2), DONE))
    assert found.total_ms - found.e2e_ms >= WAIT_MS * 0.9


async def test_events_split_anywhere_are_read(prober):
    import json

    whole = (
        "".join(f"data: {json.dumps(part)}\r\n\r\n" for part in (ROLE, word("ä"), END, usage_of(2)))
        + "data: [DONE]\n\n"
    )
    pieces = [whole.encode()[at : at + 3] for at in range(0, len(whole.encode()), 3)]
    found, _ = await chat(prober, stream(*pieces))
    assert (found.outcome, found.completion_tokens) == ("ok", 2)


@pytest.mark.parametrize(
    ("steps", "outcome", "reason"),
    [
        ([ROLE, word("a"), {"error": {"message": "out of memory"}}], "stream_error", "error_event"),
        ([ROLE, b'event: error\ndata: {"message": "gone"}\n\n'], "stream_error", "error_event"),
        ([ROLE, word("a"), DONE], "stream_error", "unfinished"),
        ([ROLE, word("a")], "stream_error", "unfinished"),
        ([ROLE, b"data: {broken\n\n"], "stream_error", "not_json"),
        ([ROLE, b"data: " + b"[" * 5000 + b"\n\n"], "stream_error", "not_json"),
        ([ROLE, b"data: 7\n\n"], "stream_error", "not_json"),
        ([ROLE, END, DONE], "empty", "no_text"),
        ([b": ping\n\n"], "stream_error", "no_events"),
        ([], "stream_error", "no_events"),
    ],
)
async def test_a_stream_that_is_not_what_it_should_be_is_no_success(prober, steps, outcome, reason):
    found, _ = await chat(prober, stream(*steps))
    assert (found.outcome, found.reason, found.status) == (outcome, reason, 200)
    assert (found.total_ms, found.e2e_ms) == (None, None)


async def test_a_stream_that_breaks_off_is_aborted_and_keeps_what_it_had(prober):
    found, _ = await chat(prober, stream(ROLE, word("a"), 0.01, finishes=False))
    assert (found.outcome, found.phase_reached) == ("aborted", "transfer")
    assert found.ttft_ms is not None


async def test_a_stream_that_stops_in_the_middle_is_a_timeout(prober):
    found, _ = await chat(prober, stream(ROLE, word("a"), 30.0), timeout_seconds=0.3)
    assert (found.outcome, found.phase_reached, found.e2e_ms) == ("timeout", "transfer", None)
    assert found.ttft_ms is not None


async def test_what_an_error_event_says_is_kept(prober):
    found, _ = await chat(prober, stream({"error": {"message": "out of memory", "code": 500}}))
    assert found.detail == "out of memory"


@pytest.mark.parametrize("count", [-1, True, "5", 10**12, None, 1.5])
async def test_a_count_that_is_none_is_not_believed(prober, count):
    found, _ = await chat(prober, stream(word("a"), word("b"), END, usage_of(count), DONE))
    assert (found.outcome, found.tokens, found.completion_tokens) == ("ok", "estimated", 2)


async def test_every_prompt_has_a_beginning_of_its_own_and_asks_for_the_counts(prober):
    async with Server(stream(word("a"), END, usage_of(2), DONE)) as server:
        one = target("chat", server.port, model="m", prompt="Hello", max_tokens=5, extra={"top_p": 1})
        for _ in range(2):
            await prober.run(one)
    first, second = (asked.json for asked in server.asked)
    prompts = [body["messages"][0]["content"] for body in (first, second)]
    assert all(prompt.endswith(" Hello") for prompt in prompts)
    assert prompts[0][:8] != prompts[1][:8]
    assert (first["stream"], first["stream_options"]) == (True, {"include_usage": True})
    assert (first["max_tokens"], first["model"], first["top_p"]) == (5, "m", 1)
    assert server.asked[0].path == "/v1/chat/completions"


async def test_a_completion_stream_is_read_by_its_text(prober):
    def text(said, finish=None):
        return {"choices": [{"text": said, "finish_reason": finish}]}

    async with Server(stream(text(""), WAIT, text("a"), text("b", "length"), usage_of(2), DONE)) as server:
        found = await prober.run(target("completion", server.port))
    assert found.outcome == "ok"
    assert found.ttft_ms - found.ttfe_ms >= WAIT_MS * 0.9
    assert server.asked[0].path == "/v1/completions"
    assert server.asked[0].json["prompt"].startswith("[")


async def test_an_engine_that_refuses_to_count_is_asked_without_and_never_again(prober):
    async def handler(asked, peer):
        if "stream_options" in asked.json:
            await asyncio.sleep(WAIT)
            return await peer.answer(400, b'{"detail": "stream_options: extra fields not permitted"}')
        return await stream(word("a"), word("b"), END, DONE)(asked, peer)

    async with Server(handler) as server:
        first = await prober.run(target("chat", server.port))
        second = await prober.run(target("chat", server.port))
    assert (first.outcome, first.tokens, second.tokens) == ("ok", "estimated", "estimated")
    assert len(server.asked) == 3
    assert first.tcp_ms is not None
    assert first.total_ms < WAIT_MS + first.elapsed_ms
    assert first.ttfb_ms < WAIT_MS


async def test_another_refusal_is_not_taken_for_that_one(prober):
    async def handler(_asked, peer):
        await peer.answer(400, b'{"error": "no such model"}')

    found, server = await chat(prober, handler)
    assert (found.outcome, found.detail, len(server.asked)) == ("http", "status 400: no such model", 1)


async def test_an_answer_that_is_no_stream_is_named(prober):
    async def handler(_asked, peer):
        await peer.answer(body=b'{"choices": []}', content_type="application/json")

    found, _ = await chat(prober, handler)
    assert (found.outcome, found.reason) == ("stream_error", "no_stream")


async def test_a_warm_stream_opens_its_connection_without_generating(prober):
    async def handler(asked, peer):
        if asked.method == "GET":
            return await peer.answer(body=b"{}")
        return await stream(ROLE, word("a"), word("b"), END, usage_of(2), DONE)(asked, peer)

    async with Server(handler) as server:
        found = await prober.run(target("chat", server.port, connections=("warm",)), "warm")
    assert [(asked.method, asked.path) for asked in server.asked] == [
        ("GET", "/v1/models"),
        ("POST", "/v1/chat/completions"),
    ]
    assert (found.outcome, found.tcp_ms) == ("ok", None)
