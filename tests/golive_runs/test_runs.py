"""Go-live tests as they are run: consent and caps, orders, pieces taken once, steps, verdicts, what is lost."""

from datetime import timedelta

import msgspec
import pytest

from endpoints.models import Replica
from endpoints.services.golive import endpoint_golive, endpoint_golive_estimate
from fleet.agent.load.order import Shot
from fleet.models import Job
from monitoring.golive.enums import Flaw, Outcome
from monitoring.golive_runs.following import golive_order, golive_tick
from monitoring.golive_runs.models import GoLivePart, GoLivePiece, GoLiveRun
from monitoring.golive_runs.starting import golive_cancel
from panel.core.clock import now
from panel.core.errors import Conflict, InvalidInput, NotFound
from tests.endpoints.world import deployed, open_replicas
from tests.fleet.factories import OPERATOR
from tests.golive_runs.runs import asked, begun, carried_out, shots_for, tell

pytestmark = pytest.mark.django_db


# ---- beginning


def test_without_consent_nothing_is_loaded(endpoint):
    with pytest.raises(InvalidInput, match="agree"):
        endpoint_golive(endpoint_id=endpoint.pk, actor=OPERATOR, asked=asked(), places=["hosts"], consent=False)
    assert not GoLiveRun.objects.exists()
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"most_seconds": 20}, "most_seconds"),
        ({"most_requests": 100}, "most_requests"),
        ({"most_tokens": 1000}, "most_tokens"),
        ({"most_cost": "1", "currency": "CNY"}, "most_cost"),
        ({"most_cost": "a lot"}, "most_cost"),
    ],
)
def test_a_plan_over_a_cap_is_refused_with_the_caps_name(endpoint, changes, field):
    with pytest.raises(InvalidInput) as refused:
        begun(endpoint, **changes)
    assert refused.value.field == field
    assert not GoLiveRun.objects.exists()


@pytest.mark.parametrize(
    "wrong",
    [
        {"peak_per_second": 0}, {"p95_ms": None}, {"lengths": [512, 128, 2048]}, {"error_rate": 1}, {"nonsense": 1},
        {"peak_per_second": "many"}, {"p95_ms": -1}, {"measure": "average"}, {"seconds": 10**9},
    ],
)  # fmt: skip
def test_what_cannot_be_proven_is_refused_in_words(wrong):
    with pytest.raises(InvalidInput):
        asked(**wrong)


def test_the_estimate_says_requests_tokens_and_time_before_anything_is_sent(endpoint):
    estimate, cost = endpoint_golive_estimate(endpoint_id=endpoint.pk, asked=asked(), places=["hosts"])
    assert estimate.requests > 20 * (10 + 30) * 0.7
    assert estimate.tokens > estimate.requests * 64
    assert estimate.seconds > 10 + 30
    assert cost == {}, "no lease tells what its cards cost"
    assert not Job.objects.exists()


def test_a_test_is_a_job_of_the_replicas_own_machine_with_no_secret_in_it(endpoint, site):
    run = begun(endpoint)
    [part] = run.parts.all()
    job = Job.objects.get(pk=part.job_id)
    assert (job.kind, job.server_id, job.arguments) == ("load", site.server.pk, {"part": part.pk})
    assert endpoint.upstream_key not in str(part.targets) + str(job.arguments) + str(job.context)
    assert (part.targets[0]["host"], part.targets[0]["port"]) == ("127.0.0.1", open_replicas(endpoint)[0].port)
    with pytest.raises(Conflict):
        begun(endpoint)


def test_places_outside_need_a_gateway_and_a_key(endpoint):
    for places, said in ((["panel"], "no gateway"), (["rack-1"], "A place is"), ([], "Choose a place")):
        with pytest.raises(InvalidInput, match=said):
            endpoint_golive(endpoint_id=endpoint.pk, actor=OPERATOR, asked=asked(), places=places, consent=True)


def test_an_endpoint_of_which_nothing_serves_is_not_loaded(site):
    made = deployed("idle", desired_replicas=0)
    with pytest.raises(InvalidInput, match="nothing to load"):
        begun(made)


# ---- following


def test_an_order_holds_the_whole_plan_and_only_its_own_place_gets_it(endpoint, site):
    run = begun(endpoint)
    [part] = run.parts.all()
    with pytest.raises(NotFound):
        golive_order(part_id=part.pk, server_id=site.server.pk + 1)
    order = golive_order(part_id=part.pk, server_id=site.server.pk)
    assert len(order.at_seconds) == len(part.plan["at_seconds"])
    assert order.at_seconds[order.warm_up - 1] <= 30.5
    run.refresh_from_db()
    assert run.state == "running"


