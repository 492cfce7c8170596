"""When probes begin, and that they never meet, never pile up and end with the one who runs them."""

import asyncio
import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fleet.agent.probes.collected import Collected
from fleet.agent.probes.gate import Gate
from fleet.agent.probes.prober import Prober
from fleet.agent.probes.schedule import MOST_TARGETS, Schedule, TooManyTargetsError
from fleet.agent.probes.slots import JITTER, offset, slot_after
from tests.probes.conftest import PRIVATE, target
from tests.probes.servers import Server, fine, held, raw_server
from tests.waiting import eventually_here

# ---- slots


@given(st.integers(0, 10**6), st.sampled_from(["panel", "box-1"]), st.floats(1, 3600), st.floats(0, 2e9))
def test_slots_come_one_interval_after_the_other_give_or_take_the_jitter(number, vantage, interval, moment):
    first = slot_after(moment, target=number, vantage=vantage, interval_seconds=interval)
    second = slot_after(first, target=number, vantage=vantage, interval_seconds=interval)
    assert moment < first <= moment + interval * (1 + 2 * JITTER) + 1e-3
    assert interval * (1 - 2 * JITTER) - 1e-3 <= second - first <= interval * (1 + 2 * JITTER) + 1e-3


@given(st.integers(0, 10**6), st.floats(0, 1e6), st.floats(0, 29))
def test_a_restart_changes_no_slot(number, moment, later):
    due = slot_after(moment, target=number, vantage="panel", interval_seconds=30)
    asked_again = min(moment + later, due - 1e-3)
    if asked_again >= moment:
        assert slot_after(asked_again, target=number, vantage="panel", interval_seconds=30) == due


def test_offsets_of_many_targets_are_spread_over_the_interval():
    found = [offset(number, "panel", 30) for number in range(3000)]
    per_second = [sum(second <= one < second + 1 for one in found) for second in range(30)]
    assert min(per_second) > 60
    assert max(per_second) < 145


def test_two_vantages_look_at_different_moments():
    assert offset(1, "panel", 30) != offset(1, "box-1", 30)


# ---- the loop


@pytest.fixture(autouse=True)
def _looks_at_the_clock_often(monkeypatch):
    monkeypatch.setattr("fleet.agent.probes.schedule.LONGEST_SLEEP_SECONDS", 0.005)


class FastClock:
    """A wall clock that runs many times as fast, and can be set; a loop has to look at it often."""

    def __init__(self, speed=100.0):
        self.speed, self.begin, self.ahead = speed, time.monotonic(), 1_800_000_000.0

    def __call__(self):
        return self.ahead + (time.monotonic() - self.begin) * self.speed


class Running:
    """A schedule that runs in a task; results come into a list."""

    def __init__(self, wall=None, gate=None, sink=None):
        self.results, self.changes = [], []
        self.wall = wall or FastClock()
        self.prober = Prober("here", rules=PRIVATE, wall=self.wall)
        self.schedule = Schedule(
            self.prober, sink or self.results.append, lambda change, _watch: self.changes.append(change), gate
        )

    async def __aenter__(self):
        self.task = asyncio.create_task(self.schedule.run())
        return self

    async def __aexit__(self, *_):
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        await self.prober.close()

    def of(self, number):
        return [result for result in self.results if result.target == number]


async def test_targets_are_probed_again_and_again_at_their_own_moments():
    async with Server(fine) as server, Running() as running:
        running.schedule.set_targets([target(id=number, port=server.port, interval_seconds=10) for number in (1, 2, 3)])
        await eventually_here(lambda: all(len(running.of(number)) >= 4 for number in (1, 2, 3)))
    for number in (1, 2, 3):
        due = [result.scheduled_ms / 1000 for result in running.of(number)]
        assert due == sorted(set(due))
        regular = offset(number, "here", 10)
        places = [(moment - regular + 5) % 10 - 5 for moment in due]
        assert all(abs(place) <= 10 * JITTER + 0.002 for place in places)
    assert {result.outcome for result in running.results} == {"ok"}


