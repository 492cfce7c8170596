"""Changes of revision: begun, paused, called off, ended."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils.translation import gettext as _

from endpoints.engines.base import EngineSpec
from endpoints.enums import RevisionState, RolloutState
from endpoints.lifecycle import ROLLOUT_TRANSITIONS
from endpoints.models import Endpoint, Revision, Rollout
from endpoints.services.launching import spec_facts
from endpoints.services.routing import endpoint_reroute
from endpoints.services.waking import endpoint_wake
from monitoring.golive_runs.asked import gate_read
from panel.accounts.audit import Actor, audit
from panel.core.clock import now
from panel.core.enums import Severity
from panel.core.errors import Conflict, NotFound
from panel.core.events import event_write


def endpoint_locked(endpoint_id: int) -> Endpoint:
    """Return the endpoint, locked for the caller's transaction. Raises NotFound, also for one that is being deleted."""
    endpoint = (
        Endpoint.objects.select_for_update(of=("self",))
        .select_related("active_revision", "target_revision")
        .filter(pk=endpoint_id, deleting_at=None, deleted_at=None)
        .first()
    )
    if endpoint is None:
        raise NotFound(_("There is no such endpoint."))
    return endpoint


def revision_create(
    *, endpoint: Endpoint, spec: EngineSpec, actor: Actor, gpus: int | None = None, note: str = ""
) -> Revision:
    """Add a revision to an endpoint that the caller holds locked. gpus: of each replica, None for as many as it is parallel.

    Raises InvalidInput for a spec that cannot run.
    """
    facts = spec_facts(spec, gpus=spec.tensor_parallel_size if gpus is None else gpus)
    newest = Revision.objects.filter(endpoint=endpoint).aggregate(number=Max("number"))["number"] or 0
    return Revision.objects.create(
        endpoint=endpoint,
        number=newest + 1,
        note=note,
        created_at=now(),
        created_by_name=actor.name[:200],
        **facts,
    )


def revision_deploy(
    *,
    endpoint_id: int,
    spec: EngineSpec,
    actor: Actor,
    gpus: int | None = None,
    note: str = "",
    gate: Mapping[str, Any] | None = None,
) -> Rollout:
    """Add a revision and roll it out; one that is under way is called off first. Raises NotFound or InvalidInput.

    gate: what a go-live test has to prove before requests go to it, see `monitoring.golive_runs.asked`; None for no gate.
    """
    with transaction.atomic():
        endpoint = endpoint_locked(endpoint_id)
        revision = revision_create(endpoint=endpoint, spec=spec, gpus=gpus, actor=actor, note=note)
        return rollout_begin(endpoint=endpoint, revision=revision, actor=actor, action="endpoint.deploy", gate=gate)


def endpoint_rollback(*, endpoint_id: int, number: int | None, actor: Actor) -> Rollout:
    """Roll out an earlier revision again: the one of this number, else the last good one before the active.

    Raises NotFound, or Conflict when there is none to go back to.
    """
    with transaction.atomic():
        endpoint = endpoint_locked(endpoint_id)
        revisions = Revision.objects.filter(endpoint=endpoint)
        if number is not None:
            revision = revisions.filter(number=number).first()
            if revision is None:
                raise NotFound(_("There is no such revision."))
        else:
            before = endpoint.active_revision.number if endpoint.active_revision else 0
            revision = revisions.filter(state=RevisionState.GOOD, number__lt=before).order_by("-number").first()
            if revision is None:
                raise Conflict(_("There is no earlier revision that served. Deploy one instead."), code="no_revision")
        return rollout_begin(endpoint=endpoint, revision=revision, actor=actor, action="endpoint.rollback")


def endpoint_restart(*, endpoint_id: int, actor: Actor) -> Rollout:
    """Start every replica anew, a few at a time: a rollout to a revision with the same spec. Raises NotFound or Conflict."""
    with transaction.atomic():
        endpoint = endpoint_locked(endpoint_id)
        active = endpoint.active_revision
        if active is None:
            raise Conflict(_("Nothing serves yet that could be restarted."), code="nothing_active")
        spec = EngineSpec.from_json(active.spec)
        note = _("Restart of revision %(number)s") % {"number": active.number}
        revision = revision_create(endpoint=endpoint, spec=spec, gpus=active.gpus, actor=actor, note=note)
        return rollout_begin(endpoint=endpoint, revision=revision, actor=actor, action="endpoint.restart")


