"""Sweeps: what they find on an engine of known behaviour, and where they end."""

import pytest

from fleet.agent.rounds.budget import Budget, OverError
from fleet.agent.rounds.engine_times import between, read_look
from fleet.agent.rounds.plan import Plan, Sweeps
from fleet.agent.rounds.running import probing
from fleet.agent.rounds.sweeping import sweep_concurrency, sweep_lengths
from monitoring.knee import Step, disagreeing, knee_of

NOTHING = lambda _part: None  # noqa: E731


def plan(target, sweeps, **others):
    return Plan(**{"target": target, "begin_at": 0, "slot_seconds": 1, "slots": [], "sweeps": sweeps, **others})


def chat(target, port, **others):
    return target(port, kind="chat", max_tokens=2, **others)


async def test_latency_grows_with_the_prompt_as_the_engine_makes_it_grow(prober, engine, target):
    sweeps = Sweeps(lengths=(50, 100, 200), repeats=4)
    async with engine(base_ms=5, per_token_ms=0.5, spread=0.0) as port:
        wanted = plan(chat(target, port), sweeps, measure="ttft")
        found = await sweep_lengths(wanted, sweeps, Budget(sweeps), probing(prober), NOTHING)
    assert [one.asked for one in found] == [50, 100, 200]
    for one in found:
        assert one.tokens == pytest.approx(one.asked, abs=3), "as the engine counted them"
        assert len(one.latencies_ms) == 4
        assert min(one.latencies_ms) == pytest.approx(5 + 0.5 * one.tokens, abs=6)


async def test_a_prompt_that_is_too_long_for_the_engine_is_asked_twice_and_then_left(prober, target):
    from tests.probes.servers import Server

    async def handler(asked, peer):
        if len(asked.body) > 900:
            return await peer.answer(400, b'{"error": "maximum context length"}')
        await peer.chunks_begin()
        await peer.event({"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]})
        return await peer.chunks_end()

    sweeps = Sweeps(lengths=(20, 5_000), repeats=6)
    async with Server(handler) as server:
        wanted = plan(chat(target, server.port), sweeps, measure="ttft")
        found = await sweep_lengths(wanted, sweeps, Budget(sweeps), probing(prober), NOTHING)
    assert [one.asked for one in found] == [20]
    assert sum(len(asked.body) > 900 for asked in server.asked) == 2


async def test_no_two_prompts_are_the_same(prober, engine, target):
    from tests.probes.servers import Server

    async def handler(_asked, peer):
        await peer.chunks_begin()
        await peer.event({"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]})
        await peer.chunks_end()

    sweeps = Sweeps(lengths=(200,), repeats=5, concurrencies=(2,), each=2)
    async with Server(handler) as server:
        wanted = plan(chat(target, server.port), sweeps, typical_tokens=64)
        await sweep_lengths(wanted, sweeps, Budget(sweeps), probing(prober), NOTHING)
        await sweep_concurrency(wanted, sweeps, Budget(sweeps), probing(prober), NOTHING)
    prompts = [asked.json["messages"][0]["content"] for asked in server.asked]
    assert len(prompts) == len(set(prompts)) >= 7


async def test_the_knee_of_an_engine_with_two_slots_is_two_and_its_steps_agree_with_little(prober, engine, target):
    sweeps = Sweeps(concurrencies=(1, 2, 4, 8), each=6)
    async with engine(base_ms=40, slots=2) as port:
        found = await sweep_concurrency(plan(target(port), sweeps), sweeps, Budget(sweeps), probing(prober), NOTHING)
    steps = [Step(one.concurrency, one.latency_ms, one.throughput_per_second) for one in found]
    assert knee_of(steps).concurrency == 2
    assert disagreeing(steps) == []


def is_taken(budget):
    try:
        budget.take(100)
    except OverError:
        return False
    return True


@pytest.mark.parametrize(
    ("bound", "why"),
    [({"most_requests": 3}, "requests"), ({"most_tokens": 250}, "tokens"), ({"most_seconds": 5.0}, "seconds")],
)
def test_a_budget_ends_where_it_was_told_to(bound, why):
    clock = iter(range(0, 100, 2))
    budget = Budget(Sweeps(**bound), clock=lambda: float(next(clock)))
    taken = sum(is_taken(budget) for _ in range(10))
    assert (budget.stopped, taken) == (why, {"requests": 3, "tokens": 2, "seconds": 2}[why])


async def test_an_engine_that_fails_is_not_loaded_any_further(prober, engine, target):
    sweeps = Sweeps(concurrencies=(1, 2, 4, 8, 16), each=8)
    budget = Budget(sweeps)
    async with engine(base_ms=1, fail=1.0) as port:
        found = await sweep_concurrency(plan(target(port), sweeps), sweeps, budget, probing(prober), NOTHING)
    assert budget.stopped == "errors"
    assert budget.requests <= 12, "ten are enough to see it"
    assert len(found) == 1


PAGE = """\
# HELP vllm:request_queue_time_seconds x
vllm:num_requests_running{model_name="a"} 2.0
vllm:num_requests_running{model_name="b"} 1.0
vllm:num_requests_waiting{model_name="a"} %s
vllm:request_queue_time_seconds_sum{model_name="a"} %s
vllm:request_queue_time_seconds_count{model_name="a"} %s
vllm:kv_cache_usage_perc{engine="0"} 0.5
vllm:kv_cache_usage_perc{engine="1"} 0.97
"""


def test_an_engines_own_times_are_what_was_added_between_two_looks():
    found = between([read_look(PAGE % (0, 10.0, 100)), read_look(PAGE % (4, 13.0, 110))])
    assert (found.queue_ms, found.requests) == (300.0, 10)
    assert (found.running, found.waiting, found.kv_cache_usage) == (3.0, 2.0, 0.97)
    assert (found.prefill_ms, found.decode_ms) == (None, None), "this page does not tell them"


def test_an_engine_that_began_anew_in_between_tells_no_times():
    found = between([read_look(PAGE % (0, 10.0, 100)), read_look(PAGE % (0, 0.5, 2))])
    assert (found.queue_ms, found.requests) == (None, None)


def test_a_page_of_something_else_tells_nothing():
    assert between([read_look("<html>"), read_look("process_cpu 3\nvllm:kv_cache_usage_perc NaN")]) is None