async def test_a_target_whose_probe_is_under_way_is_skipped_and_that_is_recorded():
    async with Server(held(0.4)) as server, Running() as running:
        running.schedule.set_targets([target(port=server.port, interval_seconds=10)])
        await eventually_here(lambda: any(result.outcome == "ok" for result in running.results))
        assert server.accepted <= 2
    skipped = [result for result in running.results if result.reason == "overlap"]
    assert skipped
    assert {result.outcome for result in skipped} == {"skipped"}
    assert "under way" in skipped[0].detail


async def test_a_pair_of_cold_and_warm_gives_two_results_over_one_connection():
    async with Server(fine) as server, Running() as running:
        running.schedule.set_targets([target(port=server.port, interval_seconds=20, connections=("cold", "warm"))])
        await eventually_here(lambda: len(running.results) >= 4)
    assert [result.connection for result in running.results[:4]] == ["cold", "warm"] * 2
    assert all((result.tcp_ms is None) == (result.connection == "warm") for result in running.results)


async def test_a_target_that_is_gone_is_probed_no_more_and_its_probe_ends():
    async with Server(held(30)) as server, Running() as running:
        running.schedule.set_targets([target(port=server.port, interval_seconds=10, timeout_seconds=60)])
        await eventually_here(lambda: server.asked)
        running.schedule.set_targets([])
        await eventually_here(lambda: not running.schedule._tasks)
        before = len(server.asked)
        running.schedule.set_targets([target(id=2, port=server.port, interval_seconds=10, timeout_seconds=60)])
        await eventually_here(lambda: len(server.asked) > before)
    assert {result.target for result in running.results} <= {1, 2}


async def test_a_change_of_a_target_holds_from_its_next_probe_on():
    async with Server(fine) as server, Running() as running:
        running.schedule.set_targets([target(port=server.port, interval_seconds=10, path="/old")])
        await eventually_here(lambda: running.results)
        running.schedule.set_targets([target(port=server.port, interval_seconds=10, path="/new")])
        await eventually_here(lambda: server.asked[-1].path == "/new")


async def test_cancelling_the_loop_ends_every_probe_and_leaves_nothing_behind():
    opened, closed = [], []

    async def serve(reader, _writer):
        opened.append(1)
        try:
            await reader.read(-1)
        finally:
            closed.append(1)

    async with raw_server(serve) as port, Running() as running:
        running.schedule.set_targets(
            [target(id=number, port=port, interval_seconds=10, timeout_seconds=60) for number in range(5)]
        )
        await eventually_here(lambda: len(opened) == 5)
        running.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running.task
        assert not running.schedule._tasks
        await eventually_here(lambda: len(closed) == 5)


async def test_a_clock_that_is_set_forward_gives_one_record_of_the_gap_and_no_crowd():
    async with Server(fine) as server, Running() as running:
        running.schedule.set_targets([target(port=server.port, interval_seconds=10)])
        await eventually_here(lambda: running.results)
        asked = len(server.asked)
        running.wall.ahead += 3_600
        await eventually_here(lambda: any(result.reason == "prober_away" for result in running.results))
        await eventually_here(lambda: len(server.asked) >= asked + 2)
    gaps = [result for result in running.results if result.reason == "prober_away"]
    assert [result.outcome for result in gaps] == ["vantage_down"]
    assert "rounds did not take place" in gaps[0].detail


async def test_a_clock_that_is_set_back_does_not_stop_the_probes():
    async with Server(fine) as server, Running() as running:
        running.schedule.set_targets([target(port=server.port, interval_seconds=10)])
        await eventually_here(lambda: running.results)
        asked = len(server.asked)
        running.wall.ahead -= 86_400
        running.schedule.set_targets([target(port=server.port, interval_seconds=10)])
        await eventually_here(lambda: len(server.asked) >= asked + 2)


async def test_a_sink_that_fails_loses_its_result_and_nothing_else():
    taken = []

    def sink(result):
        taken.append(result)
        if len(taken) == 1:
            raise RuntimeError

    async with Server(fine) as server, Running(sink=sink) as running:
        running.schedule.set_targets([target(port=server.port, interval_seconds=10)])
        await eventually_here(lambda: len(taken) >= 3)


