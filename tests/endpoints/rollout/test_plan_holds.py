"""Whatever happens, planning keeps its rules and comes to rest: a small fleet is played against it."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from endpoints.rollout.plan import (
    SURGE,
    Drain,
    EndpointView,
    Finish,
    GiveUp,
    Lose,
    Place,
    ReplicaView,
    RolloutView,
    Stop,
    plan,
)

START = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
DEADLINE = timedelta(minutes=30)


@dataclass
class Fleet:
    """So many cards, one for each replica; what is drained or stopped gives its card back when `finish` says so."""

    cards: int
    desired: int
    active: int | None = None
    target: int = 1
    newest: int = 1
    is_paused: bool = False
    now: datetime = START
    deadline: datetime = START + DEADLINE
    replicas: list = field(default_factory=list)
    failed: list = field(default_factory=list)
    made: int = 0
    cooling: int = 0  # cards that were given back and do not look free yet
    freed_at: datetime | None = None

    @property
    def is_rolling(self):
        return self.target != self.active

    def view(self):
        free = self.cards - len(self.replicas) - self.cooling
        recent = [at for at in self.failed if at > self.now - timedelta(hours=1)]
        return EndpointView(
            desired=self.desired,
            active=self.active,
            replicas=self.replicas,
            room=dict.fromkeys(range(self.newest + 1), free),
            rollout=RolloutView(self.target, self.deadline, self.is_paused) if self.is_rolling else None,
            failures=len(recent),
            failed_at=max(recent, default=None),
            freed_at=self.freed_at,
        )

    def step(self):
        """Carry out one plan; returns whether it asked for anything."""
        decided = plan(self.view(), now=self.now)
        for action in decided.actions:
            self.act(action)
        return bool(decided.actions)

    def act(self, action):
        match action:
            case Place(revision):
                self.made += 1
                assert len(self.replicas) + self.cooling < self.cards, "placed without a card"
                self.replicas.append(ReplicaView(self.made, revision, self.now))
                running = [each for each in self.replicas if each.is_run and not each.is_lost and not each.is_failed]
                assert len(running) <= self.desired + SURGE + sum(each.is_leaving for each in running)
            case Drain(number) | Stop(number):
                found = self.find(number)
                assert found.is_run, "taken away twice"
                assert found.is_ready == isinstance(action, Drain)
                self.put(replace(found, is_run=False))
            case Lose(number):
                self.put(replace(self.find(number), is_run=False))
            case Finish():
                self.active = self.target
            case GiveUp():
                self.target = self.active

    def find(self, number):
        return next(each for each in self.replicas if each.id == number)

    def put(self, changed):
        self.replicas = [changed if each.id == changed.id else each for each in self.replicas]

    def finish(self):
        """What was to stop has stopped; its card looks free some seconds later."""
        left = [each for each in self.replicas if each.is_run or each.is_lost]
        if len(left) < len(self.replicas):
            self.freed_at = self.now
            self.cooling += len(self.replicas) - len(left)
        self.replicas = left

    def cool(self):
        """Cards that were given back look free."""
        self.cooling = 0

    def answer(self):
        """What was started is ready."""
        self.replicas = [
            replace(each, is_ready=True) if each.is_run and not each.is_failed and not each.is_lost else each
            for each in self.replicas
        ]

    def serving(self):
        return [each for each in self.replicas if each.is_run and each.is_ready and not each.is_lost]


events = st.lists(
    st.sampled_from(["step", "step", "step", "answer", "finish", "fail", "lose", "deploy", "scale", "pause", "wait"]),
    max_size=60,
)


def happen(fleet, event, number):
    if event == "step":
        fleet.step()
    elif event == "answer":
        fleet.answer()
    elif event == "finish":
        fleet.finish()
    elif event == "deploy":
        fleet.newest += 1
        fleet.target, fleet.is_paused, fleet.deadline = fleet.newest, False, fleet.now + DEADLINE
    elif event == "scale":
        fleet.desired = number % 4
    elif event == "pause":
        fleet.is_paused = not fleet.is_paused
    elif event == "wait":
        fleet.now += timedelta(minutes=7)
    elif fleet.replicas:
        chosen = fleet.replicas[number % len(fleet.replicas)]
        if event == "fail" and chosen.is_run:
            fleet.put(replace(chosen, is_failed=True, is_ready=False))
            fleet.failed.append(fleet.now)
        elif event == "lose":
            fleet.put(replace(chosen, is_lost=True, is_ready=False))


@given(st.integers(1, 6), st.integers(0, 3), events, st.randoms(use_true_random=False))
@settings(max_examples=300)
def test_it_comes_to_rest_with_what_is_wanted(cards, desired, story, random):
    fleet = Fleet(cards=cards, desired=desired)
    for event in story:
        happen(fleet, event, random.randrange(1000))
    fleet.is_paused = False
    fleet.replicas = [
        each for each in fleet.replicas if not each.is_lost
    ]  # silent servers are back, and stopped theirs
    for _round in range(60):
        fleet.cool()
        if fleet.target is None:  # nothing ever served: somebody deploys once more
            happen(fleet, "deploy", 0)
        fleet.step()
        fleet.answer()
        fleet.finish()
        fleet.now += timedelta(minutes=1)
    assert len(fleet.serving()) == min(fleet.desired, fleet.cards)
    if fleet.desired <= fleet.cards:
        assert fleet.target == fleet.active
        assert not fleet.step(), "it keeps asking for something"
    assert {each.revision for each in fleet.replicas} <= {fleet.active}


@given(st.integers(1, 4), st.integers(0, 3))
def test_a_rollout_never_takes_more_than_one_replica_away(desired, spare):
    fleet = Fleet(cards=desired + spare, desired=desired)
    for _round in range(10):
        fleet.step()
        fleet.answer()
    assert len(fleet.serving()) == desired
    happen(fleet, "deploy", 0)
    least = desired
    for _round in range(40):
        fleet.step()
        least = min(least, len(fleet.serving()))
        fleet.finish()
        fleet.step()
        least = min(least, len(fleet.serving()))
        fleet.now += timedelta(seconds=10)
        fleet.cool()
        fleet.step()
        fleet.answer()
    assert fleet.active == 2
    assert {each.revision for each in fleet.replicas} == {2}
    assert least == (desired if spare else desired - 1)
