"""What a page says of an engine: busy is not ill, a healthy page proves nothing, nobody hurries one that loads."""

import pytest

from endpoints.engines.health import Observation, judge
from fleet.agent.engines.health import Evidence


def seen(*, evidence=None, **changes):
    known = {"has_answered": True, "outcome": "answered", "answered_ms": 50.0, "is_moving": True, **(evidence or {})}
    return judge(Observation(evidence=Evidence(**known), **changes))


def test_an_engine_that_loads_is_starting_whatever_its_page_says():
    found = seen(
        evidence={"has_answered": False, "outcome": "refused", "misses": 16, "health_status": 503},
        up_seconds=159,
        last_log_seconds=12,
    )
    assert (found.word, found.takes_requests, found.offers_restart) == ("starting", False, False)
    assert (
        found.sentence
        == "It loads for 2 min 39 s now, of 30 min 0 s that it may take. Its last log line is 0 min 12 s old."
    )


def test_a_start_beyond_its_limit_is_given_up_and_says_so():
    found = seen(evidence={"has_answered": False, "outcome": "refused"}, up_seconds=1801)
    assert (found.word, found.offers_restart) == ("down", True)
    assert "start limit" in found.next_step


def test_frozen_tokens_with_a_healthy_page_are_stalled_and_the_page_is_shown_beside_it():
    found = seen(evidence={"waiting": 3, "frozen_seconds": 60, "health_status": 200}, health_text="OK")
    assert (found.word, found.takes_requests, found.offers_restart) == ("stalled", False, True)
    assert found.notes == ["Its own health page says it is well (OK)."]


def test_a_busy_engine_whose_health_page_times_out_is_never_offered_a_restart():
    found = seen(evidence={"outcome": "unanswered", "misses": 5, "is_moving": True, "others": 12, "health_status": 0})
    assert (found.word, found.takes_requests, found.offers_restart) == ("saturated", True, False)
    assert "because it is busy" in found.notes[0]
    assert found.next_step.startswith("Add a replica")


def test_an_answer_of_one_second_is_no_fault():
    assert seen(evidence={"answered_ms": 1001.0}).word == "ok"


@pytest.mark.parametrize(
    ("kind", "note"),
    [
        ("sglang", "Its metrics are off: start it with --enable-metrics."),
        ("transformers", "It has no metrics page: queue and cache stay unknown."),
    ],
)
def test_metrics_that_are_off_are_named_and_the_engine_stays_well(kind, note):
    found = seen(kind=kind, metrics_status=404)
    assert (found.word, found.notes) == ("ok", [note])


def test_an_engine_that_gave_its_memory_back_takes_requests():
    found = seen(evidence={"is_asleep": True})
    assert (found.word, found.takes_requests) == ("asleep", True)


def test_one_that_does_not_run_is_down_and_started_by_its_agent():
    found = seen(evidence={"is_running": False})
    assert (found.word, found.takes_requests, found.offers_restart) == ("down", False, False)
