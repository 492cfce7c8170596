"""Idle worlds with their labels: an hour of a card each, and the one word that it gets."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitoring.waste.enums import Ground, Use
from monitoring.waste.levels import Levels, learn
from monitoring.waste.minutes import Minute, Requests, judge
from monitoring.waste.windows import is_armed, is_waste, judge_window

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
H100 = Levels(limit_watts=700.0, bare_watts=78.0, loaded_watts=112.0)
L40S = Levels(limit_watts=350.0, bare_watts=37.0, loaded_watts=103.0)
FRESH = Levels(limit_watts=700.0)  # nothing learned yet

FREE = Minute(
    12, 12, work_percent=0, media_percent=0, power_watts=79, memory_share=0.006, processes=0, host_cpu_percent=2
)
LOADED = replace(FREE, power_watts=115, memory_share=0.91, processes=1)
NOTHING_ASKED = Requests(0, 0, 0)
SERVING = replace(LOADED, requests=NOTHING_ASKED)
TRAINING = replace(LOADED, work_percent=98, power_watts=620)


@dataclass(frozen=True)
class World:
    """An hour of minutes, what is known of the card, and the label it must get."""

    minutes: list[Minute]
    label: Use
    ground: Ground
    levels: Levels = H100
    is_standby: bool = False


def hour(minute, at=None):
    """The same minute sixty times; at: other minutes by their place."""
    minutes = [minute] * 60
    for place, other in (at or {}).items():
        minutes[place] = other
    return minutes


WORLDS = {
    "training": World(hour(TRAINING), Use.WORKING, Ground.KERNELS),
    "training that waits for data within each minute": World(
        hour(replace(TRAINING, work_percent=55, power_watts=240)), Use.WORKING, Ground.KERNELS
    ),
    "training that writes a checkpoint for forty minutes": World(
        [TRAINING] * 12 + [LOADED] * 40 + [TRAINING] * 8, Use.WORKING, Ground.KERNELS
    ),
    "one sample of sixty minutes at forty percent": World(
        hour(LOADED, at={31: replace(LOADED, work_percent=40)}), Use.WORKING, Ground.KERNELS
    ),
    "video encoding alone": World(hour(replace(LOADED, work_percent=1, media_percent=30)), Use.WORKING, Ground.MEDIA),
    "video decoding from the first percent": World(
        hour(replace(LOADED, work_percent=2, media_percent=1)), Use.WORKING, Ground.MEDIA
    ),
    "slices whose utilisation is hidden, nothing else known": World(
        hour(replace(LOADED, work_percent=None, media_percent=None)), Use.UNKNOWN, Ground.HIDDEN
    ),
    "slices whose engine says that nobody asks": World(
        hour(replace(SERVING, work_percent=None, media_percent=None)), Use.PARKED, Ground.QUIET
    ),
    "slices whose engine is asked": World(
        hour(replace(SERVING, work_percent=None, requests=Requests(3, 0, 20))), Use.WORKING, Ground.REQUESTS
    ),
    "a collective that spins": World(
        hour(replace(LOADED, work_percent=100, power_watts=130)), Use.UNKNOWN, Ground.CONTRADICTION
    ),
    "a driver that stopped counting while the card computes": World(
        hour(replace(LOADED, power_watts=410)), Use.WORKING, Ground.POWER
    ),
    "a faulted card": World(hour(Minute(12, 12, is_faulty=True)), Use.UNKNOWN, Ground.UNREADABLE),
    "a card that answers nothing": World(hour(Minute(12, 12)), Use.UNKNOWN, Ground.HIDDEN),
    "an agent that is silent": World(hour(Minute(0, 12)), Use.UNKNOWN, Ground.NO_READINGS),
    "a third of the samples": World(hour(replace(FREE, present=4)), Use.UNKNOWN, Ground.NO_READINGS),
    "ten minutes of silence in an idle hour": World(hour(FREE)[:50], Use.UNKNOWN, Ground.NO_READINGS),
    "five minutes of silence in an idle hour": World(hour(FREE)[:55], Use.IDLE, Ground.QUIET),
    "a free card": World(hour(FREE), Use.IDLE, Ground.QUIET),
    "a free card on which a monitoring tool shows a percent": World(
        hour(replace(FREE, work_percent=2)), Use.IDLE, Ground.QUIET
    ),
    "a free card with one reading that trails": World(
        hour(replace(FREE, power_watts=38), at={7: replace(FREE, work_percent=100, power_watts=242)}),
        Use.IDLE, Ground.QUIET, levels=L40S,
    ),
    "a card whose levels are not learned": World(hour(FREE), Use.IDLE, Ground.QUIET, levels=FRESH),
    "a model that nobody asks": World(hour(SERVING), Use.PARKED, Ground.QUIET),
    "a model of an engine that tells nothing": World(hour(LOADED), Use.PARKED, Ground.QUIET),
    "an engine asleep that gave its memory back": World(
        hour(replace(SERVING, memory_share=0.01)), Use.PARKED, Ground.QUIET
    ),
    "a model asked by probes alone, which are subtracted": World(
        hour(replace(SERVING, work_percent=1)), Use.PARKED, Ground.QUIET
    ),
    "one request an hour": World(
        hour(SERVING, at={20: replace(SERVING, work_percent=60, power_watts=300, requests=Requests(1, 0, 1))}),
        Use.WORKING, Ground.REQUESTS,
    ),
    "requests that wait though no kernel runs": World(
        hour(replace(SERVING, requests=Requests(0, 4, 0))), Use.WORKING, Ground.REQUESTS
    ),
    "processors that prepare data": World(hour(replace(LOADED, host_cpu_percent=35)), Use.WORKING, Ground.HOST),
    "processors that are busy for another card": World(
        hour(replace(LOADED, host_cpu_percent=None)), Use.PARKED, Ground.QUIET
    ),
    "kept warm by somebody's wish": World(hour(SERVING), Use.STANDBY, Ground.QUIET, is_standby=True),
    "kept warm and working": World(hour(TRAINING), Use.WORKING, Ground.KERNELS, is_standby=True),
    "a card in a container that hides its processes, memory in use": World(
        hour(replace(LOADED, processes=None)), Use.PARKED, Ground.QUIET
    ),
    "memory that no process holds": World(hour(replace(LOADED, processes=0)), Use.PARKED, Ground.QUIET),
}  # fmt: skip


@pytest.mark.parametrize("name", WORLDS)
def test_each_world_gets_its_label(name):
    world = WORLDS[name]
    verdict = judge_window([judge(minute, world.levels) for minute in world.minutes], is_standby=world.is_standby)
    assert (verdict.use, verdict.ground) == (world.label, world.ground)


def test_one_request_an_hour_is_work_and_still_shows_what_the_rest_cost():
    verdict = judge_window([judge(minute, H100) for minute in WORLDS["one request an hour"].minutes])
    assert (verdict.use, verdict.quiet_minutes, verdict.coverage) == (Use.WORKING, 59, 1.0)


@pytest.mark.parametrize(
    ("worked_ago", "up_for", "armed"),
    [(None, 30, False), (None, 120, True), (10, 30, True), (None, None, False)],
)
def test_nobody_is_told_of_a_machine_that_was_just_set_up(worked_ago, up_for, armed):
    ago = lambda minutes: None if minutes is None else NOON - timedelta(minutes=minutes)  # noqa: E731
    found = is_armed(worked_at=ago(worked_ago), up_since=ago(up_for), now=NOON)
    assert found is armed
    idle = judge_window([judge(minute, H100) for minute in hour(FREE)])
    assert is_waste(idle, is_armed=found) is armed


@pytest.mark.parametrize("name", [name for name, world in WORLDS.items() if world.label == Use.UNKNOWN])
def test_what_is_not_known_is_never_waste(name):
    world = WORLDS[name]
    assert not is_waste(judge_window([judge(minute, world.levels) for minute in world.minutes]), is_armed=True)


readings = st.one_of(st.none(), st.floats(0, 100))
minutes = st.builds(
    Minute,
    present=st.integers(0, 12),
    expected=st.just(12),
    work_percent=readings,
    media_percent=readings,
    power_watts=st.one_of(st.none(), st.floats(20, 700)),
    memory_share=st.one_of(st.none(), st.floats(0, 1)),
    processes=st.one_of(st.none(), st.integers(0, 3)),
    requests=st.one_of(st.none(), st.builds(Requests, *[st.integers(0, 3)] * 3)),
    host_cpu_percent=readings,
    is_faulty=st.booleans(),
)


@given(minutes)
def test_a_card_of_which_too_little_is_read_is_unknown(minute):
    if minute.present < 10 or minute.is_faulty:
        assert judge(minute, H100).use == Use.UNKNOWN


@given(minutes, st.floats(3, 100))
def test_kernels_never_make_a_card_quiet(minute, percent):
    assert judge(replace(minute, work_percent=percent), H100).use in {Use.WORKING, Use.UNKNOWN}


@given(minutes)
def test_less_to_read_never_makes_idle_what_could_not_be_told(minute):
    if judge(minute, H100).use == Use.UNKNOWN:
        poorer = replace(minute, present=0, processes=None, memory_share=None)
        assert judge(poorer, H100).use == Use.UNKNOWN


def test_levels_are_the_lower_tenth_of_quiet_minutes_and_need_thirty_of_them():
    assert learn([78.0] * 29, limit_watts=700) is None
    assert learn([110.0] * 25 + [80.0] * 10, limit_watts=700) == 80.0
    assert learn([410.0] * 100, limit_watts=700) is None  # a driver that stopped counting teaches nothing
    assert learn([], limit_watts=None) is None


@pytest.mark.parametrize(
    ("levels", "is_held", "threshold"),
    [
        (H100, False, 78 + 0.15 * 622),
        (H100, True, 112 + 0.15 * 588),
        (Levels(700.0, 78.0, None), True, 78 + 0.15 * 622),
        (FRESH, True, 245.0),
        (Levels(None, 40.0, None), False, 46.0),
        (Levels(), False, None),
    ],
)
def test_work_is_named_by_power_well_above_the_cards_own_level(levels, is_held, threshold):
    assert levels.threshold_watts(is_held=is_held) == pytest.approx(threshold)
