"""Host names of replicas in numbers: asked in the background, kept while nothing better is known."""

import ipaddress
import socket
import threading
import time
from collections.abc import Callable
from typing import Final

FRESH_SECONDS: Final = 30.0
FIRST_WAIT_SECONDS: Final = 1.0


class Resolver:
    """Remembers what names resolved to. on_change: called, in another thread, when a name means something else now."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._lock = threading.Lock()
        self._known: dict[str, str] = {}
        self._asked_at: dict[str, float] = {}

    def __call__(self, name: str) -> str | None:
        """Return the address, None when the name has never resolved. Waits a moment for a name that is new."""
        try:
            return str(ipaddress.ip_address(name))
        except ValueError:
            pass
        with self._lock:
            is_due = time.monotonic() - self._asked_at.get(name, float("-inf")) >= FRESH_SECONDS
            if is_due:
                self._asked_at[name] = time.monotonic()
            is_new = name not in self._known
        if is_due:
            thread = threading.Thread(target=self._ask, args=(name,), name="resolver", daemon=True)
            thread.start()
            if is_new:
                thread.join(FIRST_WAIT_SECONDS)
        return self._known.get(name)

    def refresh(self) -> None:
        """Ask again for every name whose answer is old."""
        for name in list(self._asked_at):
            self(name)

    def _ask(self, name: str) -> None:
        try:
            found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            return
        addresses = sorted({str(entry[4][0]) for entry in found})
        with self._lock:
            before = self._known.get(name)
            is_changed = bool(addresses) and before not in addresses
            if is_changed:
                self._known[name] = addresses[0]
        if is_changed:
            self._on_change()