def test_one_process_takes_a_bounded_number_of_targets():
    schedule = Schedule(Prober("here", rules=PRIVATE), print)
    with pytest.raises(TooManyTargetsError, match=str(MOST_TARGETS)):
        schedule.set_targets([target(id=number) for number in range(MOST_TARGETS + 1)])


# ---- the gate


async def test_no_more_probes_are_under_way_than_the_gate_lets_in():
    most, under_way, gate = 0, 0, Gate(at_once=3, spacing_seconds=0)

    async def one():
        nonlocal most, under_way
        async with gate.through():
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0)
            under_way -= 1

    await asyncio.gather(*[one() for _ in range(30)])
    assert most == 3


async def test_starts_are_spaced_evenly():
    starts, gate = [], Gate(at_once=100, spacing_seconds=0.01)

    async def one():
        async with gate.through():
            starts.append(gate._began)

    await asyncio.gather(*[one() for _ in range(10)])
    assert min(later - sooner for sooner, later in itertools.pairwise(starts)) >= 0.01


async def test_one_who_gives_up_at_the_gate_takes_no_place_with_them():
    gate = Gate(at_once=1, spacing_seconds=0)
    entered = asyncio.Event()

    async def stays():
        async with gate.through():
            entered.set()
            await asyncio.Event().wait()

    first, second = asyncio.create_task(stays()), asyncio.create_task(stays())
    await entered.wait()
    for task in (second, first):
        task.cancel()
    await asyncio.gather(first, second, return_exceptions=True)
    async with asyncio.timeout(1), gate.through():
        pass


async def test_a_long_stream_gives_its_place_to_the_next_once_it_is_open():
    async with Server(held(30)) as slow, Server(fine) as server, Running(gate=Gate(at_once=1)) as running:
        waiting = [target(id=number, port=slow.port, interval_seconds=10, timeout_seconds=60) for number in range(3)]
        running.schedule.set_targets([*waiting, target(id=9, port=server.port, interval_seconds=10)])
        await eventually_here(lambda: len(slow.asked) == 3 and running.of(9))


async def test_a_target_that_never_opens_gives_its_place_to_the_next_after_a_while(monkeypatch):
    monkeypatch.setattr("fleet.agent.probes.gate.LONGEST_HOLD_SECONDS", 0.05)
    running = Running(gate=Gate(at_once=1))
    async with raw_server(lambda reader, _writer: reader.read(-1)) as dead, Server(fine) as server, running:
        stuck = [target("tls", dead, id=number, interval_seconds=10, timeout_seconds=60) for number in range(3)]
        running.schedule.set_targets([*stuck, target(id=9, port=server.port, interval_seconds=10)])
        await eventually_here(lambda: len(running.schedule._tasks) >= 3 and running.of(9))


# ---- results on their way


async def test_results_that_nobody_takes_are_bounded_and_counted(prober):
    collected = Collected(most=3)
    result = await prober.run(target("tcp", 9, host="nobody.example"))
    for _ in range(5):
        collected(result)
    assert (len(collected.take(2)), collected.lost) == (2, 2)
    collected.put_back([result] * 5)
    assert (len(collected.take()), collected.lost) == (3, 5)


async def test_a_target_that_is_asked_for_at_once_is_due_at_once_and_then_at_its_moments_again():
    async with Server(fine) as server, Running(wall=time.time) as running:
        slow = target(port=server.port, interval_seconds=36_000)
        running.schedule.set_targets([slow])
        assert not running.schedule._tasks
        running.schedule.set_targets([replace(slow, run=1)])
        await eventually_here(lambda: len(running.results) == 1)
        running.schedule.set_targets([replace(slow, run=1, timeout_seconds=5)])
        running.schedule.set_targets([replace(slow, run=2)])
        await eventually_here(lambda: len(running.results) == 2)
    assert [each.outcome for each in running.results] == ["ok", "ok"]
    assert all(each.sched_lag_ms < 900 for each in running.results), "asked for now, it is not late"
