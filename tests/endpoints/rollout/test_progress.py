"""The ten steps of a start: from what the agent told and what the engine wrote; what nobody told is not invented."""

from datetime import UTC, datetime, timedelta

import pytest

from endpoints.rollout.progress import ORDER, Step, StepState, Told, done_count, marks_in, progress

T = datetime(2026, 3, 1, 12, tzinfo=UTC)


def at(seconds):
    return T + timedelta(seconds=seconds)


def told(*, states=None, marks=None, **changes):
    return Told(requested_at=T, states=states or {}, marks=marks or {}, **changes)


def states(rows):
    return {row.step: row.state for row in rows}


def test_an_order_without_a_place_waits_for_capacity():
    rows = progress(told(), now=at(40))
    assert [row.step for row in rows] == list(ORDER)
    assert states(rows)[Step.CAPACITY] == StepState.CURRENT
    assert rows[1].seconds == 40
    assert {row.state for row in rows[2:]} == {StepState.WAITING}
    assert done_count(rows) == 1


def test_a_start_that_went_well_tells_how_long_each_step_took():
    lines = [
        (at(130), "INFO Starting to load model Qwen/Qwen3-8B..."),
        (at(160), "INFO Model loading took 15.3 GiB memory and 29.1 seconds"),
        (at(200), "INFO Graph capturing finished in 38 secs"),
        (at(205), "INFO:     Application startup complete."),
    ]
    seen = {"placed": at(1), "pulling": at(3), "starting": at(120), "ready": at(210)}
    rows = progress(told(states=seen, marks=marks_in(lines), routed_at=at(211)), now=at(500))
    assert {row.state for row in rows} == {StepState.DONE}
    took = {row.step: row.seconds for row in rows}
    assert took[Step.IMAGE] == 117
    assert took[Step.LOADED] == 30
    assert took[Step.FIRST_TOKEN] == 5
    assert done_count(rows) == 10


def test_a_step_that_nobody_told_of_and_a_later_one_proves_is_passed_without_a_time():
    rows = progress(told(states={"placed": at(1), "starting": at(5), "ready": at(60)}), now=at(70))
    assert states(rows)[Step.LOADED] == StepState.PASSED
    assert next(row for row in rows if row.step == Step.LOADED).seconds is None
    assert states(rows)[Step.ROTATION] == StepState.CURRENT


def test_a_plain_process_pulls_no_image():
    rows = progress(told(states={"placed": at(1), "starting": at(2)}, is_container=False), now=at(9))
    assert states(rows)[Step.IMAGE] == StepState.SKIPPED
    assert states(rows)[Step.WEIGHTS] == StepState.CURRENT


def test_what_was_given_up_names_the_step_and_stops_its_clock():
    seen = {"placed": at(1), "starting": at(2)}
    marks = {Step.WEIGHTS: at(30)}
    rows = progress(told(states=seen, marks=marks, failed_at=at(90)), now=at(9_000))
    failed = next(row for row in rows if row.state == StepState.FAILED)
    assert (failed.step, failed.seconds) == (Step.LOADED, 60)


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("Loading checkpoint shards: 100%|##########| 4/4", Step.LOADED),
        ("[2026-03-01 12:00:00 TP0] Load weight end. type=Qwen3ForCausalLM", Step.LOADED),
        ("main: model loaded", Step.LOADED),
        ("Capture cuda graph end. Time elapsed: 12.3 s.", Step.WARM_UP),
        ("init engine (profile, create kv cache, warmup model) took 31.20 seconds", Step.WARM_UP),
        ("The server is fired up and ready to roll!", Step.FIRST_200),
        ("main: server is listening on http://127.0.0.1:8080", Step.FIRST_200),
        ("Started HTTPService at 0.0.0.0:8000", Step.FIRST_200),
        ("Fetching 9 files: 100%|####| 9/9", Step.WEIGHTS),
    ],
)
def test_lines_of_engines_end_their_step(line, step):
    assert marks_in([(T, line)]) == {step: T}


def test_a_download_that_goes_on_ends_nothing():
    assert marks_in([(T, "Fetching 9 files:  44%|####| 4/9"), (T, "Loading checkpoint shards:  25%")]) == {}
