"""What planning decides, one situation at a time."""

from datetime import UTC, datetime, timedelta

from endpoints.rollout.plan import (
    SETTLING,
    Drain,
    EndpointView,
    Finish,
    GiveUp,
    Lose,
    Place,
    Remove,
    ReplicaView,
    RolloutView,
    Stop,
    plan,
)

NOW = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
OLD, NEW = 1, 2


def replica(number, revision=OLD, **fields):
    return ReplicaView(
        id=number,
        revision=revision,
        **{"created_at": NOW - timedelta(minutes=60 - number), "is_ready": True, **fields},
    )


def decide(*replicas, desired=2, active=OLD, room=0, rollout=False, now=NOW, **fields):
    view = EndpointView(
        desired=desired,
        active=active,
        replicas=replicas,
        room={OLD: room, NEW: room},
        rollout=RolloutView(NEW, NOW + timedelta(minutes=30), is_paused=rollout == "paused") if rollout else None,
        **fields,
    )
    return plan(view, now=now)


def test_what_is_missing_is_placed_as_far_as_there_is_room():
    decided = decide(desired=3, room=2)
    assert decided.actions == [Place(OLD), Place(OLD)]
    assert decided.blocked == "no_free_gpu"


def test_enough_replicas_need_nothing():
    decided = decide(replica(1), replica(2), room=4)
    assert decided.actions == []
    assert decided.blocked == ""


def test_of_too_many_the_one_that_does_not_serve_goes_first_and_then_the_newest():
    assert decide(replica(1), replica(2), replica(3, is_ready=False), desired=2).actions == [Stop(3)]
    assert decide(replica(1), replica(2), replica(3), desired=2).actions == [Drain(3)]


def test_a_replica_of_a_silent_server_is_replaced():
    assert decide(replica(1), replica(2, is_lost=True), room=1).actions == [Lose(2), Place(OLD)]


def test_a_failed_replica_is_stopped_and_replaced_after_a_pause_that_doubles():
    failed = replica(2, is_ready=False, is_failed=True)
    first = decide(replica(1), failed, room=1, failures=1, failed_at=NOW - timedelta(seconds=10))
    assert first.actions == [Stop(2)]
    assert first.blocked == "retry_later"
    assert first.again_at == NOW + timedelta(seconds=20)
    assert decide(replica(1), room=1, failures=1, failed_at=NOW - timedelta(seconds=30)).actions == [Place(OLD)]
    assert decide(replica(1), room=1, failures=3, failed_at=NOW - timedelta(seconds=90)).actions == []


def test_a_server_that_is_emptied_keeps_its_replica_until_another_serves():
    leaving = replica(2, is_leaving=True)
    assert decide(replica(1), leaving, room=1).actions == [Place(OLD)]
    assert decide(replica(1), leaving, replica(3, is_ready=False)).actions == []
    assert decide(replica(1), leaving, replica(3)).actions == [Drain(2)]
    assert decide(replica(1), leaving, room=0).blocked == "nowhere_to_move"


def test_a_rollout_adds_one_beyond_the_wanted_number_when_there_is_room():
    assert decide(replica(1), replica(2), room=4, rollout=True).actions == [Place(NEW)]
    waiting = decide(replica(1), replica(2), replica(3, NEW, is_ready=False), room=4, rollout=True)
    assert waiting.actions == []
    assert waiting.again_at == NOW + timedelta(minutes=30)


def test_an_old_replica_goes_when_a_new_one_serves():
    assert decide(replica(1), replica(2), replica(3, NEW), room=4, rollout=True).actions == [Drain(2)]


def test_without_room_one_old_replica_gives_up_its_card_and_the_next_waits_for_it():
    assert decide(replica(1), replica(2), room=0, rollout=True).actions == [Drain(2)]
    assert decide(replica(1), replica(2, is_run=False), room=0, rollout=True).actions == []
    assert decide(replica(1), room=1, rollout=True).actions == [Place(NEW)]
    assert decide(replica(1), replica(3, NEW, is_ready=False), room=0, rollout=True).actions == []
    assert decide(replica(1), replica(3, NEW), room=0, rollout=True).actions == [Drain(1)]


