"""A deploy run: the rollout's replicas, the ten steps of one of them beside their usual times, its log, and why it failed."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any, Final

from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

from endpoints.engines.base import EngineSpec
from endpoints.engines.failures import Failure, failure_in
from endpoints.enums import ReplicaState, RolloutState
from endpoints.forecast import usual_starts
from endpoints.models import Endpoint, Gateway, Replica, ReplicaLog, Revision, Rollout
from endpoints.rollout.progress import Progress, Step, StepState, Told, done_count, marks_in, progress
from endpoints.selectors import replica_list, replica_log, rollout_list
from frontend.serving.words import STEP_OWNERS, STEP_TITLES, Said, reason_said
from panel.core.errors import NotFound

# Marks of a start stand at the beginning of a log; the rest is requests.
MARKED_BYTES: Final = 262_144
_TONES: Final[Mapping[StepState, str]] = {
    StepState.DONE: "ok",
    StepState.PASSED: "ok",
    StepState.SKIPPED: "silenced",
    StepState.CURRENT: "progress",
    StepState.FAILED: "critical",
    StepState.WAITING: "todo",
}


@dataclass(frozen=True, slots=True)
class StepRow:
    """One step for the page. usual: median seconds of the last five; note: what it waits for or pulls."""

    progress: Progress
    title: str
    word: str
    tone: str
    owner: str
    usual: float | None
    note: str = ""

    @property
    def is_slow(self) -> bool:
        """Say whether it takes more than twice its usual time."""
        seconds, usual = self.progress.seconds, self.usual
        is_open = self.progress.state == StepState.CURRENT
        return is_open and seconds is not None and usual is not None and seconds > max(2 * usual, usual + 10)


def _word(state: StepState) -> str:
    return {
        StepState.DONE: _("done"),
        StepState.PASSED: _("done, its time was not told"),
        StepState.SKIPPED: _("not needed"),
        StepState.CURRENT: _("under way"),
        StepState.FAILED: _("failed"),
        StepState.WAITING: _("waits"),
    }[state]


def _lines(pieces: Iterable[ReplicaLog]) -> list[tuple[datetime, str]]:
    return [(piece.received_at, line) for piece in pieces for line in piece.text.splitlines()]


def told_of(
    replica: Replica, *, requested_at: datetime, pieces: Iterable[ReplicaLog], routed_at: datetime | None
) -> Told:
    """Return what is known of a replica's start."""
    states = {name: at for name, text in replica.steps.items() if (at := parse_datetime(str(text))) is not None}
    is_given_up = replica.state in {ReplicaState.FAILED, ReplicaState.LOST} and replica.ready_at is None
    return Told(
        requested_at=requested_at,
        states=states,
        marks=marks_in(_lines(pieces)),
        is_container=replica.runtime == "container",
        has_weights=bool(replica.revision.spec.get("model")),
        routed_at=routed_at,
        failed_at=replica.state_changed_at if is_given_up else None,
    )


def usual_seconds(revision: Revision, *, before: datetime, at: datetime) -> dict[Step, float]:
    """Return the median time of each step over the last five starts of the same engine and model. Two queries."""
    starts = usual_starts(engine=revision.engine, model=str(revision.spec.get("model", "")), before=before)
    pieces: defaultdict[int, list[ReplicaLog]] = defaultdict(list)
    for piece in ReplicaLog.objects.filter(replica__in=starts, offset__lt=MARKED_BYTES).order_by("offset"):
        pieces[piece.replica_id].append(piece)
    times: defaultdict[Step, list[float]] = defaultdict(list)
    for replica in starts:
        replica.revision = revision  # the same engine and model: all that is asked of it
        told = told_of(replica, requested_at=replica.created_at, pieces=pieces[replica.pk], routed_at=replica.ready_at)
        for row in progress(told, now=at):
            if row.state == StepState.DONE and row.seconds is not None:
                times[row.step].append(row.seconds)
    return {step: median(seconds) for step, seconds in times.items()}


def rollout_found(endpoint_id: int, rollout_id: int) -> Rollout:
    """Return one rollout of an endpoint. Raises NotFound."""
    found = rollout_list(endpoint=endpoint_id).select_related("endpoint", "from_revision", "to_revision")
    rollout = found.filter(pk=rollout_id).first()
    if rollout is None:
        raise NotFound(_("There is no such rollout."))
    return rollout


def replicas_of(rollout: Rollout) -> list[Replica]:
    """Return the replicas that a rollout started, the newest first."""
    found = replica_list(endpoint=rollout.endpoint_id).filter(
        revision=rollout.to_revision_id, created_at__gte=rollout.started_at
    )
    return list(found.filter(created_at__lte=rollout.ended_at) if rollout.ended_at else found)


