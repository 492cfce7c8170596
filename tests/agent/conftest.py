"""What tests of the agent share: a simulated NVML in this process, state directories, a small panel on loopback."""

from contextlib import contextmanager

import pytest

from fleet.agent.faults.ledger import FaultLedger
from fleet.agent.nvml import driver as driver_module
from fleet.agent.nvml.card import ReadOptions
from fleet.agent.nvml.driver import DriverWatch
from fleet.agent.state import Identity, StateDirectory
from fleet.simulation.nvml import SimulatedHost
from tests.agent.panel import SmallPanel
from tests.nvml import reading
from tests.waiting import eventually


@contextmanager
def recovering(library, host):
    """Have pynvml read this server, which afterwards hangs and fails no more."""
    with reading(library, host):
        try:
            yield host
        finally:
            host.recover()
            for card in host.cards:
                card.recover()


@pytest.fixture
def host(library, tmp_path):
    """A simulated server that pynvml reads; the test puts cards in."""
    with recovering(library, SimulatedHost.create(tmp_path / "server.nvml")) as host:
        yield host


@pytest.fixture
def legacy_host(legacy_library, tmp_path):
    """The same under a driver of the r470 branch."""
    with recovering(
        legacy_library, SimulatedHost.create(tmp_path / "server.nvml", driver_version="470.256.02")
    ) as host:
        yield host


class Watch:
    """A DriverWatch whose waiting is over whenever a test says so."""

    def __init__(self, *, has_host_pids=True, describe=lambda pid: None):
        self.ledger = FaultLedger(hold_seconds=0.0)
        self.driver = DriverWatch(ReadOptions(describe=describe, has_host_pids=has_host_pids), self.ledger)

    def round(self, **options):
        """Return uuid → reading of one round."""
        return {reading.uuid: reading for reading in self.driver.read(**options)}

    def round_after_backoff(self):
        """The same, as if the time until the next initialisation had passed."""
        assert self.driver._reopen_at is not None, "no new initialisation is planned"
        self.driver._reopen_at = 0.0
        return self.round()

    def slow_round(self):
        """The same, with the slow tier due."""
        for card in self.driver._session.cards:
            card._next_slow = 0.0
        return self.round()

    @property
    def state(self):
        return self.driver.driver.state


@pytest.fixture
def watch(monkeypatch):
    """A driver watch with short deadlines, closed afterwards."""
    monkeypatch.setattr(driver_module, "CARD_SECONDS", 0.3)
    monkeypatch.setattr(driver_module, "OPEN_WAIT_SECONDS", 0.5)
    watches = []

    def make(**options):
        watches.append(Watch(**options))
        return watches[-1]

    yield make
    for made in watches:
        eventually(lambda made=made: not made.driver._lanes.has_silent())
        made.driver.close()


@pytest.fixture
def panel():
    """A panel on loopback that keeps what it is sent."""
    with SmallPanel() as small_panel:
        yield small_panel


@pytest.fixture
def state(tmp_path):
    """A prepared state directory."""
    directory = StateDirectory(tmp_path / "state")
    directory.prepare()
    yield directory
    directory.unlock()


@pytest.fixture
def identity(panel):
    """An agent that has joined `panel`."""
    return Identity(
        panel.url, "fda_abcdefgh_secret", 7, "box", sample_interval_seconds=1.0, report_interval_seconds=1.0
    )
