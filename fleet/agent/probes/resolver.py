"""Names by threads of our own, each question with a deadline: a slow name holds up no other one.

asyncio's own way shares a handful of threads with everything else in the process, and a lookup cannot be cut off there.
"""

import asyncio
import queue
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from fleet.agent.probes.result import ProbeError

THREADS: Final = 32
FOR_ONE_NAME: Final = 2  # lookups that hang go on for as long as the system likes; more of them would tell nothing new
IDLE_SECONDS: Final = 30.0
MOST_ADDRESSES: Final = 16

Lookup = Callable[..., list[Any]]


@dataclass(frozen=True, slots=True)
class Found:
    """Addresses in the system's order; when they were there (monotonic); how many seconds no thread was free."""

    addresses: list[str]
    ended: float
    waited: float


@dataclass(slots=True)
class _Question:
    host: str
    family: int
    asked: float
    loop: asyncio.AbstractEventLoop
    answer: "asyncio.Future[Found]"


class Resolver:
    """A pool of threads that ask the system for addresses. lookup: socket.getaddrinfo, or another in tests."""

    def __init__(self, *, threads: int = THREADS, lookup: Lookup = socket.getaddrinfo) -> None:
        self._most, self._lookup = threads, lookup
        self._questions: queue.SimpleQueue[_Question] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads = self._free = 0
        self._asked: Counter[str] = Counter()

    async def find(self, host: str, family: Literal[4, 6] | None = None) -> Found:
        """Return a host's addresses; cut it off with a timeout around it. Raises ProbeError with outcome dns."""
        with self._lock:
            if self._asked[host] >= FOR_ONE_NAME:
                raise ProbeError("dns", "resolver_busy", f"earlier lookups of {host} have not come back yet")
            self._asked[host] += 1
        loop = asyncio.get_running_loop()
        kind = {4: socket.AF_INET, 6: socket.AF_INET6, None: socket.AF_UNSPEC}[family]
        question = _Question(host, kind, time.monotonic(), loop, loop.create_future())
        self._put(question)
        return await question.answer

    def _put(self, question: _Question) -> None:
        with self._lock:
            self._questions.put(question)
            if self._questions.qsize() <= self._free or self._threads >= self._most:
                return
            self._threads += 1
        threading.Thread(target=self._work, name="probe resolver", daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._lock:
                self._free += 1
            try:
                question = self._questions.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                question = None
            with self._lock:
                self._free -= 1
                if question is None:
                    if not self._questions.empty():
                        continue
                    self._threads -= 1
                    return
            self._answer(question)

    def _answer(self, question: _Question) -> None:
        waited = time.monotonic() - question.asked
        try:
            if question.answer.done():  # whoever asked has given up
                return
            said = self._ask(question, waited)
        finally:
            with self._lock:
                self._asked[question.host] -= 1
                if not self._asked[question.host]:
                    del self._asked[question.host]
        try:
            question.loop.call_soon_threadsafe(_tell, question.answer, said)
        except RuntimeError:
            return  # the loop is closed, nobody waits any more

    def _ask(self, question: _Question, waited: float) -> Found | ProbeError:
        try:
            entries = self._lookup(question.host, None, family=question.family, type=socket.SOCK_STREAM)
        except UnicodeError:
            return ProbeError("dns", "not_a_name", f"{question.host} is no name that can be asked for")
        except OSError as error:
            reason = "not_found" if getattr(error, "errno", None) in _NOT_FOUND else "resolver_failed"
            return ProbeError("dns", reason, f"{question.host}: {error.strerror or error}")
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in entries))[:MOST_ADDRESSES]
        return Found(addresses, time.monotonic(), waited)


_NOT_FOUND: Final = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}


def _tell(answer: "asyncio.Future[Found]", said: Found | ProbeError) -> None:
    if answer.done():
        return
    if isinstance(said, ProbeError):
        answer.set_exception(said)
    else:
        answer.set_result(said)
