"""What to do next about an endpoint, from what is wanted and what was observed: one pure function.

It is asked again after everything that happens, so it names the steps that may be taken now and nothing that comes later.
Rules: old and new replicas together are at most the wanted number and one more (the surge); a replica that serves is taken
away only while enough others serve, or, when there is no room for one more, one at a time so that its card can be used;
whatever is not heard of is not assumed to have stopped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

SURGE: Final = 1
# After a replica failed outside a rollout, the next try waits this long, twice as long after each further failure of an hour.
FIRST_RETRY: Final = timedelta(seconds=30)
LONGEST_RETRY: Final = timedelta(minutes=30)
# A card looks free when its memory is, which its agent tells a report or two after the replica on it has stopped.
SETTLING: Final = timedelta(seconds=45)

NO_FREE_GPU: Final = "no_free_gpu"
RETRY_LATER: Final = "retry_later"
NOWHERE_TO_MOVE: Final = "nowhere_to_move"


class Gate(StrEnum):
    """How the gate of a rollout stands: no request goes to its replicas while it is not open.

    HELD: its test proved nothing, was invalid, or was called off; somebody has to run it again.
    """

    OPEN = "open"
    WAITING = "waiting"
    RUNNING = "running"
    HELD = "held"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ReplicaView:
    """A replica that has not ended. is_run: the panel still wants it. is_lost: its server is silent for too long.

    is_failed: its agent gave it up, with `reason`. is_leaving: its server is being emptied. is_gated: it takes no requests yet.
    """

    id: int
    revision: int
    created_at: datetime
    is_run: bool = True
    is_ready: bool = False
    is_failed: bool = False
    is_lost: bool = False
    is_leaving: bool = False
    is_gated: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RolloutView:
    """A rollout that is open: to which revision, until when its next replica must be ready, and whether it rests."""

    to_revision: int
    deadline_at: datetime
    is_paused: bool = False
    gate: Gate = Gate.OPEN


@dataclass(frozen=True, slots=True)
class EndpointView:
    """An endpoint as planning sees it.

    room: how many more replicas of a revision could be placed right now. failures, failed_at: replicas that failed within the
    last hour outside a rollout, and when the last one did. freed_at: when one of its replicas gave its card back last.
    """

    desired: int
    active: int | None
    replicas: Sequence[ReplicaView]
    room: Mapping[int, int]
    rollout: RolloutView | None = None
    is_deleting: bool = False
    failures: int = 0
    failed_at: datetime | None = None
    freed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Put a new replica of this revision somewhere."""

    revision: int


@dataclass(frozen=True, slots=True)
class Drain:
    """Send it nothing new, let it finish, stop it."""

    replica: int


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop it: it serves nothing."""

    replica: int


@dataclass(frozen=True, slots=True)
class Lose:
    """Count on it no more; if its server comes back, it is stopped there."""

    replica: int


@dataclass(frozen=True, slots=True)
class Test:
    """Begin the test of the gate: the new replicas are ready."""


@dataclass(frozen=True, slots=True)
class Open:
    """The test has passed: let requests through to the new replicas."""


@dataclass(frozen=True, slots=True)
class Finish:
    """The rollout has succeeded."""


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The rollout has failed: return to the revision before. replica: the one that tells why, if one does."""

    reason: str
    replica: int | None = None


@dataclass(frozen=True, slots=True)
class Remove:
    """Nothing of a deleted endpoint is left."""


Action = Place | Drain | Stop | Lose | Test | Open | Finish | GiveUp | Remove


@dataclass(slots=True)
class Plan:
    """Steps to take now; `blocked`: why a wanted replica is missing and none is placed; `again_at`: look again by then."""

    actions: list[Action] = field(default_factory=list)
    blocked: str = ""
    again_at: datetime | None = None


def plan(view: EndpointView, *, now: datetime) -> Plan:
    """Return what may be done now. See the module's docstring for the rules."""
    steps = Plan()
    steps.actions += [Lose(each.id) for each in view.replicas if each.is_run and each.is_lost]
    kept = [each for each in view.replicas if each.is_run and not each.is_lost]
    if view.is_deleting:
        _empty(steps, view, kept)
        return steps
    rollout = view.rollout
    if rollout is not None:
        broken = next((each for each in kept if each.revision == rollout.to_revision and each.is_failed), None)
        if broken is not None:
            steps.actions.append(GiveUp(broken.reason or "failed", broken.id))
            return steps
        if rollout.gate is not Gate.OPEN:
            from endpoints.rollout.holding import hold  # which stands on this module

            hold(steps, view, rollout, kept, now)
            return steps
        if any(each.is_gated for each in kept):
            steps.actions.append(Open())  # they count from the next look on
            return steps
        if not rollout.is_paused:
            _roll(steps, view, rollout, kept, now)
            return steps
    _keep(steps, view, kept, now)
    return steps


def _away(replica: ReplicaView) -> Action:
    """Take a replica away as gently as it needs."""
    return Drain(replica.id) if replica.is_ready else Stop(replica.id)


def _empty(steps: Plan, view: EndpointView, kept: Sequence[ReplicaView]) -> None:
    steps.actions += [_away(each) for each in kept]
    if not view.replicas:
        steps.actions.append(Remove())


