"""Calls that start, stop, reboot and save a machine: sent once, also when the process or the answer is lost on the way."""

from datetime import timedelta

import pytest

from fleet.enums import OperationKind, OperationState
from fleet.models import Server
from fleet.providers.base import HasSnapshots, Snapshot
from fleet.providers.errors import OutcomeUnknown
from fleet.providers.registry import PROVIDERS
from fleet.providers.runpod.adapter import RunPod
from fleet.reasons import Reason
from fleet.services.power import lease_act
from panel.core.clock import now
from tests.leasing.conftest import ACTOR, fresh, only_lease

SAVED: list[Snapshot] = []
CALLS: list[str] = []


class Saving(RunPod, HasSnapshots):
    """A provider whose snapshots are kept in this module; its answer is always lost on the way."""

    def snapshots(self):
        return list(SAVED)

    def snapshot(self, external_id, name):
        CALLS.append(name)
        SAVED.append(Snapshot(external_id=f"snap-{len(CALLS)}", name=name, status="", is_ready=False, created_at=now()))
        raise OutcomeUnknown("the answer was lost")


@pytest.fixture
def lease(rounds, account, vendor):
    """A machine that runs."""
    rounds.order(account)
    rounds.step()
    vendor.advance()
    rounds.run(minutes=0.5)
    return only_lease()


def restarts(vendor):
    return [request for request in vendor.requests if b'"restart"' in request.content]


def stops(vendor):
    return [request for request in vendor.requests if b'"stop"' in request.content]


def dying(vendor, monkeypatch, word, *, when):
    """Make the next call with this word kill the process, before or after the provider did it."""
    answer = vendor.answer

    def dies(request):
        if word not in request.content:
            return answer(request)
        monkeypatch.setattr(vendor, "answer", answer)
        if when == "after":
            answer(request)
        raise KeyboardInterrupt

    monkeypatch.setattr(vendor, "answer", dies)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_reboot_is_not_sent_twice_after_a_crash_and_is_not_called_done(rounds, lease, vendor, monkeypatch, when):
    reboot = lease_act(lease_id=lease.pk, kind=OperationKind.REBOOT, actor=ACTOR).operation
    dying(vendor, monkeypatch, b"restart", when=when)
    with pytest.raises(KeyboardInterrupt):
        rounds.step()
    assert fresh(reboot).sent_at is not None
    vendor.advance()
    rounds.pass_time(130)  # the claim of the dead process runs out
    rounds.run(minutes=20)
    assert len(restarts(vendor)) == 1
    assert (fresh(reboot).state, fresh(reboot).reason) == (OperationState.FAILED, Reason.OUTCOME_UNKNOWN)


def test_a_reboot_without_an_answer_is_proven_by_the_machine_itself(rounds, lease, vendor):
    reboot = lease_act(lease_id=lease.pk, kind=OperationKind.REBOOT, actor=ACTOR).operation
    vendor.lost_replies = 1
    rounds.step()
    vendor.advance()
    Server.objects.update(facts={"booted_at_ms": int((now() + timedelta(seconds=5)).timestamp() * 1000)})
    rounds.run(minutes=1)
    assert fresh(reboot).state == OperationState.SUCCEEDED
    assert len(restarts(vendor)) == 1


def test_a_stop_that_was_lost_is_looked_for_and_then_sent_again(rounds, lease, vendor, monkeypatch):
    stop = lease_act(lease_id=lease.pk, kind=OperationKind.STOP, actor=ACTOR).operation
    dying(vendor, monkeypatch, b'"stop"', when="before")
    with pytest.raises(KeyboardInterrupt):
        rounds.step()
    rounds.run(minutes=1.5)
    assert len(stops(vendor)) == 1
    rounds.run(minutes=3)
    assert len(stops(vendor)) == 2
    assert fresh(stop).state == OperationState.SUCCEEDED


def test_a_stop_whose_answer_was_lost_is_not_sent_again_once_it_shows(rounds, lease, vendor):
    stop = lease_act(lease_id=lease.pk, kind=OperationKind.STOP, actor=ACTOR).operation
    vendor.lost_replies = 1
    rounds.run(minutes=4)
    assert fresh(stop).state == OperationState.SUCCEEDED
    assert len(stops(vendor)) == 1


def test_a_call_that_the_provider_surely_did_not_do_is_sent_again_at_once(rounds, lease, vendor):
    reboot = lease_act(lease_id=lease.pk, kind=OperationKind.REBOOT, actor=ACTOR).operation
    vendor.throttled = 1
    rounds.step()
    assert fresh(reboot).sent_at is None
    rounds.pass_time(15)
    rounds.step()
    vendor.advance()
    rounds.run(minutes=1)
    assert fresh(reboot).state == OperationState.SUCCEEDED
    assert fresh(reboot).attempts == 2


def test_a_snapshot_without_an_answer_is_found_by_its_name_and_made_once(rounds, lease, monkeypatch):
    SAVED.clear()
    CALLS.clear()
    monkeypatch.setitem(PROVIDERS, "runpod", Saving)
    SAVED.append(
        Snapshot(external_id="old", name="before tests", status="", is_ready=True, created_at=now() - timedelta(days=1))
    )
    save = lease_act(lease_id=lease.pk, kind=OperationKind.SNAPSHOT, actor=ACTOR, name="before tests").operation
    rounds.run(minutes=1)
    assert fresh(save).state == OperationState.RUNNING
    SAVED[-1] = Snapshot(external_id="snap-1", name="before tests", status="", is_ready=True, created_at=now())
    rounds.run(minutes=1)
    assert (fresh(save).state, fresh(save).result) == (OperationState.SUCCEEDED, {"snapshot": "snap-1"})
    assert CALLS == ["before tests"]
