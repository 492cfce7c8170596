"""The gate of a rollout: no request before its go-live test has passed."""

from datetime import timedelta

import pytest

from endpoints.models import Replica, Rollout
from endpoints.services.endpoints import endpoint_create
from endpoints.services.gating import gate_again
from endpoints.services.rollouts import revision_deploy
from endpoints.services.routing import routed
from fleet.models import Job
from monitoring.golive.enums import Outcome
from monitoring.golive_runs.models import GoLiveRun
from monitoring.golive_runs.starting import golive_cancel
from panel.core.clock import now
from panel.core.errors import Conflict, InvalidInput
from tests.endpoints.world import deployed, open_replicas, reconcile, settle, spec
from tests.fleet.factories import OPERATOR
from tests.golive_runs.runs import FAST, carried_out

pytestmark = pytest.mark.django_db


GATE = {**FAST, "has_steps": False}


def gated(endpoint, site, **changes):
    """A second revision behind a gate, whose replica is ready."""
    rollout = revision_deploy(
        endpoint_id=endpoint.pk, spec=spec(extra_arguments=["--new"]), actor=OPERATOR, gate={**GATE, **changes}
    )
    for _round in range(4):
        reconcile()
        site.obey()
    rollout.refresh_from_db()
    return rollout


def ends(rollout, site, **shots):
    run = carried_out(GoLiveRun.objects.get(pk=rollout.golive_run_id), **shots)
    Job.objects.filter(kind="load").update(state="succeeded", ended_at=now())
    for _round in range(6):
        reconcile()
        site.obey()
    rollout.refresh_from_db()
    return run


def takers(endpoint):
    return sorted(each.revision.number for each in routed(Replica.objects.filter(endpoint=endpoint)))


def test_a_gated_revision_gets_no_request_until_its_test_has_passed(endpoint, site):
    rollout = gated(endpoint, site)
    assert rollout.golive_run_id is not None
    assert takers(endpoint) == [1]
    assert [each.is_gated for each in open_replicas(endpoint)] == [False, True]
    run = GoLiveRun.objects.get(pk=rollout.golive_run_id)
    assert run.rollout_id == rollout.pk
    new = next(each for each in open_replicas(endpoint) if each.is_gated)
    assert [target["port"] for target in run.parts.get().targets] == [new.port], (
        "the new one is tested, not what serves"
    )
    assert ends(rollout, site).outcome == Outcome.PASS
    assert rollout.state == "succeeded"
    assert takers(endpoint) == [2]


def test_a_gate_that_fails_returns_to_the_revision_before_and_cost_no_request(endpoint, site):
    rollout = gated(endpoint, site)
    assert ends(rollout, site, total_ms=400.0).outcome == Outcome.FAIL
    assert (rollout.state, rollout.reason) == ("returned", "gate_failed")
    assert takers(endpoint) == [1]
    endpoint.refresh_from_db()
    assert endpoint.active_revision.number == 1
    settle(sites=[site])
    assert len(open_replicas(endpoint)) == 1


def test_a_test_that_proves_nothing_holds_the_gate_until_somebody_runs_it_again(endpoint, site):
    rollout = gated(endpoint, site)
    golive_cancel(run_id=rollout.golive_run_id, actor=OPERATOR)
    reconcile()
    rollout.refresh_from_db()
    assert rollout.state == "running"
    assert takers(endpoint) == [1]
    first = rollout.golive_run_id
    Job.objects.update(state="cancelled", ended_at=now())
    gate_again(endpoint_id=endpoint.pk, actor=OPERATOR)
    with pytest.raises(Conflict):
        gate_again(endpoint_id=endpoint.pk, actor=OPERATOR)
    reconcile()
    rollout.refresh_from_db()
    assert rollout.golive_run_id not in {None, first}
    Rollout.objects.filter(pk=rollout.pk).update(deadline_at=now() - timedelta(seconds=1))
    reconcile()
    rollout.refresh_from_db()
    assert rollout.state == "running", "a test that runs is not given up"
    golive_cancel(run_id=rollout.golive_run_id, actor=OPERATOR)
    Rollout.objects.filter(pk=rollout.pk).update(deadline_at=now() - timedelta(seconds=1))
    reconcile()
    rollout.refresh_from_db()
    assert (rollout.state, rollout.reason) == ("returned", "gate_held")


def test_a_first_revision_behind_a_gate_serves_nobody_before(site):
    made, rollout = endpoint_create(name="new", spec=spec(), gpus=1, actor=OPERATOR, gate=GATE)
    for _round in range(4):
        reconcile()
        site.obey()
    rollout.refresh_from_db()
    assert takers(made) == []
    made.refresh_from_db()
    assert made.phase == "rolling_out"
    ends(rollout, site)
    assert takers(made) == [1]


def test_nothing_that_serves_is_given_up_for_a_gate(site):
    full = deployed("full", gpus=2, desired_replicas=2)
    settle(sites=[site])
    rollout = revision_deploy(endpoint_id=full.pk, spec=spec(), gpus=2, actor=OPERATOR, gate=GATE)
    for _round in range(4):
        reconcile()
        site.obey()
    assert takers(full) == [1, 1]
    Rollout.objects.filter(pk=rollout.pk).update(deadline_at=now() - timedelta(seconds=1))
    reconcile()
    rollout.refresh_from_db()
    assert (rollout.state, rollout.reason) == ("returned", "no_free_gpu")
    assert takers(full) == [1, 1]


def test_a_gate_that_makes_no_sense_deploys_nothing(endpoint):
    with pytest.raises(InvalidInput):
        revision_deploy(endpoint_id=endpoint.pk, spec=spec(), actor=OPERATOR, gate={"peak_per_second": -1})
    assert Rollout.objects.count() == 1
