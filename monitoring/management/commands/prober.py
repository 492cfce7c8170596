"""`manage.py prober`: the panel as a place that probes. Any number may run; one of them probes, the others wait for its end."""

import signal
import threading
import time
from typing import Any, Final

import structlog
from django.core.management.base import BaseCommand
from django.db import Error as DatabaseError
from django.db import connection

from fleet.agent.probes.collected import Collected
from fleet.agent.probes.thread import ProberThread
from monitoring.diagnosing.panel import PanelRounds
from monitoring.golive_runs.panel_load import PanelLoads
from monitoring.probes.panel import panel_prober
from monitoring.probing.storing import known_probes, results_store
from monitoring.probing.tables import PANEL
from monitoring.probing.targets import targets_for
from panel.core import liveness
from panel.core.clock import now

# First half of the advisory lock's key. It is held by the session, so that a prober that dies makes way at once.
_ADVISORY_CLASS: Final = 0x0FD6
ROUND_SECONDS: Final = 2.0
STAND_BY_SECONDS: Final = 5.0
TARGETS_SECONDS: Final = 10.0
log = structlog.get_logger(__name__)


class Command(BaseCommand):
    """See the module."""

    help = "Probe from the panel what is to be probed from there, until stopped."

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Run until SIGTERM or SIGINT."""
        ending = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: ending.set())
        while not ending.is_set():
            try:
                if _is_leading():
                    _probe(ending)
                else:
                    liveness.prober_alive()
                    ending.wait(STAND_BY_SECONDS)
            except DatabaseError as error:
                log.warning("prober.database_away", error=str(error))
                connection.close()
                ending.wait(ROUND_SECONDS)
        connection.close()


def _is_leading() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, 0)", [_ADVISORY_CLASS])
        return bool(cursor.fetchone()[0])


def _probe(ending: threading.Event) -> None:
    """Probe and store while the lock is held. Raises DatabaseError when the session is gone, and the lock with it."""
    collected = Collected()
    thread = ProberThread(panel_prober, sink=collected)
    thread.start()
    rounds = PanelRounds(thread)
    loads = PanelLoads()
    try:
        read_at = float("-inf")
        while not ending.is_set():
            if time.monotonic() - read_at >= TARGETS_SECONDS:
                read_at = time.monotonic()
                thread.set_targets(targets_for(PANEL))
            _store(collected)
            rounds.step(now())
            loads.look()
            liveness.prober_alive()
            ending.wait(ROUND_SECONDS)
    finally:
        rounds.close()
        loads.close()
        thread.stop()
    _store(collected)


def _store(collected: Collected) -> None:
    while results := collected.take():
        try:
            results_store(server_id=PANEL, results=results, known=known_probes(PANEL), at=now())
        except DatabaseError:
            collected.put_back(results)
            raise
