"""The evaluator over real tables: one episode for each family and subject, told once, muted, frozen, explained."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from fleet.models import Agent, Gpu
from monitoring.alerts.evaluator import Evaluator
from monitoring.alerts.models import Episode, Rule, RuleOverride, RuleStanding, Silence
from monitoring.delivery.models import Heartbeat, Notification
from tests.alerts.watch import Watch
from tests.endpoints.world import Site, deployed, settle

pytestmark = pytest.mark.django_db


@pytest.fixture
def watch():
    return Watch()


def silence(watch, *, minutes=600, **changes):
    given = {
        "matchers": {"family": "latency"}, "reason": "known", "starts_at": watch.at - timedelta(minutes=1),
        "ends_at": watch.at + timedelta(minutes=minutes), "created_at": watch.at, "created_by_name": "test",
    }  # fmt: skip
    return Silence.objects.create(**given | changes)


def slow(watch, count=10, **changes):
    """Enough slow probes in a row for the fast rule."""
    watch.steps(count, e2e=2400.0, every=2, **changes)


def test_an_endpoint_that_gets_slow_is_one_episode_told_once_and_resolved_once(watch):
    watch.probe()
    watch.steps(40, every=20)
    assert watch.open() == []
    slow(watch)
    [episode] = watch.open()
    assert (episode.family, episode.severity, episode.rules) == ("latency", "critical", ["p99_fast"])
    figures = episode.evidence["p99_fast"]
    assert figures["limit_ms"] == 1000.0
    assert figures["worst_ms"] == 2400.0
    assert figures["n"] >= 30
    watch.steps(45)
    episode.refresh_from_db()
    assert episode.resolved_at is not None
    assert episode.closed_at is None, "it may still be silently opened again"
    assert watch.told(episode) == ["opening", "resolved"]
    watch.steps(250, every=50)
    episode.refresh_from_db()
    assert episode.closed_at is not None
    assert watch.timeline(episode) == ["fired", "told", "ceased", "told", "closed"]
    assert not RuleStanding.objects.filter(rule__key="p99_fast").exists()


def test_a_subject_has_one_open_episode_of_a_family_by_constraint(watch):
    watch.probe()
    slow(watch, 12)
    [episode] = watch.open(family="latency")
    with pytest.raises(IntegrityError), transaction.atomic():
        Episode.objects.create(
            family="latency", subject_kind=episode.subject_kind, subject_id=episode.subject_id, severity="info",
            opened_at=watch.at, changed_at=watch.at, incident={},
        )  # fmt: skip


def test_no_data_freezes_an_episode_and_never_resolves_it(watch):
    watch.probe()
    watch.steps(30, every=30)
    slow(watch)
    [episode] = watch.open(family="latency")
    watch.wait(40, every=5)
    episode.refresh_from_db()
    assert episode.resolved_at is None
    assert episode.frozen_since is not None
    assert watch.told(episode) == ["opening"]
    watch.steps(45)
    episode.refresh_from_db()
    assert episode.resolved_at is not None
    assert watch.told(episode) == ["opening", "resolved"]


def test_silence_of_the_only_place_is_told_as_the_place_and_not_as_the_target(watch):
    watch.probe()
    watch.steps(30, every=30)
    watch.wait(20)
    episodes = {each.family: each for each in watch.open()}
    assert set(episodes) == {"place", "data"}
    assert episodes["data"].muted_by == "inhibited"
    assert episodes["data"].muted_ref == episodes["place"].pk
    assert watch.told(episodes["data"]) == []


def test_suspect_results_count_for_nothing(watch):
    watch.probe()
    watch.steps(30, every=30)
    watch.steps(12, e2e=9000.0, suspect=True)
    assert watch.open(family="latency") == []


def test_it_is_down_when_two_places_agree_and_its_failures_are_no_latency(watch):
    watch.places = [0, Site("b").server.pk]
    watch.probe(vantages=["panel", "agents"])
    watch.steps(30, every=30)
    watch.steps(2, outcome="timeout", every=1)
    assert watch.open() == []
    watch.step(outcome="timeout")
    [episode] = watch.open()
    assert (episode.family, episode.rules, episode.severity) == ("availability", ["down"], "critical")
    assert episode.evidence["down"]["of_places"] == 2
    watch.steps(20, outcome="timeout", every=2)
    assert {each.family for each in watch.open()} == {"availability"}
    watch.steps(3, every=1)
    assert "down" not in {key for each in watch.open() for key in each.rules}


def test_a_silence_hides_the_opening_and_what_still_fires_is_told_when_it_ends(watch):
    watch.probe()
    watch.steps(30, every=30)
    made = silence(watch, minutes=30)
    slow(watch)
    [episode] = watch.open()
    assert episode.muted_by == "silence"
    assert episode.muted_ref == made.pk
    assert watch.told(episode) == []
    made.refresh_from_db()
    assert made.suppressed == 1
    slow(watch, 60)
    assert watch.told(episode) == ["opening"]
    assert watch.timeline(episode) == ["fired", "muted", "unmuted", "told"]


def test_who_heard_the_opening_hears_the_end_in_spite_of_a_silence(watch):
    watch.probe()
    watch.steps(30, every=30)
    slow(watch)
    [episode] = watch.open()
    silence(watch)
    watch.steps(45)
    assert watch.told(episode) == ["opening", "resolved"]


def test_what_is_measured_in_maintenance_counts_for_no_rule_afterwards(watch):
    watch.probe()
    watch.steps(30, every=30)
    silence(watch, minutes=11, is_maintenance=True, matchers={"kind": "probe"})
    slow(watch, 20)
    assert watch.open(family="latency") == []
    watch.steps(20, every=2)
    assert watch.open() == []


def test_an_override_of_one_subject_wins_over_the_rule_and_a_scope_leaves_others_out(watch):
    probe, other = watch.probe("a"), watch.probe("b")
    rule = Rule.objects.get(key="p99_fast")
    RuleOverride.objects.create(
        rule=rule, subject_kind="probe", subject_id=probe.pk, settings={"limit_ms": 5000.0}, created_at=watch.at,
        created_by_name="test",
    )  # fmt: skip
    watch.steps(30, every=30)
    slow(watch)
    assert [each.subject_id for each in watch.open(family="latency")] == [other.pk]


def test_a_rule_that_is_switched_off_ends_what_it_opened(watch):
    watch.probe()
    watch.steps(30, every=30)
    slow(watch)
    [episode] = watch.open()
    Rule.objects.filter(key__startswith="p99").update(is_enabled=False)
    watch.step()
    episode.refresh_from_db()
    assert episode.resolved_at is not None


def test_a_silent_agent_explains_the_endpoint_that_went_down_with_it(watch):
    site = Site("rack-9")
    endpoint = deployed()
    settle(sites=[site])
    watch.probe(subject_kind="endpoint", subject_id=endpoint.pk)
    Agent.objects.update(last_seen_at=watch.at)
    watch.steps(20, every=20)
    Agent.objects.update(last_seen_at=watch.at - timedelta(minutes=4))
    watch.step()
    [agent] = watch.open(family="agent")
    watch.steps(8, outcome="connect", every=2)
    [down] = watch.open(family="availability")
    agent.refresh_from_db()
    assert (down.muted_by, down.muted_ref) == ("inhibited", agent.pk)
    assert watch.told(down) == []
    assert agent.severity == "critical"
    assert agent.evidence["agent_down"]
    assert agent.evidence["endpoints"] == ["chat"]
    assert watch.told(agent) == ["opening", "update"]


def test_a_card_that_is_lost_is_an_episode_of_the_card(watch):
    site = Site("rack-9")
    watch.round()
    card = Gpu.objects.filter(server=site.server).first()
    Gpu.objects.filter(pk=card.pk).update(state="lost")
    Agent.objects.update(last_seen_at=watch.at)
    watch.wait(3)
    [episode] = watch.open(family="gpu")
    assert (episode.subject_kind, episode.subject_id, episode.host_id) == ("gpu", card.pk, site.server.pk)
    Gpu.objects.filter(pk=card.pk).update(state="ok")
    watch.round()
    assert watch.told(episode) == ["opening", "resolved"]


def test_states_and_announcements_become_true_together_or_not_at_all(watch, monkeypatch):
    watch.probe()
    watch.steps(30, every=30)

    def broken(*_arguments, **_more):
        raise RuntimeError("killed")

    monkeypatch.setattr("monitoring.alerts.evaluator.Heartbeat.objects.update_or_create", broken)
    for _ in range(10):
        watch.step(e2e=2400.0, evaluate=False)
    with pytest.raises(RuntimeError):
        watch.round()
    assert not Episode.objects.exists()
    assert not Notification.objects.exists()
    monkeypatch.undo()
    watch.round()
    [episode] = watch.open()
    assert watch.told(episode) == ["opening"]


def test_another_process_goes_on_where_the_last_one_was(watch):
    watch.probe()
    watch.steps(30, every=30)
    slow(watch)
    watch.evaluator = Evaluator()
    slow(watch)
    [episode] = watch.open()
    assert watch.told(episode) == ["opening"]
    assert Heartbeat.objects.get(name="evaluator").at == watch.at


def test_the_round_asks_as_many_questions_for_many_probes_as_for_one(watch, django_assert_num_queries):
    watch.probe()
    watch.steps(2, every=2)
    watch.step(evaluate=False)
    with CaptureQueriesContext(connection) as first:
        watch.round()
    for number in range(12):
        watch.probe(f"more-{number}")
    watch.step(evaluate=False)
    with django_assert_num_queries(len(first)):
        watch.round()
    assert len(first) < 30
