"""The panel's own prober does its part of a diagnosis: real requests, beside its schedule."""

import asyncio
import threading
from datetime import timedelta

import msgspec
import pytest

from fleet.agent.probes.addresses import Rules
from fleet.agent.probes.collected import Collected
from fleet.agent.probes.prober import Prober
from fleet.agent.probes.thread import ProberThread
from fleet.agent.rounds.plan import Found
from monitoring.diagnosing.following import diagnosis_cancel
from monitoring.diagnosing.models import DiagnosisReport
from monitoring.diagnosing.panel import PanelRounds
from monitoring.diagnosing.starting import diagnosis_start
from panel.core.clock import now
from tests.diagnosing.places import CHAT, probe_of, served
from tests.faults.engine import Engine
from tests.fleet.factories import OPERATOR
from tests.probes.servers import raw_server
from tests.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def rounds():
    thread = ProberThread(lambda: Prober("panel", rules=Rules(is_private_allowed=True)), sink=Collected())
    thread.start()
    made = PanelRounds(thread)
    yield made
    made.close()
    thread.stop()


@pytest.fixture
def engine():
    """The port of an engine in a thread of its own."""
    ready, place = threading.Event(), {}

    async def serve():
        place["loop"], place["stop"] = asyncio.get_running_loop(), asyncio.Event()
        async with raw_server(Engine(base_ms=5, token_ms=1).serve) as port:
            place["port"] = port
            ready.set()
            await place["stop"].wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(10)
    yield place["port"]
    place["loop"].call_soon_threadsafe(place["stop"].set)
    thread.join(10)


def begun(port, **others):
    """A diagnosis whose slots are short, so that a test does not wait for it."""
    endpoint, _host, _other = served()
    probe = probe_of(endpoint, target={**CHAT, "host": "127.0.0.1", "port": port, "max_tokens": 3, "path": "/v1/x"})
    report = diagnosis_start(probe_id=probe.pk, actor=OPERATOR, rounds=30, slot_seconds=1.0, **others)
    DiagnosisReport.objects.filter(pk=report.pk).update(begin_at=now(), slot_seconds=0.2)
    report.refresh_from_db()
    for place in report.places:
        place["offset_seconds"] = 0.0
    report.save()
    return report


def step(rounds, report):
    rounds.step(now())
    report.refresh_from_db()
    return report


def test_it_measures_cold_and_warm_in_its_slots_and_hands_over_when_done(rounds, engine):
    report = begun(engine)
    eventually(lambda: "panel" in step(rounds, report).found, seconds=20)
    found = msgspec.convert(report.found["panel"], Found)
    asked = [one for one in found.rounds if one.cold.reason != "overlap"]
    assert len(asked) >= 10, "a busy machine misses some of the short slots"
    assert {(one.cold.outcome, one.warm.outcome) for one in asked} == {("ok", "ok")}
    assert all(one.warm.tcp_ms is None and one.cold.tcp_ms is not None for one in asked)


def test_progress_is_told_while_it_goes_on_and_a_cancelled_one_ends(rounds, engine):
    report = begun(engine)
    eventually(lambda: (step(rounds, report).progress.get("panel") or 0) > 0, seconds=20)
    assert report.heard_at is not None
    diagnosis_cancel(report_id=report.pk, actor=OPERATOR)
    rounds.step(now())
    assert rounds._works == {}


def test_one_that_began_long_ago_is_not_begun_any_more(rounds, engine):
    report = begun(engine)
    DiagnosisReport.objects.filter(pk=report.pk).update(begin_at=now() - timedelta(minutes=10))
    assert "panel" not in step(rounds, report).found
    assert rounds._works == {}
