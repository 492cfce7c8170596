"""The gate of a rollout: its new replicas stay without requests until a go-live test on them has passed."""

from datetime import datetime, timedelta
from typing import Final

import msgspec
from django.db import transaction
from django.utils.translation import gettext as _

from endpoints.models import Endpoint, Replica, Rollout
from endpoints.rollout.plan import Gate
from endpoints.services.golive import places_on_hosts, subject_of
from endpoints.services.replicas import replica_change
from endpoints.services.waking import endpoint_wake
from monitoring.golive.enums import Outcome
from monitoring.golive_runs.asked import Asked
from monitoring.golive_runs.enums import RunState
from monitoring.golive_runs.models import GoLiveRun
from monitoring.golive_runs.starting import golive_start
from panel.accounts.audit import Actor, audit
from panel.core.clock import now
from panel.core.errors import Conflict, FleetdeckError, NotFound

# How long a test that proved nothing, or was invalid or called off, waits for somebody to run it again.
HELD_FOR: Final = timedelta(hours=2)


def gate_of(rollout: Rollout) -> Gate:
    """Return how a rollout's gate stands. One query where there is a gate."""
    if rollout.gate is None:
        return Gate.OPEN
    if rollout.golive_run_id is None:
        return Gate.WAITING
    run = GoLiveRun.objects.filter(pk=rollout.golive_run_id).only("state", "outcome", "ended_at").first()
    if run is None:
        return Gate.WAITING
    if run.ended_at is None:
        return Gate.RUNNING
    if run.state == RunState.ENDED and run.outcome == Outcome.PASS:
        return Gate.OPEN
    return Gate.FAILED if run.outcome == Outcome.FAIL else Gate.HELD


def gate_begin(endpoint: Endpoint, rollout: Rollout, replicas: list[Replica]) -> str:
    """Begin the test on a rollout's new replicas, in the caller's transaction; returns why it cannot be, empty when it began.

    Each replica is loaded from its own machine, with its share of the peak: what one of the wanted number gets.
    """
    assert rollout.gate is not None  # noqa: S101  # planned from it
    asked = msgspec.convert(rollout.gate, Asked)
    actor = Actor(kind="system", id=None, name=rollout.actor_name)
    try:
        with transaction.atomic():
            of = max(endpoint.desired_replicas, len(replicas))
            places = places_on_hosts(replicas, asked, share=1.0, of=of)
            subject = subject_of(endpoint, replicas, is_gate=True)
            run = golive_start(
                actor=actor, asked=asked, subject=subject, places=places, consent=True, rollout_id=rollout.pk
            )
    except Conflict:
        return ""  # something else is under way there: it is looked at again
    except FleetdeckError as error:
        return error.message
    rollout.golive_run_id = run.pk
    # The deadline was for its replicas to be ready, which they are.
    rollout.deadline_at = max(rollout.deadline_at, run.deadline_at + HELD_FOR)
    rollout.save(update_fields=["golive_run_id", "deadline_at"])
    return ""


def gate_open(replicas: list[Replica], *, at: datetime) -> None:
    """Let requests through to replicas whose test has passed, in the caller's transaction."""
    for replica in replicas:
        if replica.is_gated:
            replica_change(replica, at=at, is_gated=False)


def gate_again(*, endpoint_id: int, actor: Actor) -> Rollout:
    """Have a gate's test run again: it proved nothing, was invalid, or was called off. Raises NotFound or Conflict."""
    with transaction.atomic():
        endpoint = Endpoint.objects.select_for_update().filter(pk=endpoint_id, deleted_at=None).first()
        if endpoint is None:
            raise NotFound(_("There is no such endpoint."))
        rollout = Rollout.objects.filter(endpoint=endpoint, ended_at=None).select_related("to_revision").first()
        if rollout is None or gate_of(rollout) != Gate.HELD:
            raise Conflict(_("No gate waits for another test."), code="no_gate")
        rollout.golive_run_id = None
        rollout.save(update_fields=["golive_run_id"])
        after = {"revision": rollout.to_revision.number}
        audit(actor=actor, action="endpoint.gate_again", target=endpoint, target_name=endpoint.name, after=after)
        endpoint_wake({endpoint.pk}, at=now())
    return rollout
