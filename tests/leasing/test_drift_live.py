"""Differences are told to the pages as they come, change and are settled."""

from datetime import timedelta

import pytest

from fleet.models import Drift
from fleet.services.drift_actions import drift_adopt, drift_ignore
from monitoring.live import topics
from panel.accounts.enums import Role
from panel.accounts.models import User
from panel.core.clock import now
from tests.leasing.conftest import ACTOR


@pytest.fixture
def told(monkeypatch, django_capture_on_commit_callbacks):
    """Do something, commit, and return what the topic was told of differences meanwhile."""

    def work_and_hear(work):
        heard = []
        monkeypatch.setattr("panel.core.live.publish", lambda topic, data: heard.append((topic, data)))
        with django_capture_on_commit_callbacks(execute=True):
            work()
        return [entry for topic, data in heard if topic == "drift" for entry in data["drifts"].values()]

    return work_and_hear


def test_a_difference_is_told_when_it_comes_and_goes_and_not_in_between(rounds, account, vendor, told):
    machine = vendor.add(name="whose")
    [found] = told(rounds.sync)
    assert (found["kind"], found["external_id"], found["resolved_at"]) == ("unknown_at_provider", machine.id, None)
    rounds.pass_time(61)
    assert told(rounds.sync) == []
    vendor.vanish(machine.id)
    rounds.pass_time(61)
    [gone] = told(rounds.sync)
    assert (gone["id"], gone["resolution"]) == (found["id"], "gone")


def test_what_people_do_about_one_is_told(rounds, account, vendor, told):
    vendor.add(name="whose")
    rounds.sync()
    drift = Drift.objects.get()
    until = now() + timedelta(days=7)
    [ignored] = told(lambda: drift_ignore(drift_id=drift.pk, until=until, actor=ACTOR))
    assert ignored["ignored_until"] is not None
    [adopted] = told(lambda: drift_adopt(drift_id=drift.pk, actor=ACTOR))
    assert adopted["resolution"] == "adopted"


def test_the_topics_snapshot_has_what_is_open_for_those_who_see_the_fleet(rounds, account, vendor):
    vendor.add(name="whose")
    rounds.sync()
    topic, identifier = topics.resolve("drift")
    drift = Drift.objects.get()
    assert set(topic.snapshot(identifier)["drifts"]) == {str(drift.pk)}
    assert topic.authorize(User(username="u", role=Role.VIEWER), identifier)
    Drift.objects.update(resolved_at=now())
    assert topic.snapshot(identifier)["drifts"] == {}


@pytest.mark.django_db
def test_the_page_and_its_badge_are_kept_as_they_are_now(rounds, account, vendor, client):
    client.force_login(User.objects.create_user(username="v", password="x", role=Role.VIEWER))
    page = client.get("/drift/").content.decode()
    assert 'id="drift-rows" data-module="poke" data-topic="drift"' in page
    assert '<span class="count" id="drift-count" data-module="poke" data-topic="drift"' in page
    assert "hidden>0</span>" in client.get("/drift/?part=count").content.decode()
    vendor.add(name="whose")
    rounds.sync()
    assert ">1</span>" in client.get("/drift/?part=count").content.decode()
    rows = client.get("/drift/?part=rows").content.decode()
    assert "whose" in rows
    assert "<html" not in rows
