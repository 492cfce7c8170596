"""What lists of probes show: a bar of the last results, a day's percentiles, a result wanted now, and a try before saving."""

from datetime import timedelta

import pytest

from fleet.models import Agent
from monitoring.probing.lists import BAR, bars, latencies, newest_results, uptime_percent, worst
from monitoring.probing.models import Probe
from monitoring.probing.services import probe_check, probe_create, probe_run_everywhere, probe_update
from monitoring.probing.targets import targets_for
from panel.accounts.models import AuditEntry
from panel.core.clock import now
from panel.core.errors import InvalidInput
from tests.endpoints.world import Site
from tests.fleet.factories import OPERATOR
from tests.probing.test_storing import TARGET, found, store

pytestmark = pytest.mark.django_db


@pytest.fixture
def probe():
    return probe_create(actor=OPERATOR, name="panel", target=TARGET)


def test_a_bar_is_of_the_newest_results_of_all_places_oldest_first(probe):
    at = now()
    store(probe, [found(probe, at - timedelta(seconds=20 * number)) for number in range(1, BAR + 20)])
    store(probe, [found(probe, at - timedelta(seconds=5), outcome="timeout")], server_id=7)
    bar = bars([probe], at=at)[probe.pk]
    assert len(bar) == BAR
    assert [check.at for check in bar] == sorted(check.at for check in bar)
    assert (bar[-1].server_id, bar[-1].outcome) == (7, "timeout")
    assert bars([], at=at) == {}


def test_a_list_shows_the_worst_place_of_the_probes_own_metric_and_pools_none(probe, django_assert_num_queries):
    other = probe_create(actor=OPERATOR, name="other", target=TARGET, metric="ttfb")
    at = now() - timedelta(minutes=1)
    store(probe, [found(probe, at - timedelta(seconds=number), e2e=100.0) for number in range(8)])
    store(probe, [found(probe, at, e2e=900.0), found(probe, at - timedelta(seconds=9), outcome="timeout")], server_id=7)
    store(other, [found(other, at, e2e=50.0)])
    with django_assert_num_queries(1):
        shown = latencies([probe, other], start=at - timedelta(hours=1), end=now())
    assert {entry.server_id: entry.percentiles[0].n for entry in shown[probe.pk]} == {0: 8, 7: 2}
    slow = worst(shown[probe.pk])
    assert slow.server_id == 7
    assert uptime_percent(slow) == 50.0
    assert worst(shown[other.pk]).percentiles[0].value_ms == 25.0, "to the first byte"
    assert worst([]) is None


def test_new_results_are_told_live_once_for_each_probe(probe, published):
    at = now()
    store(probe, [found(probe, at - timedelta(seconds=number), e2e=10.0 + number) for number in range(3)])
    [(topic, data)] = [each for each in published if each[0] == "probes"]
    assert topic == "probes"
    assert data["probes"][str(probe.pk)]["e2e_ms"] == 10.0
    assert newest_results(at=now())[str(probe.pk)]["e2e_ms"] == 10.0


@pytest.fixture
def published(monkeypatch):
    told = []
    monkeypatch.setattr("monitoring.probing.live.publish_later", lambda topic, data: told.append((topic, data)))
    return told


def test_a_probe_that_is_wanted_now_is_asked_of_agents_by_another_number_and_of_the_panel_at_once(
    probe, monkeypatch, django_capture_on_commit_callbacks
):
    asked = []

    def answer(target, connection):
        asked.append((target.id, connection))
        return found(probe, now(), connection=connection)

    monkeypatch.setattr("monitoring.probing.services.probe_now", answer)
    site = Site("vantage")
    probe_update(
        probe_id=probe.pk, actor=OPERATOR, vantages=["panel", f"server:{site.server.pk}"],
        target={**TARGET, "connections": ["cold", "warm"]},
    )  # fmt: skip
    before = Agent.objects.get(server=site.server).assignments_version
    with django_capture_on_commit_callbacks(execute=True):
        results = probe_run_everywhere(probe_id=probe.pk, actor=OPERATOR)
    assert [each.connection for each in results] == ["cold", "warm"]
    assert asked == [(probe.pk, "cold"), (probe.pk, "warm")]
    assert Agent.objects.get(server=site.server).assignments_version > before
    [for_agent], [for_panel] = targets_for(site.server.pk), targets_for(0)
    assert (for_agent.run, for_panel.run) == (1, 0), "the panel is not asked twice"
    probe_update(probe_id=probe.pk, actor=OPERATOR, is_enabled=False)
    probe_run_everywhere(probe_id=probe.pk, actor=OPERATOR)
    assert Probe.objects.get(pk=probe.pk).run == 1, "agents do not have a paused probe"


def test_a_try_before_saving_stores_nothing_uses_the_bearer_that_is_kept_and_leaves_a_trace(probe, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "monitoring.probing.services.probe_now", lambda target, connection: asked.append(target) or found(probe, now())
    )
    probe_update(probe_id=probe.pk, actor=OPERATOR, bearer="kept")
    target, _result = probe_check(actor=OPERATOR, probe_id=probe.pk, target={**TARGET, "path": "/other"})
    assert (target.path, asked[0].bearer, asked[0].path) == ("/other", "kept", "/other")
    assert Probe.objects.count() == 1
    assert Probe.objects.get().target["path"] == "/health"
    entry = AuditEntry.objects.filter(action="probe.check").get()
    assert entry.target_name == "http 127.0.0.1:9"
    with pytest.raises(InvalidInput):
        probe_check(actor=OPERATOR, target={**TARGET, "host": "http://x"})
    assert len(asked) == 1
