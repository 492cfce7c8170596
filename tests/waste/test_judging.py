"""The use of cards, brought up to the minutes that are rolled up: intervals begin, go on and end, whatever the pace."""

from datetime import UTC, datetime, timedelta

import pytest

from fleet.models import Gpu
from monitoring.models import GpuUse, IdleInterval
from monitoring.store.tables import ENGINE, HOST
from monitoring.waste import engines
from monitoring.waste.judging import waste_judge
from tests.fleet.factories import GIB, Machine, joined
from tests.waste.minutes import put_minutes

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
QUIET = {
    "utilization_percent": 0,
    "encoder_percent": 0,
    "decoder_percent": 0,
    "power_watts": 80,
    "memory_used_bytes": GIB / 2,
}
PARKED = {**QUIET, "power_watts": 115, "memory_used_bytes": 120 * GIB}
BUSY = {**PARKED, "utilization_percent": 97, "power_watts": 610}


def at(minutes):
    return NOON + timedelta(minutes=minutes)


@pytest.fixture
def gpus(time_machine):
    """Two cards of one machine, of which every process can be seen and none is there."""
    time_machine.move_to(NOON, tick=False)
    agent, _ = joined()
    Machine(agent, cards=2).send()
    Gpu.objects.update(processes_visibility="visible", processes=[])
    waste_judge(until=NOON)
    return list(Gpu.objects.order_by("index"))


def use_of(gpu):
    return GpuUse.objects.get(gpu=gpu)


def intervals(gpu):
    found = IdleInterval.objects.filter(gpu=gpu).order_by("started_at")
    minutes = lambda moment: (moment - NOON) // timedelta(minutes=1)  # noqa: E731
    return [(row.use, minutes(row.started_at), minutes(row.ended_at), row.quiet_minutes, row.is_open) for row in found]


def test_an_idle_hour_is_told_with_its_beginning_and_evidence(gpus):
    put_minutes(gpus[0].pk, NOON, 60, **QUIET)
    put_minutes(gpus[1].pk, NOON, 60, **BUSY)
    assert waste_judge(until=at(60)) == 2
    idle, busy = use_of(gpus[0]), use_of(gpus[1])
    assert (idle.use, idle.ground, idle.quiet_minutes, idle.known_minutes, idle.worked_at) == (
        "idle",
        "quiet",
        60,
        60,
        None,
    )
    assert (busy.use, busy.ground, busy.worked_at) == ("working", "kernels", at(60))
    assert intervals(gpus[0]) == [("idle", 0, 60, 60, True)]
    assert intervals(gpus[1]) == []
    evidence = IdleInterval.objects.get().evidence
    assert evidence["work_percent"] == 0
    assert evidence["power_watts"] == pytest.approx(80)
    assert evidence["processes"] == 0


@pytest.mark.parametrize("pace", [1, 5, 7, 120])
def test_intervals_are_the_same_however_often_cards_are_looked_at(gpus, pace):
    card = gpus[0].pk
    put_minutes(card, at(0), 15, **BUSY)
    put_minutes(card, at(15), 25, **PARKED)
    put_minutes(card, at(43), 20, **PARKED)  # three minutes are missing before it
    put_minutes(card, at(63), 2, **BUSY)
    put_minutes(card, at(65), 8, **PARKED)  # too short to be told
    put_minutes(card, at(73), 1, **BUSY)
    put_minutes(card, at(74), 46, **QUIET)
    for minute in range(pace, 121, pace):
        waste_judge(until=at(minute))
    waste_judge(until=at(120))
    assert intervals(gpus[0]) == [("parked", 15, 63, 45, False), ("idle", 74, 120, 46, True)]


def test_silence_ends_an_interval_and_is_never_idle(gpus):
    put_minutes(gpus[0].pk, NOON, 30, **QUIET)
    waste_judge(until=at(90))
    assert intervals(gpus[0]) == [("idle", 0, 30, 30, False)]
    assert (use_of(gpus[0]).use, use_of(gpus[0]).ground) == ("unknown", "no_readings")


def test_levels_are_learned_from_quiet_minutes(gpus):
    put_minutes(gpus[0].pk, NOON, 40, **QUIET)
    put_minutes(gpus[0].pk, at(40), 40, **PARKED)
    waste_judge(until=at(80))
    use = use_of(gpus[0])
    assert (use.bare_watts, use.loaded_watts) == (80.0, 115.0)
    put_minutes(gpus[0].pk, at(80), 60, **{**PARKED, "power_watts": 260})  # utilisation still says 0
    waste_judge(until=at(140))
    assert (use_of(gpus[0]).use, use_of(gpus[0]).ground) == ("working", "power")


def test_requests_of_its_engine_are_work_and_the_agents_own_are_not(gpus, monkeypatch):
    monkeypatch.setattr(engines, "_lookups", [lambda ids: {gpus[0].pk: [501], gpus[1].pk: [502]} if ids else {}])
    for card in gpus:
        put_minutes(card.pk, NOON, 60, **PARKED)
    told = {"kind": ENGINE, "running": 0.01, "waiting": 0, "own_requests_per_second": 0.1}
    put_minutes(501, NOON, 60, **told, requests_per_second=0.1)
    put_minutes(502, NOON, 60, **told, requests_per_second=0.6)
    waste_judge(until=at(60))
    assert [use_of(card).use for card in gpus] == ["parked", "working"]
    assert use_of(gpus[1]).ground == "requests"


def test_processors_count_for_a_card_only_while_no_other_card_works(gpus):
    for card in gpus:
        put_minutes(card.pk, NOON, 60, **PARKED)
    put_minutes(gpus[0].server_id, NOON, 60, kind=HOST, cpu_percent=60)
    waste_judge(until=at(60))
    assert {use_of(card).ground for card in gpus} == {"host"}
    put_minutes(gpus[0].pk, at(60), 60, **BUSY)
    put_minutes(gpus[1].pk, at(60), 60, **PARKED)
    put_minutes(gpus[0].server_id, at(60), 60, kind=HOST, cpu_percent=60)
    waste_judge(until=at(120))
    assert [use_of(card).use for card in gpus] == ["working", "parked"]


def test_a_card_that_is_lost_is_not_idle(gpus):
    Gpu.objects.filter(pk=gpus[0].pk).update(state="lost")
    put_minutes(gpus[0].pk, NOON, 60, **QUIET)
    waste_judge(until=at(60))
    assert (use_of(gpus[0]).use, use_of(gpus[0]).ground) == ("unknown", "unreadable")
    assert intervals(gpus[0]) == []


def test_after_a_long_pause_it_begins_anew(gpus):
    put_minutes(gpus[0].pk, NOON, 60, **QUIET)
    waste_judge(until=at(60))
    put_minutes(gpus[0].pk, at(24 * 60), 20, **QUIET)
    waste_judge(until=at(24 * 60 + 20))
    assert intervals(gpus[0]) == [("idle", 0, 60, 60, False), ("idle", 1440, 1460, 20, True)]
