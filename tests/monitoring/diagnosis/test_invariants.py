"""What holds for every diagnosis, whatever was measured."""

import json
import math
from dataclasses import replace

import pytest
from django.utils import translation
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monitoring.diagnosis.enums import ActionKind, Measure, Side, Verdict
from monitoring.diagnosis.evidence import CpuFacts, EngineFacts, Evidence, GpuSample, Marker, Objective, Round
from monitoring.diagnosis.report import Diagnosis
from monitoring.diagnosis.tree import diagnose
from monitoring.diagnosis.words import why
from tests.monitoring.diagnosis.worlds import WORLDS, World, evidence, probe

SOME = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
MS = st.one_of(st.none(), st.floats(0, 1e5))
OUTCOMES = st.sampled_from(["ok"] * 20 + ["timeout", "dns", "tls", "http", "skipped", "aborted", "vantage_down"])
SHARE = st.one_of(st.none(), st.floats(0, 1))


@st.composite
def probes(draw):
    outcome = draw(OUTCOMES)
    names = ("dns_ms", "tcp_ms", "tls_ms", "transfer_ms", "ttft_ms", "e2e_ms", "tpot_ms", "loop_lag_ms")
    total = draw(st.floats(0, 1e5)) if outcome == "ok" else None
    tokens = draw(st.one_of(st.none(), st.integers(0, 500)))
    suspect = draw(st.integers(0, 30)) == 0
    return probe(
        outcome=outcome,
        reason=draw(st.sampled_from(["", "overlap", "no_keep_alive"])),
        total_ms=total,
        completion_tokens=tokens,
        is_suspect=suspect,
        **{name: draw(MS) for name in names},
    )


@st.composite
def anything(draw, most=45):
    pool = draw(st.lists(probes(), min_size=1, max_size=4))
    count = draw(st.integers(0, most))
    places = draw(st.lists(st.integers(0, len(pool) - 1), min_size=count * 3, max_size=count * 3))
    rounds = tuple(
        Round(
            float(30 * i),
            draw(st.sampled_from(["a", "b"])) if i % 7 == 0 else "a",
            pool[places[3 * i]],
            pool[places[3 * i + 1]],
            pool[places[3 * i + 2]],
        )
        for i in range(count)
    )
    return Evidence(
        objective=Objective(
            draw(st.floats(1, 1e4)), draw(st.sampled_from(Measure)), draw(st.sampled_from([0.5, 0.95, 0.99]))
        ),
        rounds=rounds,
        engine=EngineFacts(queue_ms=draw(MS), prefill_ms=draw(MS), decode_ms=draw(MS), running=draw(MS)),
        lengths=draw(
            st.dictionaries(st.integers(1, 9000), st.lists(st.floats(0, 1e4), max_size=8).map(tuple), max_size=4)
        ),
        gpus=(GpuSample(*(draw(SHARE) for _ in range(4)), throttle_mask=draw(st.integers(0, 0x1FF))),),
        cpu=CpuFacts(draw(SHARE), draw(SHARE)),
        markers=draw(st.sampled_from([(), (Marker("deploy", 0.0, 100.0),), (Marker("cold_start", 0.0, 1e6),)])),
    )


@SOME
@given(anything())
def test_whatever_was_measured_there_is_one_verdict_one_step_and_plain_json(measured):
    found = diagnose(measured, resamples=5)
    assert 0 <= found.confidence <= 1
    assert isinstance(found.action.kind, ActionKind)
    assert (found.action.kind is ActionKind.NOTHING) == (found.verdict is Verdict.HEALTHY)
    told = json.loads(json.dumps(found.as_json(), allow_nan=False))
    again = Diagnosis.from_json(told)
    assert again.as_json() == told
    assert sum(found.alternatives.values()) + found.confidence == pytest.approx(1) or not found.alternatives


@SOME
@given(anything(most=29))
def test_fewer_than_thirty_rounds_are_never_a_verdict(measured):
    found = diagnose(measured, resamples=3)
    assert (found.verdict, found.action.kind) == (Verdict.NOT_ENOUGH_DATA, ActionKind.MEASURE_MORE)


def slower(entry, by):
    """A host that takes so much longer: both sides wait for it."""

    def add(result):
        known = {name: getattr(result, name) for name in FIELDS}
        grown = {name: known[name] + by for name in ("ttft_ms", "e2e_ms", "total_ms") if known[name] is not None}
        return probe(**(known | grown))

    return replace(entry, cold=add(entry.cold), host=add(entry.host), warm=entry.warm and add(entry.warm))


FIELDS = (
    "outcome", "reason", "phase_reached", "dns_ms", "tcp_ms", "tls_ms", "transfer_ms", "ttft_ms", "tpot_ms", "completion_tokens",
    "e2e_ms", "total_ms", "loop_lag_ms", "is_suspect",
)  # fmt: skip
NETWORKS = ["slow names", "new connections", "far away", "slow gateway", "thin uplink", "buffering gateway"]


@SOME
@given(st.sampled_from(NETWORKS), st.integers(0, 50), st.floats(0, 2000))
def test_time_that_both_sides_take_longer_does_not_turn_network_into_host_while_the_host_keeps_its_promise(
    name, seed, by
):
    measured = evidence(WORLDS[name][1], seed)
    late = replace(measured, rounds=tuple(slower(entry, by) for entry in measured.rounds))
    host = sorted(entry.host.total_ms if entry.host.ttft_ms is None else entry.host.ttft_ms for entry in late.rounds)
    found = diagnose(late, resamples=10)
    if host[math.ceil(0.95 * len(host)) - 1] <= measured.objective.threshold_ms:
        assert found.side in {Side.NETWORK, Side.MIXED}
    share = diagnose(measured, resamples=10).numbers["network_share"]
    assert found.numbers["network_share"] <= share + 1e-9


