"""The generator of load against a real engine over real sockets: open loop, told piece by piece, bounded, cancelled, in steps."""

import asyncio
import contextlib
import time

import pytest

from fleet.agent.load.generator import Generator, StopError
from fleet.agent.load.order import LoadAnswer, LoadOrder
from fleet.agent.load.prompts import prompt_of
from fleet.agent.load.slots import Slots
from fleet.agent.probes.prober import Prober
from fleet.agent.probes.target import Target
from tests.engines.fake_engine import Engine, parse
from tests.probes.conftest import PRIVATE


@contextlib.asynccontextmanager
async def engine(*options):
    """An engine on a port of its own; yields it and the target."""
    made = Engine(parse([*options]))
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    target = Target(id=1, kind="chat", host="127.0.0.1", port=port, max_tokens=4, timeout_seconds=20)
    async with server:
        yield made, target


@pytest.fixture(autouse=True)
def _tells_often(monkeypatch):
    monkeypatch.setattr("fleet.agent.load.generator.TELL_SECONDS", 0.05)


async def sent(order, tell=None):
    """Run an order; returns all pieces, what `run` said, and the shots by number."""
    pieces = []

    async def note(piece):
        pieces.append(piece)
        return tell(piece) if tell else LoadAnswer()

    async with Prober("here", rules=PRIVATE) as prober:
        result = await Generator(order, prober, note).run()
    shots = [shot for piece in pieces for shot in piece.shots]
    return pieces, result, shots


def order_of(target, at_seconds, **changes):
    tokens = [8] * len(at_seconds)
    return LoadOrder(part=5, targets=[target], at_seconds=at_seconds, tokens=tokens, **{"warm_up": 2, **changes})


async def test_arrivals_keep_their_moments_though_no_answer_has_come():
    async with engine("--ms-per-token", "200", "--slots", "100") as (_made, target):
        at = [0.02 * number for number in range(20)]
        pieces, result, shots = await sent(order_of(target, at))
    assert result == (20, "")
    assert sorted(shot.number for shot in shots) == list(range(20))
    late = [shot.at_seconds - at[shot.number] for shot in shots]
    assert all(-0.001 <= each < 0.25 for each in late), "nothing waited for the 800 ms of an answer"
    assert max(shot.in_flight for shot in shots) > 10
    assert all(shot.is_ok and shot.ttft_ms >= 200 and shot.tpot_ms is not None for shot in shots)
    assert [piece.sequence for piece in pieces] == list(range(len(pieces)))
    assert pieces[-1].phase == "over"
    assert pieces[-1].loop_lag_p99_ms is not None


async def test_connections_are_used_again_and_prompts_are_unique():
    async with engine("--ms-per-token", "1") as (made, target):
        made.prompts = []
        answer, opened = made.complete, []

        async def note(asked, writer, *, is_chat):
            made.prompts.append(asked["messages"][0]["content"])
            opened.append(id(writer))
            await answer(asked, writer, is_chat=is_chat)

        made.complete = note
        await sent(order_of(target, [0.05 * number for number in range(12)]))
    assert len(made.prompts) == len(set(made.prompts)) == 12
    assert len({prompt[:18] for prompt in made.prompts}) == 12, "from their first characters on"
    assert len(set(opened)) < 6


async def test_a_failure_is_told_with_its_outcome_and_is_no_latency():
    async with engine("--ms-per-token", "1", "--error-every", "3") as (_made, target):
        _pieces, _result, shots = await sent(order_of(target, [0.02 * number for number in range(9)]))
    bad = [shot for shot in shots if not shot.is_ok]
    assert len(bad) == 3
    assert {(shot.outcome, shot.total_ms, shot.ttft_ms) for shot in bad} == {("http", None, None)}
    assert "failed as it was told" in bad[0].detail


async def test_what_is_due_while_too_many_wait_counts_as_failed_and_is_not_sent():
    async with engine("--ms-per-token", "100") as (made, target):
        _pieces, result, shots = await sent(order_of(target, [0.005 * n for n in range(10)], in_flight_most=3))
        assert made.requests == 3
    assert result == (3, "")
    assert [shot.outcome for shot in sorted(shots, key=lambda each: each.number)].count("in_flight_limit") == 7


@pytest.mark.parametrize(("changes", "why"), [({"most_tokens": 60}, "tokens"), ({"most_seconds": 0.1}, "seconds")])
async def test_an_order_ends_at_its_limits_whatever_happens(changes, why):
    async with engine("--ms-per-token", "1") as (made, target):
        pieces, result, _shots = await sent(order_of(target, [0.03 * n for n in range(40)], **changes))
        assert made.requests < 15
    assert result[1] == why
    assert (pieces[-1].phase, pieces[-1].stopped) == ("over", why)


async def test_the_panels_word_ends_it_at_once_with_everything_under_way():
    async with engine("--ms-per-token", "5000") as (made, target):
        began = time.monotonic()
        order = order_of(target, [0.01 * n for n in range(500)])
        _pieces, result, _shots = await sent(order, lambda piece: LoadAnswer(go_on=piece.seconds < 0.2))
        assert result[1] == "told"
        assert time.monotonic() - began < 3
        assert made.requests < 60


async def test_a_panel_that_is_lost_ends_it():
    def away(_piece):
        raise StopError("lost")

    async with engine("--ms-per-token", "1") as (_made, target):
        _pieces, result, _shots = await sent(order_of(target, [0.05 * n for n in range(100)]), away)
    assert result[1] == "lost"


async def test_steps_keep_so_many_under_way_until_the_panel_wants_no_further_one():
    wanted = {0: 1, 1: 2, 2: 4, 4: 0}

    def answer(piece):
        return LoadAnswer(concurrency=wanted[piece.step] if piece.phase == "steps" and piece.is_step_over else 0)

    async with engine("--ms-per-token", "10", "--slots", "2") as (_made, target):
        pieces, _result, shots = await sent(order_of(target, [0.0, 0.01, 0.02], step_seconds=0.4), answer)
    steps = {step: [shot for shot in shots if shot.step == step] for step in (1, 2, 4)}
    assert all(max(shot.in_flight for shot in found) == step for step, found in steps.items())
    assert len(steps[2]) > len(steps[1]) * 1.4
    assert len(steps[4]) < len(steps[2]) * 1.4, "two slots give no more"
    over = [piece.step for piece in pieces if piece.is_step_over and piece.phase == "steps"]
    assert over == [0, 1, 2, 4]


def test_prompts_are_about_as_long_as_asked_and_slots_are_used_last_in_first_out():
    assert [len(prompt_of(tokens).split()) for tokens in (1, 8, 2_000)] == [6, 8, 2_000]
    slots = Slots()
    first, second = slots.take(), slots.take()
    assert (first, second) == ((1, "cold"), (2, "cold"))
    slots.give(1, is_open=True)
    slots.give(2, is_open=False)
    assert slots.take() == (2, "cold")
    assert slots.take() == (1, "warm")