def test_a_card_that_was_just_given_up_is_waited_for_before_another_one_is():
    freed_at = NOW - timedelta(seconds=5)
    waiting = decide(replica(1), room=0, rollout=True, freed_at=freed_at)
    assert waiting.actions == []
    assert waiting.again_at == freed_at + SETTLING
    assert decide(replica(1), room=1, rollout=True, freed_at=freed_at).actions == [Place(NEW)]
    assert decide(replica(1), room=0, rollout=True, freed_at=NOW - SETTLING).actions == [Drain(1)]
    taken = replica(3, NEW, created_at=NOW - timedelta(seconds=1))
    assert decide(replica(1), taken, room=0, rollout=True, freed_at=freed_at).actions == [Drain(1)]


def test_a_rollout_is_not_over_while_a_card_for_its_next_replica_is_being_freed():
    draining = replica(2, is_run=False)
    assert decide(replica(3, NEW), draining, room=0, rollout=True).actions == []
    assert decide(replica(3, NEW), room=0, rollout=True, freed_at=NOW - timedelta(seconds=5)).actions == []
    assert decide(replica(3, NEW), room=0, rollout=True, freed_at=NOW - SETTLING).actions == [Finish()]
    assert decide(replica(3, NEW), room=0, rollout=True).actions == [Finish()]


def test_a_replica_of_a_silent_server_does_not_hold_up_the_next_card():
    silent = replica(2, is_run=False, is_lost=True)
    assert decide(replica(1), silent, room=0, rollout=True).actions == [Drain(1)]


def test_a_rollout_ends_when_only_new_replicas_are_left_and_all_serve():
    assert decide(replica(3, NEW), replica(4, NEW), rollout=True).actions == [Finish()]
    assert decide(replica(3, NEW), replica(4, NEW), replica(5, NEW), rollout=True).actions == [Drain(5), Finish()]


def test_a_new_replica_that_failed_or_is_late_ends_the_rollout():
    broken = replica(3, NEW, is_ready=False, is_failed=True, reason="crash_loop")
    assert decide(replica(1), replica(2), broken, rollout=True).actions == [GiveUp("crash_loop", 3)]
    late = {"rollout": True, "now": NOW + timedelta(minutes=30)}
    assert decide(replica(1), replica(3, NEW, is_ready=False), **late).actions == [GiveUp("deadline")]
    assert decide(replica(1), replica(2), **late).actions == [GiveUp("no_free_gpu")]


def test_a_paused_rollout_only_replaces_what_is_lost():
    assert decide(replica(1), replica(3, NEW), room=2, rollout="paused").actions == []
    lost = decide(replica(1, is_lost=True), replica(3, NEW), room=2, rollout="paused")
    assert lost.actions == [Lose(1), Place(OLD)]


def test_the_first_revision_is_placed_at_once_and_whole():
    assert decide(active=None, room=5, rollout=True).actions == [Place(NEW), Place(NEW)]


def test_after_a_return_the_new_replicas_go_and_missing_old_ones_come_back():
    decided = decide(replica(1), replica(3, NEW, is_ready=False, is_failed=True), room=1)
    assert decided.actions == [Stop(3), Place(OLD)]
    assert decide(replica(1), replica(3, NEW), room=1).actions == [Place(OLD)]
    assert decide(replica(1), replica(2), replica(3, NEW)).actions == [Drain(3)]


def test_scaled_to_zero_everything_goes():
    assert decide(replica(1), replica(2, is_ready=False), desired=0).actions == [Stop(2), Drain(1)]


def test_a_deleted_endpoint_is_removed_when_nothing_of_it_is_left():
    assert decide(replica(1), replica(2, is_ready=False), is_deleting=True).actions == [Drain(1), Stop(2)]
    assert decide(replica(1, is_run=False), is_deleting=True).actions == []
    assert decide(is_deleting=True).actions == [Remove()]
