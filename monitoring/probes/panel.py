"""The panel's own prober: one thread in each process that probes, started at first need."""

import threading
from functools import lru_cache
from typing import Final

from django.conf import settings

from fleet.agent.probes.addresses import Rules
from fleet.agent.probes.prober import Prober
from fleet.agent.probes.result import ProbeResult
from fleet.agent.probes.target import Connection, Target
from fleet.agent.probes.thread import ProberThread

VANTAGE: Final = "panel"
_lock = threading.Lock()


def panel_rules() -> Rules:
    """Return what the panel may connect to: the same as for everything else that it fetches (FLEETDECK_EGRESS_ALLOW)."""
    return Rules.of(settings.EGRESS_ALLOW)


def panel_prober() -> Prober:
    """Return a prober of the panel's; it belongs to the event loop in which it is entered."""
    return Prober(VANTAGE, rules=panel_rules())


def probe_now(target: Target, connection: Connection = "cold") -> ProbeResult:
    """Probe once from this process and wait for it, for as long as the target's timeout at most and a turn before it."""
    return _thread().run(target, connection)


@lru_cache(maxsize=1)
def _started() -> ProberThread:
    thread = ProberThread(panel_prober, sink=lambda _result: None)
    thread.start()
    return thread


def _thread() -> ProberThread:
    with _lock:
        return _started()