def _expendable(replica: ReplicaView) -> tuple[bool, bool, float]:
    """Order by who goes first: those that do not serve, those that leave anyway, the newest."""
    return replica.is_ready, not replica.is_leaving, -replica.created_at.timestamp()


def _keep(steps: Plan, view: EndpointView, kept: Sequence[ReplicaView], now: datetime) -> None:
    """Have the wanted number of replicas of the active revision, and of a paused rollout what there is."""
    steps.actions += [Stop(each.id) for each in kept if each.is_failed]
    sound = [each for each in kept if not each.is_failed]
    if view.active is None:
        steps.actions += [_away(each) for each in sound if view.rollout is None]
        return
    mine = [each for each in sound if each.revision == view.active or view.rollout is not None]
    others = [each for each in sound if each not in mine]
    staying = [each for each in mine if not each.is_leaving]
    leaving = [each for each in mine if each.is_leaving]
    missing = view.desired - len(staying)
    if missing > 0:
        _fill(steps, view, missing, is_moving=bool(leaving), now=now)
    extra = sorted(staying, key=_expendable)[: max(-missing, 0)]
    steps.actions += [_away(each) for each in extra]
    serving = sum(each.is_ready for each in sound) - sum(each.is_ready for each in extra)
    _release(steps, view.desired, serving=serving, candidates=[*others, *leaving])


def _fill(steps: Plan, view: EndpointView, missing: int, *, is_moving: bool, now: datetime) -> None:
    """Place what is missing, as far as there is room and failures do not counsel patience."""
    assert view.active is not None  # noqa: S101  # the caller looked
    retry_at = _retry_at(view)
    if retry_at is not None and retry_at > now:
        steps.blocked, steps.again_at = RETRY_LATER, retry_at
        return
    placed = min(missing, view.room.get(view.active, 0))
    steps.actions += [Place(view.active)] * placed
    if placed < missing:
        steps.blocked = NOWHERE_TO_MOVE if is_moving else NO_FREE_GPU


def _retry_at(view: EndpointView) -> datetime | None:
    if view.failed_at is None or view.failures == 0:
        return None
    wait: timedelta = FIRST_RETRY * 2 ** min(view.failures - 1, 10)
    return view.failed_at + min(wait, LONGEST_RETRY)


def _release(steps: Plan, desired: int, *, serving: int, candidates: Sequence[ReplicaView]) -> None:
    """Take away replicas that are to go, while enough others serve; those that do not serve go at once."""
    for replica in sorted(candidates, key=_expendable):
        if not replica.is_ready:
            steps.actions.append(Stop(replica.id))
        elif serving > desired:
            steps.actions.append(Drain(replica.id))
            serving -= 1


def _roll(steps: Plan, view: EndpointView, rollout: RolloutView, kept: Sequence[ReplicaView], now: datetime) -> None:
    """Go on with a rollout: place new ones, let old ones go, finish or give up."""
    new = [each for each in kept if each.revision == rollout.to_revision]
    old = [each for each in kept if each.revision != rollout.to_revision]
    ready_new = sum(each.is_ready for each in new)
    missing = view.desired - len(new)
    room = view.room.get(rollout.to_revision, 0)
    settled_at = _settled_at(view, now)
    # As many as there are cards for is enough to go over: what is missing then is told of the endpoint, not of the revision.
    is_full = room == 0 and 0 < len(new) == ready_new and settled_at <= now and not _is_freeing(view)
    if not old and (ready_new >= view.desired or is_full):
        extra = sorted(new, key=_expendable)[: max(-missing, 0)]
        steps.actions += [*(_away(each) for each in extra), Finish()]
        return
    if now >= rollout.deadline_at and ready_new < view.desired:
        steps.actions.append(GiveUp("deadline" if new else NO_FREE_GPU))
        return
    steps.again_at = rollout.deadline_at if settled_at <= now else min(rollout.deadline_at, settled_at)
    within = view.desired + (SURGE if old else 0) - len(new) - len(old)
    placed = max(min(missing, within, room), 0)
    steps.actions += [Place(rollout.to_revision)] * placed
    if missing > 0 and room == 0:
        steps.blocked = NO_FREE_GPU
    serving = ready_new + sum(each.is_ready for each in old)
    _release(steps, view.desired, serving=serving, candidates=old)
    is_waiting = ready_new < len(new) or settled_at > now or _is_freeing(view)
    if missing > 0 and room == 0 and not is_waiting:
        _make_room(steps, old)


def _make_room(steps: Plan, old: Sequence[ReplicaView]) -> None:
    """Without room for one more, give up one old replica for its card: one at a time, when nothing else is awaited."""
    if old and not any(isinstance(action, Drain | Stop) for action in steps.actions):
        steps.actions.append(_away(min(old, key=_expendable)))


def _is_freeing(view: EndpointView) -> bool:
    """Say whether a replica is about to give its card back."""
    return any(not each.is_run and not each.is_lost for each in view.replicas)


def _settled_at(view: EndpointView, now: datetime) -> datetime:
    """Return from when on a card that was given back is not waited for any more: at once when another replica has taken it."""
    freed_at = view.freed_at
    is_taken = freed_at is not None and any(each.created_at > freed_at for each in view.replicas)
    return now if freed_at is None or is_taken else freed_at + SETTLING