def test_a_healthy_engine_passes_and_a_piece_told_twice_counts_once(endpoint):
    run = begun(endpoint)
    [part] = run.parts.all()
    order = golive_order(part_id=part.pk, server_id=part.server_id)
    found = shots_for(order)
    tell(part, found[:500], lag=2.0)
    tell(part, found[:500], lag=2.0)
    assert GoLivePiece.objects.count() == 1
    tell(part, found[500:], sequence=1, phase="over", lag=2.0)
    run.refresh_from_db()
    part.refresh_from_db()
    assert (run.state, run.outcome) == ("ended", Outcome.PASS)
    assert part.sent == len(found)
    [proof] = part.judgement["proofs"]
    assert (proof["over"], proof["percentile"]["value_ms"]) == (0, 20.0)
    with pytest.raises(NotFound):
        tell(part, [], sequence=2)


@pytest.mark.parametrize(
    ("shots", "outcome"),
    [
        ({"total_ms": 150.0}, Outcome.FAIL),
        ({"total_ms": 90.0, "late": 0.02}, Outcome.FAIL),  # 20 ms late and 90 ms to answer are over 100 ms
        ({"failing": 1}, Outcome.FAIL),
    ],
)
def test_a_slow_engine_and_one_that_fails_do_not_pass(endpoint, shots, outcome):
    run = carried_out(begun(endpoint), **shots)
    assert run.outcome == outcome


def test_a_generator_that_is_late_itself_proves_nothing(endpoint):
    run = begun(endpoint)
    [part] = run.parts.all()
    order = golive_order(part_id=part.pk, server_id=part.server_id)
    tell(part, shots_for(order), phase="over", lag=55.0)
    run.refresh_from_db()
    part.refresh_from_db()
    assert run.outcome == Outcome.INVALID
    assert part.judgement["flaws"] == [Flaw.LOOP_LAG]


def test_what_ended_at_a_limit_or_was_changed_meanwhile_proves_nothing(endpoint, site):
    run = begun(endpoint)
    [part] = run.parts.all()
    order = golive_order(part_id=part.pk, server_id=part.server_id)
    Replica.objects.update(generation=7)
    tell(part, shots_for(order), phase="over", lag=2.0, stopped="tokens")
    run.refresh_from_db()
    part.refresh_from_db()
    assert run.has_changed
    assert set(part.judgement["flaws"]) == {Flaw.CHANGED, Flaw.STOPPED}


def test_steps_are_said_one_by_one_until_a_doubling_gains_nothing(endpoint):
    run = begun(endpoint, has_steps=True)
    [part] = run.parts.all()
    order = golive_order(part_id=part.pk, server_id=part.server_id)
    assert order.step_seconds > 0
    tell(part, shots_for(order), lag=2.0)
    sequence, concurrency, seen = 1, 0, []
    while True:
        throughput = min(concurrency, 4) * 50
        shots = [
            Shot(n, concurrency, n / max(throughput, 1), is_ok=True, in_flight=concurrency,
                 total_ms=1000 * concurrency / max(throughput, 1))
            for n in range(throughput * 2)
        ]  # fmt: skip
        answer = tell(part, shots, sequence=sequence, phase="steps", step=concurrency, is_step_over=True)
        sequence, concurrency = sequence + 1, answer.concurrency
        if not concurrency:
            break
        seen.append(concurrency)
    assert seen == [1, 2, 4, 8]
    tell(part, [], sequence=sequence, phase="over")
    run.refresh_from_db()
    assert run.outcome == Outcome.PASS
    assert run.saturation["knee"]["concurrency"] == 4
    assert run.saturation["stopped_by"] == "plateau"


def test_a_cancelled_test_is_not_wanted_any_more_and_its_job_is_called_off(endpoint):
    run = begun(endpoint)
    [part] = run.parts.all()
    golive_order(part_id=part.pk, server_id=part.server_id)
    golive_cancel(run_id=run.pk, actor=OPERATOR)
    with pytest.raises(NotFound):
        tell(part, [])
    assert Job.objects.get(pk=part.job_id).state == "cancelled"
    golive_cancel(run_id=run.pk, actor=OPERATOR)
    begun(endpoint)


def test_a_place_that_falls_silent_or_whose_job_ends_is_not_waited_for(endpoint):
    run = begun(endpoint)
    [part] = run.parts.all()
    golive_order(part_id=part.pk, server_id=part.server_id)
    assert golive_tick(at=now() + timedelta(seconds=60)) == 0
    assert golive_tick(at=now() + timedelta(minutes=5)) == 1
    run.refresh_from_db()
    assert (run.state, run.outcome) == ("ended", Outcome.INVALID)
    again = begun_after(endpoint, part)
    Job.objects.filter(pk=again.job_id).update(state="failed", reason="forbidden", ended_at=now())
    assert golive_tick(at=now()) == 1
    again.refresh_from_db()
    assert (again.state, again.detail) == ("lost", "forbidden")


def begun_after(endpoint, part):
    """The part of a new run, when the job before is out of the way."""
    Job.objects.filter(pk=part.job_id).update(state="failed", ended_at=now())
    return begun(endpoint).parts.get()


def test_what_is_kept_of_a_run_can_be_read_again(endpoint):
    run = carried_out(begun(endpoint))
    part = GoLivePart.objects.get(run=run)
    shots = [msgspec.convert(shot, Shot) for piece in part.pieces.all() for shot in piece.shots]
    assert len(shots) == len(part.plan["at_seconds"])
