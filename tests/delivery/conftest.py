"""Fixtures of delivery."""

import pytest

from monitoring.delivery import dispatcher
from tests.delivery import world as worlds


@pytest.fixture
def wire(monkeypatch):
    """A way out that keeps what it is given."""
    worlds.register()
    wire = worlds.Wire()
    monkeypatch.setattr(dispatcher, "send", wire.send)
    return wire


@pytest.fixture
def world(wire, time_machine, db):
    """A world with a clock that only moves when it is told to."""
    time_machine.move_to(worlds.START, tick=False)
    return worlds.World(wire, time_machine)
