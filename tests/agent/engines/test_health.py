"""The word for an engine, by the cases that gave the rules."""

import pytest

from fleet.agent.engines.health import SERVING, STALL_SECONDS, Evidence, word_for


def seen(**facts):
    """Evidence of an engine that answered before and answers now, with some facts changed."""
    return Evidence(**{"has_answered": True, "outcome": "answered", "answered_ms": 40.0, **facts})


def test_one_that_answers_is_ok_and_one_that_never_did_is_starting_whatever_it_says():
    assert word_for(seen()) == "ok"
    for facts in ({"outcome": "refused", "misses": 50}, {"health_status": 200}, {"is_frozen": True}, {"misses": 9}):
        assert word_for(Evidence(**facts)) == "starting"


def test_requests_that_wait_while_nothing_moves_for_a_minute_are_a_stall_although_health_is_fine():
    stuck = {
        "others": 3.0,
        "waiting": 3.0,
        "health_status": 200,
        "outcome": "unanswered",
        "misses": 5,
        "is_moving": False,
    }
    assert word_for(seen(**stuck, frozen_seconds=STALL_SECONDS - 0.1)) == "saturated"
    assert word_for(seen(**stuck, frozen_seconds=STALL_SECONDS)) == "stalled"


def test_an_idle_engine_that_leaves_two_real_requests_unanswered_is_stalled():
    idle = {"outcome": "unanswered", "is_moving": False, "others": 0.0}
    assert word_for(seen(**idle, misses=1)) == "degraded"
    assert word_for(seen(**idle, misses=2)) == "stalled"
    assert word_for(seen(**idle, misses=1)) in SERVING
    assert "stalled" not in SERVING


def test_a_busy_engine_whose_tokens_move_is_saturated_however_many_checks_and_health_pages_time_out():
    busy = seen(outcome="unanswered", misses=40, is_moving=True, others=12.0, health_status=0)
    assert word_for(busy) == "saturated"
    assert word_for(busy) in SERVING


def test_a_full_queue_is_overload_and_no_illness():
    assert word_for(seen(outcome="full", misses=4)) == "saturated"
    assert word_for(seen(waiting=7.0, health_status=503)) == "saturated"
    assert word_for(seen(kv_cache_percent=99.0)) == "saturated"


@pytest.mark.parametrize(("milliseconds", "word"), [(1_001.0, "ok"), (4_999.0, "ok"), (5_001.0, "degraded")])
def test_a_slow_answer_is_latency_first(milliseconds, word):
    assert word_for(seen(answered_ms=milliseconds, timeout_seconds=10.0)) == word


def test_its_own_health_page_can_only_add_a_complaint():
    assert word_for(seen(health_status=500)) == "degraded"
    assert word_for(seen(health_status=0)) == "degraded"
    assert word_for(seen(health_status=204)) == "ok"


def test_nothing_that_listens_is_down_at_once_and_errors_after_the_second():
    assert word_for(seen(outcome="refused", misses=1)) == "down"
    assert word_for(seen(outcome="error", misses=1)) == "degraded"
    assert word_for(seen(outcome="error", misses=2)) == "down"
    assert word_for(seen(is_running=False)) == "down"
    assert not {"down", "starting"} & SERVING


def test_one_that_gave_its_memory_back_is_asleep_and_takes_requests():
    assert word_for(seen(is_asleep=True, misses=1, outcome="unanswered")) == "asleep"
    assert word_for(seen(is_asleep=True, misses=1, outcome="refused")) == "down"
    assert "asleep" in SERVING


def test_a_stopped_process_is_stalled_before_any_request_is_missed():
    assert word_for(seen(is_frozen=True)) == "stalled"
