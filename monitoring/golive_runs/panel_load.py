"""The panel as a place that loads: one process for one part, beside the prober that started it and out of its way."""

import subprocess
import sys
import threading
import time
from typing import IO, Final

import msgspec
import structlog
from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connection

from fleet.agent.load.order import LoadAnswer, LoadPiece
from monitoring.golive_runs.enums import PartState
from monitoring.golive_runs.following import golive_order, golive_piece
from monitoring.golive_runs.models import GoLivePart
from monitoring.probes.panel import VANTAGE
from monitoring.probing.tables import PANEL
from panel.core.errors import FleetdeckError

PATIENCE_SECONDS: Final = 60.0
END_SECONDS: Final = 5.0
log = structlog.get_logger(__name__)


class PanelLoads:
    """Carries out the panel's parts one after the other, in a thread of its own. `look` and `close` are of one thread."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._is_closing = False

    def look(self) -> None:
        """Begin with the oldest part that waits, unless one is under way. One query."""
        if self._thread is not None and self._thread.is_alive():
            return
        waiting = GoLivePart.objects.filter(server_id=PANEL, state=PartState.PENDING, run__ended_at=None)
        part_id = waiting.order_by("pk").values_list("pk", flat=True).first()
        if part_id is not None:
            self._thread = threading.Thread(target=self._work, args=(part_id,), name="panel load", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End what is under way: its part is noticed as silent."""
        self._is_closing = True
        child = self._child
        if child is not None:
            child.kill()
        if self._thread is not None:
            self._thread.join(END_SECONDS)

    def _work(self, part_id: int) -> None:
        try:
            self._carry(part_id)
        except (FleetdeckError, DatabaseError, OSError) as error:
            log.warning("golive.panel_load_failed", part=part_id, error=str(error))
        finally:
            self._child = None
            connection.close()

    def _carry(self, part_id: int) -> None:
        order = golive_order(part_id=part_id, server_id=PANEL)
        child = subprocess.Popen(
            [sys.executable, "-m", "fleet.agent.load"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._child = child
        assert child.stdin is not None  # noqa: S101  # asked for above
        assert child.stdout is not None  # noqa: S101
        try:
            given = {"order": msgspec.to_builtins(order), "vantage": VANTAGE, "networks": settings.EGRESS_ALLOW}
            _write(child.stdin, msgspec.json.encode(given))
            for line in child.stdout:
                piece = msgspec.json.decode(line, type=LoadPiece)
                _write(child.stdin, msgspec.json.encode(self._answer(piece)))
        except BrokenPipeError:
            return  # it has ended; what it told is kept
        finally:
            child.kill()
            child.wait()

    def _answer(self, piece: LoadPiece) -> LoadAnswer:
        """Store a piece, again while the database is away; one that nobody wants ends the load."""
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return golive_piece(piece=piece, server_id=PANEL)
            except FleetdeckError:
                return LoadAnswer(go_on=False)
            except DatabaseError:
                connection.close()
                if self._is_closing or time.monotonic() > end:
                    return LoadAnswer(go_on=False)
                time.sleep(1.0)


def _write(pipe: IO[bytes], line: bytes) -> None:
    pipe.write(line + b"\n")
    pipe.flush()
