"""Following a go-live test: its orders handed out, what places tell of taken once, the next step said, the end noticed."""

from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
from django.db import transaction
from django.utils.translation import gettext as _

from fleet.agent.load.order import LoadAnswer, LoadOrder, LoadPiece
from fleet.agent.probes.target import Target
from fleet.models import Job
from monitoring.golive.saturation import next_concurrency
from monitoring.golive_runs.asked import STEP_SECONDS, Asked
from monitoring.golive_runs.enums import PartState, RunState
from monitoring.golive_runs.models import GoLivePart, GoLivePiece, GoLiveRun
from monitoring.golive_runs.stepping import step_as_json, step_of, steps_from
from monitoring.golive_runs.telling import run_tell
from monitoring.golive_runs.verdict import run_judge
from monitoring.probing.tables import PANEL
from panel.core.clock import now
from panel.core.errors import NotFound

# A place that began tells of itself every two seconds, and tries for a minute.
SILENT: Final = timedelta(seconds=120)
# A prober of the panel's looks every two seconds.
BEGIN_AT_PANEL: Final = timedelta(minutes=3)
OPEN: Final = (PartState.PENDING, PartState.RUNNING)


def _part(part_id: int, server_id: int) -> GoLivePart:
    """Return an open part of an open run, both locked. Raises NotFound: the load is not wanted any more."""
    found = GoLivePart.objects.filter(pk=part_id, server_id=server_id).values_list("run_id", flat=True).first()
    run = GoLiveRun.objects.select_for_update().filter(pk=found or 0, ended_at=None).first()
    part = GoLivePart.objects.select_for_update().filter(pk=part_id, state__in=OPEN).first()
    if run is None or part is None:
        raise NotFound(_("This load is not wanted any more."))
    part.run = run
    return part


def golive_order(*, part_id: int, server_id: int) -> LoadOrder:
    """Return what a place is to send, and note that it begins. Raises NotFound."""
    at = now()
    with transaction.atomic():
        part = _part(part_id, server_id)
        run = part.run
        part.state, part.heard_at = PartState.RUNNING, at
        part.save(update_fields=["state", "heard_at"])
        if run.state == RunState.PENDING:
            run.state, run.started_at = RunState.RUNNING, at
            run.save(update_fields=["state", "started_at"])
        run_tell(run)
    return _order(part, msgspec.convert(run.asked, Asked))


def _order(part: GoLivePart, asked: Asked) -> LoadOrder:
    plan: dict[str, Any] = part.plan
    # Steps are of one place: several at once would add up to something that nobody asked for.
    is_first = part.pk == part.run.parts.order_by("pk").values_list("pk", flat=True).first()
    return LoadOrder(
        part=part.pk,
        targets=[msgspec.convert({**target, "bearer": part.bearer}, Target) for target in part.targets],
        at_seconds=plan["at_seconds"],
        tokens=plan["tokens"],
        warm_up=len(plan["at_seconds"]) - plan["n"],
        step_seconds=STEP_SECONDS * part.run.time_scale if asked.has_steps and is_first else 0.0,
        most_seconds=asked.most_seconds,
        most_tokens=asked.most_tokens,
    )


def golive_piece(*, piece: LoadPiece, server_id: int) -> LoadAnswer:
    """Take what a place tells, once; say whether to go on, and with which step. Raises NotFound when nobody wants it."""
    at = now()
    with transaction.atomic():
        part = _part(piece.part, server_id)
        _stored, is_new = GoLivePiece.objects.get_or_create(
            part=part, sequence=piece.sequence, defaults={"shots": [msgspec.to_builtins(shot) for shot in piece.shots]}
        )
        if is_new:
            part.sent += len(piece.shots)
            part.failed += sum(not shot.is_ok for shot in piece.shots)
        part.phase, part.seconds, part.stopped, part.heard_at = piece.phase, piece.seconds, piece.stopped, at
        part.loop_lag_ms = piece.loop_lag_p99_ms if piece.loop_lag_p99_ms is not None else part.loop_lag_ms
        answer = LoadAnswer()
        if piece.phase == "steps" and piece.is_step_over:
            answer.concurrency = _next_step(part, piece.step)
        if piece.phase == "over":
            part.state = PartState.ENDED
        part.save()
        if piece.phase == "over":
            run_end_if_over(part.run, at=at)
        run_tell(part.run)
    return answer


def _next_step(part: GoLivePart, step: int) -> int:
    """Keep what a step came to; return the concurrency of the next one, 0 for none."""
    asked = msgspec.convert(part.run.asked, Asked)
    if step:
        shots = [shot for shots in part.pieces.values_list("shots", flat=True) for shot in shots if shot[1] == step]
        kept = [each for each in part.steps if each["concurrency"] != step]
        part.steps = [*kept, step_as_json(step_of(step, shots, asked))]
    return next_concurrency(steps_from(part.steps), asked.most_concurrency) or 0


def run_end_if_over(run: GoLiveRun, *, at: datetime) -> bool:
    """Judge a run when all of its places are done, in the caller's transaction; says whether it ended."""
    if run.ended_at is not None or run.parts.filter(state__in=OPEN).exists():
        return False
    run_judge(run, at=at)
    return True


def golive_tick(*, at: datetime) -> int:
    """Give up on places that nobody hears of, and end runs; returns how many ended. Repeatable."""
    ended = 0
    for run_id in GoLiveRun.objects.filter(ended_at=None).values_list("pk", flat=True):
        with transaction.atomic():
            run = GoLiveRun.objects.select_for_update().filter(pk=run_id, ended_at=None).first()
            if run is None:
                continue
            for part in run.parts.select_for_update().filter(state__in=OPEN):
                detail = _lost(part, run, at)
                if detail:
                    part.state, part.detail = PartState.LOST, detail[:300]
                    part.save(update_fields=["state", "detail"])
            if run_end_if_over(run, at=at):
                ended += 1
                run_tell(run)
    return ended


def _lost(part: GoLivePart, run: GoLiveRun, at: datetime) -> str:
    """Return why a place is not waited for any longer, as a code; empty while it is."""
    if at >= run.deadline_at:
        return "deadline"
    if part.heard_at is not None and at - part.heard_at > SILENT:
        return "silent"
    if part.server_id == PANEL:
        return "no_prober" if part.heard_at is None and at - run.created_at > BEGIN_AT_PANEL else ""
    job = Job.objects.filter(pk=part.job_id or 0).first()
    if job is None or job.ended_at is None:
        return ""
    # An agent that has done its job has told of its last piece before.
    return f"{job.reason or job.state}: {job.detail}".rstrip(": ")
