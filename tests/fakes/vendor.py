"""What the fake servers of all vendors share: machines that live, and the ways in which a provider misbehaves.

A fake speaks its vendor's own words through `answer`, `key_refused`, `too_many` and `no_capacity`; the switches below are the
same for all. Time passes by `advance()` alone.
"""

import itertools
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import UTC, datetime

import httpx

ADVANCE = {"provisioning": "running", "stopping": "stopped", "starting": "running", "terminating": "gone"}


@dataclass
class FakeMachine:
    """A machine at the fake vendor. status: our word; raw: the vendor's, when a test sets an odd one."""

    id: str
    name: str
    status: str = "provisioning"
    raw: str | None = None
    gpu: str = ""
    gpu_count: int = 1
    is_spot: bool = False
    is_preempted: bool = False
    created_at: datetime = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)
    facts: dict = field(default_factory=dict)


class FakeVendor(ABC):
    """A stateful server of one account at one vendor."""

    kind: str
    credentials: dict
    options: dict = {}
    order_options: dict = {}
    page_size: int | None = None
    has_retry_after = False
    tells_prices = True  # whether the API has a price for what can be ordered

    def __init__(self):
        self.machines: dict[str, FakeMachine] = {}
        self.requests: list[httpx.Request] = []
        self.creates = 0
        self.is_key_valid = True
        self.has_capacity = True
        self.throttled = 0  # so many calls get the vendor's "too many"
        self.down = 0  # so many calls get a 503
        self.broken_after_write = 0  # so many writes are done and answered with a 502
        self.lost_replies = 0  # so many writes are done and never answered
        self.hidden = 0  # so many listings do not show the newest machine yet
        self._ids = itertools.count(101)

    @property
    def transport(self):
        """Return the way to this server for an adapter."""
        return httpx.MockTransport(self._handle)

    def problems(self, request):
        """Return what the vendor's own specification does not allow in a request; [] where there is none at hand."""
        return []

    def complaints(self):
        """Return the problems of all requests that came so far."""
        return [problem for request in self.requests for problem in self.problems(request)]

    def next_id(self):
        """Return a fresh id in the vendor's form."""
        return str(next(self._ids))

    def add(self, name="machine", **facts):
        """Put a machine there that somebody else made."""
        machine = FakeMachine(id=self.next_id(), name=name, **{"status": "running", **self.default_facts(), **facts})
        self.machines[machine.id] = machine
        return machine

    def default_facts(self):
        """Return the facts of a machine when the test does not care."""
        return {}

    def advance(self):
        """Let time pass: what was on its way arrives."""
        for machine in list(self.machines.values()):
            machine.status = ADVANCE.get(machine.status, machine.status)
            if machine.status == "gone":
                del self.machines[machine.id]

    def vanish(self, machine_id):
        """Take a machine away as if ended in the vendor's console."""
        del self.machines[machine_id]

    def preempt(self, machine_id):
        """Take a spot machine back."""
        self.machines[machine_id].is_preempted = True

    def listed(self):
        """Return the machines that a listing shows now."""
        machines = list(self.machines.values())
        if self.hidden > 0 and machines:
            self.hidden -= 1
            return machines[:-1]
        return machines

    def _handle(self, request):
        self.requests.append(request)
        if self.down > 0:
            self.down -= 1
            return httpx.Response(503, text="<html>Service unavailable</html>")
        if not self.is_key_valid or not self.is_authorised(request):
            return self.key_refused(request)
        if self.throttled > 0:
            self.throttled -= 1
            return self.too_many(request)
        if self.is_create(request) and not self.has_capacity:
            return self.no_capacity(request)
        known = len(self.machines)
        response = self.answer(request)
        self.creates += len(self.machines) > known
        if self.is_write(request) and response.status_code < 400:
            if self.broken_after_write > 0:
                self.broken_after_write -= 1
                return httpx.Response(502, text="<html>Bad gateway</html>")
            if self.lost_replies > 0:
                self.lost_replies -= 1
                raise httpx.ReadTimeout("the reply was lost", request=request)
        return response

    @abstractmethod
    def is_authorised(self, request) -> bool:
        """Say whether the request carries a valid key or signature, checked as the vendor does."""

    @abstractmethod
    def is_write(self, request) -> bool:
        """Say whether the request changes something."""

    @abstractmethod
    def is_create(self, request) -> bool:
        """Say whether the request orders a machine."""

    @abstractmethod
    def answer(self, request) -> httpx.Response:
        """Do what is asked and answer as the vendor does."""

    @abstractmethod
    def key_refused(self, request) -> httpx.Response:
        """Answer a key that is wrong or has expired."""

    @abstractmethod
    def too_many(self, request) -> httpx.Response:
        """Answer a call that came too soon."""

    @abstractmethod
    def no_capacity(self, request) -> httpx.Response:
        """Answer an order that cannot be met now."""
