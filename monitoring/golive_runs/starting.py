"""Beginning a go-live test: with consent, within caps, one of a subject at a time; and calling it off."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final

import msgspec
from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from fleet.agent.probes.target import Target
from fleet.enums import JobKind
from fleet.models import Job
from fleet.services.jobs import job_cancel, job_create
from monitoring.golive.judge import environment_hash
from monitoring.golive.report import plan_as_json
from monitoring.golive_runs.asked import Asked, Estimate, check_caps, estimate_of, plans_of
from monitoring.golive_runs.enums import RunState
from monitoring.golive_runs.models import GoLivePart, GoLiveRun
from monitoring.golive_runs.telling import run_tell
from monitoring.probing.tables import PANEL
from panel.accounts.audit import Actor, audit
from panel.core.clock import now
from panel.core.errors import Conflict, FleetdeckError, InvalidInput, NotFound

BEGIN_WITHIN: Final = timedelta(minutes=16)
KEPT_OF_A_SUBJECT: Final = 50


@dataclass(frozen=True, slots=True)
class Place:
    """From where is loaded (server_id 0: the panel), whom, and with which share of the peak. bearer: of all its targets."""

    server_id: int
    targets: Sequence[Target]
    share: float
    bearer: str = ""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is tested. facts: what it is made of. cost_per_hour: of its cards, by currency; is_cost_known: of all of them."""

    kind: str
    id: int
    name: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    cost_per_hour: Mapping[str, Decimal] = field(default_factory=dict)
    is_cost_known: bool = False


def golive_estimate(*, asked: Asked, subject: Subject, shares: Sequence[float]) -> tuple[Estimate, dict[str, Decimal]]:
    """Return what a test will take, and what the subject's cards cost meanwhile. Raises InvalidInput: over a cap too."""
    plans = plans_of(asked, shares=shares, seed=1, time_scale=settings.GOLIVE_TIME_SCALE)
    estimate = estimate_of(asked, plans)
    hours = Decimal(str(estimate.seconds)) / 3600
    cost = {code: (amount * hours) for code, amount in subject.cost_per_hour.items()}
    check_caps(asked, estimate, cost, is_cost_known=subject.is_cost_known)
    return estimate, cost


def golive_start(
    *,
    actor: Actor,
    asked: Asked,
    subject: Subject,
    places: Sequence[Place],
    consent: bool,
    rollout_id: int | None = None,
) -> GoLiveRun:
    """Begin a test. consent: that the subject is loaded as its callers would. Raises InvalidInput or Conflict."""
    if not consent:
        raise InvalidInput(
            _("It loads the endpoint as many callers would, for as long as its plan says: agree to that first."),
            field="consent",
        )
    if not places:
        raise InvalidInput(_("Choose a place from which it is loaded."), field="places")
    estimate, cost = golive_estimate(asked=asked, subject=subject, shares=[place.share for place in places])
    at, scale = now(), settings.GOLIVE_TIME_SCALE
    plans = plans_of(asked, shares=[place.share for place in places], seed=secrets.randbelow(2**31), time_scale=scale)
    try:
        with transaction.atomic():
            run = GoLiveRun.objects.create(
                subject_kind=subject.kind, subject_id=subject.id, subject_name=subject.name[:200],
                asked=msgspec.to_builtins(asked), facts=dict(subject.facts), environment_hash=environment_hash(subject.facts),
                estimate={**estimate.as_json(), "cost": {code: f"{amount:.4f}" for code, amount in cost.items()}},
                time_scale=scale, rollout_id=rollout_id, actor_name=actor.name[:200], created_at=at,
                deadline_at=at + BEGIN_WITHIN + timedelta(seconds=estimate.seconds * 1.5 + 120),
            )  # fmt: skip
            for place, plan in zip(places, plans, strict=True):
                _part_create(run, place, plan_as_json(plan), actor)
            _forget_old(subject)
            after = {"peak_per_second": asked.peak_per_second, "requests": estimate.requests, "tokens": estimate.tokens}
            audit(actor=actor, action="golive.start", target=run, target_name=subject.name, after=after)
            run_tell(run)
    except IntegrityError:
        raise Conflict(_("A go-live test of it is under way. Wait for it, or cancel it."), code="in_progress") from None
    return run


def _part_create(run: GoLiveRun, place: Place, plan: dict[str, Any], actor: Actor) -> None:
    targets = [msgspec.to_builtins(target) for target in place.targets]
    for target in targets:
        target.pop("bearer", None)
    part = GoLivePart.objects.create(
        run=run, server_id=place.server_id, targets=targets, bearer=place.bearer, plan=plan
    )
    if place.server_id != PANEL:
        arguments = {"part": part.pk}
        context = {"run": run.pk, "subject": run.subject_name}
        job = job_create(
            server_id=place.server_id, kind=JobKind.LOAD, actor=actor, arguments=arguments, context=context
        )
        part.job_id = job.pk
        part.save(update_fields=["job_id"])


def _forget_old(subject: Subject) -> None:
    """Keep a subject's newest tests."""
    over = GoLiveRun.objects.filter(subject_kind=subject.kind, subject_id=subject.id).exclude(ended_at=None)
    stale = list(over.order_by("-pk").values_list("pk", flat=True)[KEPT_OF_A_SUBJECT:])
    GoLiveRun.objects.filter(pk__in=stale).delete()


def golive_cancel(*, run_id: int, actor: Actor) -> GoLiveRun:
    """Call a test off: its places stop within seconds. One that is cancelled is left so. Raises NotFound or Conflict (over)."""
    with transaction.atomic():
        run = GoLiveRun.objects.select_for_update().filter(pk=run_id).first()
        if run is None:
            raise NotFound(_("There is no such go-live test."))
        if run.state == RunState.ENDED:
            raise Conflict(_("This test is over."), code="over")
        if run.state != RunState.CANCELLED:
            run.state, run.ended_at = RunState.CANCELLED, now()
            run.save(update_fields=["state", "ended_at"])
            audit(actor=actor, action="golive.cancel", target=run, target_name=run.subject_name)
            jobs_stop(run, actor)
            run_tell(run)
    return run


def jobs_stop(run: GoLiveRun, actor: Actor) -> None:
    """Call off what agents still do for a run, in the caller's transaction."""
    ids = [pk for pk in run.parts.values_list("job_id", flat=True) if pk is not None]
    for job_id in Job.objects.filter(pk__in=ids, ended_at=None).values_list("pk", flat=True):
        try:
            with transaction.atomic():
                job_cancel(job_id=job_id, actor=actor)
        except FleetdeckError:
            continue  # it ended meanwhile