def rollout_begin(
    *, endpoint: Endpoint, revision: Revision, actor: Actor, action: str, gate: Mapping[str, Any] | None = None
) -> Rollout:
    """Begin a rollout in the caller's transaction, who holds the endpoint locked. Raises Conflict when it serves already.

    gate: see `revision_deploy`. Raises InvalidInput for one that makes no sense.
    """
    if revision.pk == endpoint.active_revision_id and endpoint.target_revision_id == revision.pk:
        raise Conflict(_("Revision %(number)s serves already.") % {"number": revision.number}, code="already_active")
    at = now()
    under_way = Rollout.objects.filter(endpoint=endpoint, ended_at=None).first()
    if under_way is not None:
        rollout_end(endpoint, under_way, RolloutState.CANCELLED, at=at, reason="superseded")
    rollout = Rollout.objects.create(
        endpoint=endpoint,
        from_revision=endpoint.active_revision,
        to_revision=revision,
        started_at=at,
        deadline_at=at + timedelta(seconds=endpoint.rollout_deadline_seconds),
        gate=gate_read(gate),
        actor_name=actor.name[:200],
    )
    endpoint.target_revision = revision
    endpoint.save(update_fields=["target_revision"])
    before = endpoint.active_revision.number if endpoint.active_revision else None
    audit(
        actor=actor, action=action, target=endpoint, target_name=endpoint.name,
        before={"revision": before}, after={"revision": revision.number},
    )  # fmt: skip
    _write_event(endpoint, rollout, "rollout.started", Severity.INFO)
    endpoint_wake({endpoint.pk}, at=at)
    return rollout


def rollout_end(
    endpoint: Endpoint, rollout: Rollout, to: RolloutState, *, at: datetime, reason: str = "", detail: str = ""
) -> None:
    """End a rollout in the caller's transaction: its revision is active from now on, or the one before stays."""
    rollout_transition(rollout, to)
    rollout.reason, rollout.detail, rollout.ended_at = reason, detail[:500], at
    rollout.save(update_fields=["reason", "detail", "ended_at"])
    revision = rollout.to_revision
    if to == RolloutState.SUCCEEDED:
        revision.state = RevisionState.GOOD
        endpoint.active_revision = revision
    elif to in {RolloutState.RETURNED, RolloutState.FAILED}:
        revision.state, revision.failure, revision.failure_line = RevisionState.FAILED, reason, detail[:500]
    endpoint.target_revision = endpoint.active_revision
    revision.save(update_fields=["state", "failure", "failure_line"])
    endpoint.save(update_fields=["active_revision", "target_revision"])
    endpoint_reroute(endpoint)
    is_bad = to in {RolloutState.RETURNED, RolloutState.FAILED}
    _write_event(endpoint, rollout, f"rollout.{to}", Severity.WARNING if is_bad else Severity.INFO)


def rollout_transition(rollout: Rollout, to: RolloutState) -> None:
    """Change a rollout's state by the table. Raises Conflict."""
    before = RolloutState(rollout.state)
    if to not in ROLLOUT_TRANSITIONS[before]:
        raise Conflict(
            _("This rollout is “%(before)s” and cannot become “%(to)s”.") % {"before": before.label, "to": to.label},
            code="transition_refused",
        )
    rollout.state = to
    rollout.save(update_fields=["state"])


def rollout_pause(*, endpoint_id: int, actor: Actor) -> Rollout:
    """Leave old and new replicas as they are until it is resumed. Raises NotFound or Conflict (none is under way)."""
    return _steer(endpoint_id, actor, RolloutState.PAUSED, "endpoint.pause")


def rollout_resume(*, endpoint_id: int, actor: Actor) -> Rollout:
    """Go on with a paused rollout; its deadline starts anew. Raises NotFound or Conflict."""
    return _steer(endpoint_id, actor, RolloutState.RUNNING, "endpoint.resume")


def rollout_cancel(*, endpoint_id: int, actor: Actor) -> Rollout:
    """Return to the revision before. Raises NotFound or Conflict."""
    return _steer(endpoint_id, actor, RolloutState.CANCELLED, "endpoint.cancel")


def _steer(endpoint_id: int, actor: Actor, to: RolloutState, action: str) -> Rollout:
    at = now()
    with transaction.atomic():
        endpoint = endpoint_locked(endpoint_id)
        rollout = Rollout.objects.filter(endpoint=endpoint, ended_at=None).select_related("to_revision").first()
        if rollout is None:
            raise Conflict(_("No rollout is under way."), code="no_rollout")
        if to == RolloutState.CANCELLED:
            rollout_end(endpoint, rollout, to, at=at, reason="user")
        else:
            rollout_transition(rollout, to)
            rollout.deadline_at = at + timedelta(seconds=endpoint.rollout_deadline_seconds)
            rollout.save(update_fields=["deadline_at"])
        after = {"revision": rollout.to_revision.number, "state": str(to)}
        audit(actor=actor, action=action, target=endpoint, target_name=endpoint.name, after=after)
        endpoint_wake({endpoint.pk}, at=at)
    return rollout


def _write_event(endpoint: Endpoint, rollout: Rollout, kind: str, severity: Severity) -> None:
    event_write(
        kind=kind,
        severity=severity,
        subject_kind="endpoint",
        subject_id=endpoint.pk,
        subject_name=endpoint.name,
        data={
            "revision": rollout.to_revision.number,
            "from": rollout.from_revision.number if rollout.from_revision else None,
            "reason": rollout.reason,
            "detail": rollout.detail,
            "by": rollout.actor_name,
        },
    )
