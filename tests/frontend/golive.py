"""Go-live tests in several states, for tests of their pages: made and told of as agents do."""

from functools import cached_property

from endpoints.services.golive import endpoint_golive
from endpoints.services.rollouts import revision_deploy
from fleet.agent.load.order import LoadPiece, Shot
from fleet.models import Job
from monitoring.golive_runs.asked import asked_read
from monitoring.golive_runs.following import golive_order, golive_piece
from monitoring.golive_runs.models import GoLiveRun
from panel.core.clock import now
from tests.endpoints.world import Site, deployed, reconcile, settle, spec
from tests.fleet.factories import OPERATOR

ASKED = {"peak_per_second": 20, "seconds": 10, "p95_ms": 100, "p99_ms": None, "measure": "total"}


def begun(endpoint, **changes):
    return endpoint_golive(
        endpoint_id=endpoint.pk, actor=OPERATOR, asked=asked_read({**ASKED, **changes}), places=["hosts"], consent=True
    )


def told(run, *, total_ms=20.0, lag=2.0, failing=0):
    """Have the one place of a run do all of it, with steps."""
    [part] = run.parts.all()
    order = golive_order(part_id=part.pk, server_id=part.server_id)
    shots = [
        Shot(
            number, 0, at, is_ok=number < order.warm_up or number % 10 >= failing, in_flight=2,
            total_ms=total_ms + number % 7, ttft_ms=total_ms / 2, tpot_ms=3.0, outcome="http" if number % 10 < failing else "ok",
            detail="status: 503 <b>busy</b>" if number % 10 < failing else "",
        )
        for number, at in enumerate(order.at_seconds)
    ]  # fmt: skip
    sequence = 0

    def say(shots, **changes):
        nonlocal sequence
        piece = LoadPiece(
            part=part.pk, sequence=sequence, seconds=order.at_seconds[-1], shots=shots, loop_lag_p99_ms=lag, **changes
        )
        sequence += 1
        return golive_piece(piece=piece, server_id=part.server_id)

    say(shots, phase="measured")
    concurrency = say([], phase="steps", is_step_over=True).concurrency if order.step_seconds else 0
    while concurrency:
        rate = min(concurrency, 2) * 40
        step = [
            Shot(n, concurrency, n / rate, is_ok=True, in_flight=concurrency, total_ms=1000 * concurrency / rate)
            for n in range(rate)
        ]
        concurrency = say(step, phase="steps", step=concurrency, is_step_over=True).concurrency
    say([], phase="over")
    Job.objects.filter(kind="load").update(state="succeeded", ended_at=now())
    return GoLiveRun.objects.get(pk=run.pk)


class World:
    """An endpoint that serves; tests of it, and a rollout at its gate, are made when a test first asks for them."""

    def __init__(self):
        self.site = Site("rack-1", cards=4)
        self.endpoint = deployed("chat")
        settle(sites=[self.site])

    @cached_property
    def passed(self):
        return told(begun(self.endpoint))

    @cached_property
    def failed(self):
        return told(begun(self.endpoint, has_steps=False), total_ms=250.0, failing=2)

    @cached_property
    def invalid(self):
        return told(begun(self.endpoint, has_steps=False), lag=80.0)

    @cached_property
    def rollout(self):
        """A second revision of the endpoint, whose replica is ready and at its gate."""
        rollout = revision_deploy(
            endpoint_id=self.endpoint.pk, spec=spec(extra_arguments=["--new"]), actor=OPERATOR,
            gate={**ASKED, "has_steps": False},
        )  # fmt: skip
        for _round in range(4):
            reconcile()
            self.site.obey()
        rollout.refresh_from_db()
        return rollout

    @cached_property
    def running(self):
        return GoLiveRun.objects.get(pk=self.rollout.golive_run_id)
