"""Paired rounds: each in its slot, what was missed is told apart from what nobody asked."""

import time

import msgspec
import pytest

from fleet.agent.jobs.task import Task
from fleet.agent.probes.target import Target
from fleet.agent.rounds.plan import Plan
from fleet.agent.rounds.running import probing, run_rounds
from fleet.agent.rounds.work import PlanError, measure


def plan(target, **others):
    return Plan(**{"target": target, "begin_at": time.time() + 0.05, "slot_seconds": 0.1, "slots": [0, 1, 2], **others})


async def rounds(prober, wanted):
    found = []
    await run_rounds(wanted, "here", probing(prober), found.append)
    return found


async def test_each_slot_brings_a_cold_and_a_warm_probe_and_the_control_at_its_own_moment(prober, engine, target):
    async with engine(base_ms=5) as port:
        wanted = plan(
            target(port, connections=("cold", "warm")), slots=[0, 2], offset_seconds=0.03, control=target(port, id=0)
        )
        found = await rounds(prober, wanted)
    assert [one.slot for one in found] == [0, 2]
    for one in found:
        assert (one.cold.outcome, one.warm.outcome, one.control.outcome) == ("ok", "ok", "ok"), one
        assert (one.warm.tcp_ms, one.control.target) == (None, 0)
        due = wanted.begin_at + one.slot * 0.1 + 0.03
        assert -0.002 <= one.cold.started_ms / 1000 - due < 0.09


async def test_a_slot_that_the_round_before_ran_into_counts_as_one_in_which_a_user_would_have_waited(
    prober, engine, target
):
    async with engine(base_ms=190, spread=0.0) as port:
        found = await rounds(prober, plan(target(port)))
    assert [(one.slot, one.cold.outcome, one.cold.reason) for one in found] == [
        (0, "ok", ""), (1, "skipped", "overlap"), (2, "ok", ""),
    ]  # fmt: skip


async def test_slots_that_were_over_before_this_place_began_are_left_out(prober, engine, target):
    async with engine(base_ms=1) as port:
        found = await rounds(prober, plan(target(port), begin_at=time.time() - 0.16))
    assert [one.slot for one in found] == [2], "in the first two nobody asked"


def task(target, **others):
    told = msgspec.to_builtins(plan(target))
    return Task(
        job_id=1, kind="diagnose", arguments={"plan": told}, seconds=60, panel_url="http://127.0.0.1", agent_token="t",
        ca_file="", directory="/tmp", vantage="server-7", **others,
    )  # fmt: skip


def test_a_port_of_loopback_that_is_no_replica_of_this_machine_is_not_asked(target):
    found = measure(task(target(9), own_ports=[10]), lambda _percent, _step: None)
    assert {(one.cold.outcome, one.cold.reason) for one in found.rounds} == {("skipped", "address_refused")}


def test_a_plan_that_cannot_be_measured_is_refused_with_what_is_wrong():
    with pytest.raises(PlanError, match="no path"):
        measure(task(Target(id=1, kind="http", host="127.0.0.1", port=80, path="bad")), lambda *_: None)
    broken = task(Target(id=1, kind="http", host="127.0.0.1", port=80))
    broken.arguments["plan"]["slot_seconds"] = 0
    with pytest.raises(PlanError, match="slot_seconds"):
        measure(broken, lambda *_: None)