@SOME
@given(st.sampled_from(NETWORKS), st.integers(0, 50), st.floats(0, 5000))
def test_a_slower_name_service_never_moves_the_blame_to_the_host(name, seed, by):
    measured = evidence(WORLDS[name][1], seed)
    rounds = []
    for entry in measured.rounds:
        known = {field: getattr(entry.cold, field) for field in FIELDS}
        grown = {key: known[key] + by for key in ("dns_ms", "ttft_ms", "e2e_ms", "total_ms") if known[key] is not None}
        rounds.append(replace(entry, cold=probe(**{**known, **grown})))
    found = diagnose(replace(measured, rounds=tuple(rounds)), resamples=10)
    assert found.side is Side.NETWORK


@SOME
@given(st.sampled_from(sorted(set(WORLDS) - {"busy prober", "control slow"})), st.integers(0, 20), st.randoms())
def test_the_order_in_which_rounds_arrive_does_not_matter(name, seed, shuffler):
    measured = evidence(WORLDS[name][1], seed)
    shuffled = list(measured.rounds)
    shuffler.shuffle(shuffled)
    assert diagnose(replace(measured, rounds=tuple(shuffled)), resamples=5) == diagnose(measured, resamples=5)


@SOME
@given(
    st.sampled_from(["slow names", "thin uplink", "slow gateway", "long prompts"]),
    st.integers(0, 20),
    st.floats(0.5, 4),
)
def test_a_world_in_which_everything_takes_a_multiple_gets_the_same_verdict(name, seed, factor):
    _, world = WORLDS[name]
    scaled = replace(
        world, threshold=world.threshold * factor, rtt=world.rtt * factor, dns=world.dns * factor, hop=world.hop * factor,
        body=world.body * factor, factor=world.factor * factor,
    )  # fmt: skip
    assert (
        diagnose(evidence(scaled, seed), resamples=10).verdict is diagnose(evidence(world, seed), resamples=10).verdict
    )


def test_failures_count_as_infinitely_slow_and_put_no_number_into_the_report():
    measured = evidence(World(threshold=500), 1)
    failed = replace(measured.rounds[0], cold=probe(outcome="timeout", phase_reached="wait", total_ms=None))
    found = diagnose(
        replace(measured, rounds=(failed, *measured.rounds[1:]), objective=Objective(500, percentile=0.99)),
        resamples=20,
    )
    assert found.verdict is not Verdict.HEALTHY
    assert found.numbers["outside_ms"] is None
    assert found.numbers["errors_outside"] == 1


@pytest.mark.parametrize(
    ("make", "cause"),
    [
        (lambda: Objective(0), "threshold"),
        (lambda: Objective(math.inf), "threshold"),
        (lambda: Objective(500, percentile=1.0), "percentile"),
        (lambda: Evidence(Objective(500), (), replicas=0), "replicas"),
        (lambda: Evidence(Objective(500), (), lengths={128: (math.nan,)}), "lengths"),
        (lambda: Evidence(Objective(500), (), markers=(Marker("deploy", 5.0, 1.0),)), "markers"),
        (lambda: diagnose(Evidence(Objective(500), ()), resamples=0), "resamples"),
        (lambda: diagnose(Evidence(Objective(500), ()), resamples=10**6), "resamples"),
    ],
)
def test_evidence_that_makes_no_sense_is_refused_by_name(make, cause):
    with pytest.raises(ValueError, match=cause):
        make()


def test_a_round_that_had_to_wait_for_the_one_before_is_over_every_threshold():
    measured = evidence(World(threshold=500), 1)
    late = probe(outcome="skipped", reason="overlap", phase_reached="start")
    rounds = (*(replace(entry, cold=late) for entry in measured.rounds[:4]), *measured.rounds[4:])
    found = diagnose(replace(measured, rounds=rounds), resamples=20)
    assert found.verdict is not Verdict.HEALTHY
    assert (found.numbers["outside_ms"], found.numbers["errors_outside"]) == (None, 0)


def test_what_the_prober_refused_before_the_first_packet_is_put_aside():
    measured = evidence(World(threshold=500), 1)
    refused = probe(outcome="skipped", reason="address_refused", phase_reached="start")
    rounds = (*(replace(entry, cold=refused) for entry in measured.rounds[:4]), *measured.rounds[4:])
    found = diagnose(replace(measured, rounds=rounds), resamples=20)
    assert (found.verdict, found.numbers["put_aside"], found.numbers["rounds"]) == (Verdict.HEALTHY, 4, 36)


def test_a_server_that_closes_every_connection_is_told_so():
    found = diagnose(evidence(WORLDS["connections closed each time"][1], 1), resamples=20)
    with translation.override("en"):
        assert why(found).startswith("The server closes the connection after each answer")


def test_nothing_at_all_is_not_enough():
    found = diagnose(Evidence(Objective(500), ()))
    assert (found.verdict, found.action.parameters) == (Verdict.NOT_ENOUGH_DATA, {"rounds": 30})