def shown_of(replicas: Sequence[Replica], wanted: str) -> Replica | None:
    """Return the replica that the page follows: the one asked for, else one that failed, else the one least far."""
    for each in replicas:
        if str(each.pk) == wanted:
            return each
    broken = [each for each in replicas if each.state == ReplicaState.FAILED]
    starting = [each for each in replicas if each.ready_at is None]
    return next(iter([*broken, *starting, *replicas]), None)


def _routed_at(replica: Replica, endpoint: Endpoint) -> datetime | None:
    """Return when gateways began to send it requests; None while none of them has applied that yet. One query at most."""
    if replica.ready_at is None:
        return None
    if replica.state != ReplicaState.READY:
        return replica.ready_at
    has_applied = Gateway.objects.filter(applied_version__gte=endpoint.routing_version).exists()
    return replica.ready_at if has_applied else None


def steps_of(rollout: Rollout, replica: Replica | None, at: datetime) -> list[StepRow]:
    """Return the ten steps of a replica of a rollout; without one, how long capacity is looked for."""
    usual = usual_seconds(rollout.to_revision, before=rollout.started_at, at=at)
    gpus = rollout.to_revision.gpus
    if replica is None:
        has_ended = rollout.ended_at is not None
        told = Told(rollout.started_at, {}, {}, failed_at=rollout.ended_at if has_ended else None)
        note = reason_said(rollout.endpoint.phase_reason).sentence if not has_ended else ""
        return [
            _row(each, usual, note if each.state == StepState.CURRENT else "", gpus) for each in progress(told, now=at)
        ]
    pieces = replica_log(replica=replica.pk).filter(offset__lt=MARKED_BYTES)
    told = told_of(
        replica, requested_at=rollout.started_at, pieces=pieces, routed_at=_routed_at(replica, rollout.endpoint)
    )
    note = "" if replica.percent is None else f"{replica.percent}%"
    return [
        _row(each, usual, note if each.step == Step.IMAGE and each.state == StepState.CURRENT else "", gpus)
        for each in progress(told, now=at)
    ]


def _row(row: Progress, usual: Mapping[Step, float], note: str, gpus: int) -> StepRow:
    return StepRow(
        progress=row,
        title=str(STEP_TITLES[row.step]) if gpus or row.step != Step.LOADED else _("Loaded"),
        word=_word(row.state),
        tone=_TONES[row.state],
        owner=str(STEP_OWNERS[row.step]),
        usual=usual.get(row.step) if row.state != StepState.SKIPPED else None,
        note=note,
    )


@dataclass(frozen=True, slots=True)
class ErrorCard:
    """Why a run failed. failure: of the log, when a line says it; said: of the agent's reason; line: of the log."""

    said: Said
    line: str
    failure: Failure | None

    @property
    def changes(self) -> list[tuple[str, str]]:
        """Return what would help, as name and value."""
        found = self.failure.suggestions if self.failure is not None else {}
        return [(name, str(value).lower() if isinstance(value, bool) else str(value)) for name, value in found.items()]


def error_of(rollout: Rollout, replica: Replica | None) -> ErrorCard | None:
    """Return the card of a run that failed, None while nothing has."""
    is_over = rollout.state in {RolloutState.FAILED, RolloutState.RETURNED}
    has_failed = replica is not None and replica.state == ReplicaState.FAILED
    if not is_over and not has_failed:
        return None
    reason = replica.reason if replica is not None and replica.reason else rollout.reason
    lines = [line for _at, line in _lines(replica_log(replica=replica.pk))] if replica is not None else []
    failure = failure_in(reversed(lines[-5_000:]), EngineSpec.from_json(rollout.to_revision.spec))
    if failure is not None:
        return ErrorCard(Said(failure.sentence, failure.next_step), failure.line, failure)
    line = (replica.detail if replica is not None else "") or rollout.detail
    return ErrorCard(reason_said(reason), line, None)


def _ended_before(rollout: Rollout, replica: Replica | None) -> int:
    """Return how often the replica that is still awaited has ended and was started again."""
    if rollout.ended_at is not None or replica is None or replica.ready_at is not None:
        return 0
    return replica.restarts if replica.state != ReplicaState.FAILED else 0


def run_context(rollout: Rollout, *, wanted: str, at: datetime) -> dict[str, Any]:
    """Return what moves of a run: its steps, its replicas, why it failed."""
    replicas = replicas_of(rollout)
    replica = shown_of(replicas, wanted)
    steps = steps_of(rollout, replica, at)
    return {
        "rollout": rollout,
        "endpoint": rollout.endpoint,
        "replicas": replicas,
        "replica": replica,
        "steps": steps,
        "done": done_count([row.progress for row in steps]),
        "error": error_of(rollout, replica),
        "ended_before": _ended_before(rollout, replica),
        "elapsed": ((rollout.ended_at or at) - rollout.started_at).total_seconds(),
    }
