"""Whether Envoy still answers: a process that lives and is stuck keeps its port and serves nobody."""

import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Final

from fleet.agent.gateway.envoy.routing import ALIVE_PATH
from fleet.agent.orders import GatewayOrder

LOOK_SECONDS: Final = 2.0
# Callers' own port is asked less often: each question is a line in the access log.
CALLERS_SECONDS: Final = 10.0
ANSWER_SECONDS: Final = 2.0
# Looks in a row without an answer: of one that uses no processor time it is stuck; another may only be busy.
STUCK_LOOKS: Final = 4
BUSY_LOOKS: Final = 15


class Pulse:
    """Looks at one Envoy after the other. Any answer counts, a refusal too: only silence is none."""

    def __init__(self) -> None:
        self._begin(None, 0.0)

    def _begin(self, pid: int | None, now: float) -> None:
        """Have nothing of before count: this is another process."""
        self._process, self._looked_at, self._asked_callers_at = pid, float("-inf"), now
        self._misses = self._idle_misses = 0
        self._ticks: int | None = None

    @property
    def is_silent(self) -> bool:
        """Whether it left more than one look in a row without an answer."""
        return self._misses > 1

    def is_stuck(self, pid: int, is_admin_silent: Callable[[], bool], order: GatewayOrder, now: float) -> bool:
        """Look, when that is due; say whether this process has been silent for too long. May take as long as an answer."""
        if pid != self._process:
            self._begin(pid, now)
        if now - self._looked_at < LOOK_SECONDS:
            return False
        self._looked_at = now
        is_silent = is_admin_silent()
        if not is_silent and (self._misses or now - self._asked_callers_at >= CALLERS_SECONDS):
            self._asked_callers_at = now
            is_silent = is_port_silent(order)
        ticks = processor_ticks(pid)
        is_idle = ticks == self._ticks
        self._ticks = ticks
        self._misses = self._misses + 1 if is_silent else 0
        self._idle_misses = self._idle_misses + 1 if is_silent and is_idle else 0
        return self._idle_misses >= STUCK_LOOKS or self._misses >= BUSY_LOOKS


def is_port_silent(order: GatewayOrder) -> bool:
    """Say whether a caller would wait in vain. A refused connection is an answer: what that means is told elsewhere."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(order.host, order.host)  # noqa: S104  # what it listens on
    try:
        with socket.create_connection((host, order.port), timeout=ANSWER_SECONDS) as plain:
            connection = _unverified().wrap_socket(plain) if order.certificate_file else plain
            connection.sendall(f"GET {ALIVE_PATH} HTTP/1.1\r\nhost: gateway\r\nconnection: close\r\n\r\n".encode())
            connection.recv(1)
    except TimeoutError:
        return True
    except OSError:
        return False
    return False


def processor_ticks(pid: int) -> int | None:
    """Return how much processor time a process has used, in clock ticks; None for one that is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return int(fields[11]) + int(fields[12])


def _unverified() -> ssl.SSLContext:
    """Whether anybody is there is asked, and not who."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context
