"""A process that takes reports says so, and one that could not store them does not."""

from django.core.cache import cache
from django.db import DatabaseError

from fleet.services.hearing import hearing_since
from monitoring.ingest import hearing
from panel.core.clock import now
from tests.ingest.panel import Panel
from tests.waiting import eventually


def test_a_process_that_takes_reports_says_so(store):
    cache.clear()
    assert hearing_since(now=now()) is None
    with Panel():
        first = eventually(lambda: hearing_since(now=now()))
        eventually(lambda: cache.get("fleet:hearing:seen") > first)
        assert hearing_since(now=now()) == first


def test_a_process_without_its_database_goes_on_trying_and_says_nothing_meanwhile(store, monkeypatch):
    cache.clear()
    tries = []

    def refuse(*, now):
        tries.append(now)
        raise DatabaseError("the server is away")

    monkeypatch.setattr(hearing, "NOTE_SECONDS", 0.01)
    note = hearing.hearing_note
    monkeypatch.setattr(hearing, "hearing_note", refuse)
    with Panel():
        eventually(lambda: len(tries) > 2)
        assert hearing_since(now=now()) is None
        monkeypatch.setattr(hearing, "hearing_note", note)
        eventually(lambda: hearing_since(now=now()))
