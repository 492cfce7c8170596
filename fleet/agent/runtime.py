"""The agent itself: collect, batch, spool, send. Plain objects; who calls `sample`, `report` and `sync` when, is app's."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final
from uuid import uuid4

import msgspec
import zstandard

from fleet.agent import clock, wire
from fleet.agent.batch import Batcher, Round
from fleet.agent.capabilities import capabilities
from fleet.agent.engines.exposed.ledger import EngineLedger
from fleet.agent.engines.lane import EngineLane
from fleet.agent.faults.kernel_log import KernelLog
from fleet.agent.faults.ledger import FaultLedger
from fleet.agent.gateway.door import GatewayDoor
from fleet.agent.host.facts import read_host_facts
from fleet.agent.host.processes import ProcessDirectory, has_host_pids
from fleet.agent.host.samples import HostSampler
from fleet.agent.intervals import Intervals
from fleet.agent.jobs.lane import JobLane
from fleet.agent.listener import WAIT_SECONDS, Listener
from fleet.agent.nvml.card import ReadOptions
from fleet.agent.nvml.driver import DriverWatch
from fleet.agent.packing import packed
from fleet.agent.panel import PanelClient, PanelError
from fleet.agent.policy import Policy
from fleet.agent.probes.door import ProbesDoor
from fleet.agent.reporter import Reporter
from fleet.agent.spool import Spool
from fleet.agent.state import Identity, StateDirectory, StateError, Status

FACTS_SECONDS: Final = 300.0
STATUS_SECONDS: Final = 15.0
# While this many batches wait, they are cut larger: a day away is thousands of files instead of tens of thousands.
BACKLOG_BATCHES: Final = 12
BACKLOG_SECONDS: Final = 30.0
LAST_SEND_SECONDS: Final = 3.0
FIRST_ROUND_SECONDS: Final = 5.0
COMPRESSION_LEVEL: Final = 3

log = logging.getLogger(__name__)


class Agent:
    """One run of the agent on one machine.

    last_sample, last_report: when those were last done, in monotonic seconds.

    Each of `sample`, `report` and `sync` is skipped when the call before still runs, so that a slow driver or network
    never piles up work.
    """

    def __init__(self, state: StateDirectory, identity: Identity, policy: Policy) -> None:
        self.intervals = Intervals(identity, policy)
        self._started = self.last_sample = self.last_report = time.monotonic()
        self._on_stale_library = _do_nothing
        self._state = state
        self._policy = policy
        self._name = identity.name
        self._started_at_ms = clock.now().at_ms
        self._ledger = FaultLedger()
        self._kernel_log = KernelLog(self._ledger.note, state.kernel_log_path)
        self._driver = DriverWatch(read_options(policy), self._ledger)
        self._host = HostSampler()
        engine_ledger = EngineLedger(lambda: self.intervals.report_seconds)
        self._batcher = Batcher(
            str(uuid4()), self._ledger.take, capabilities(policy, identity), take_engines=engine_ledger.cut
        )
        self._spool = Spool(
            state.spool_path,
            max_bytes=policy.spool_megabytes * 1024 * 1024,
            max_age_seconds=policy.spool_hours * 3600,
        )
        self._client = PanelClient(identity.panel_url, identity.agent_token, identity.ca_file)
        self._reporter = Reporter(
            self._client, self._spool, on_answer=self._answered, on_refused=self._batcher.resend_facts
        )
        self._jobs = JobLane(state, identity, policy)
        self._engines = EngineLane(state, identity, policy, self._known_gpus, engine_ledger)
        self._gateway = GatewayDoor(state, identity, policy)
        self._probes = ProbesDoor(
            identity.server_id,
            policy,
            lambda: PanelClient(identity.panel_url, identity.agent_token, identity.ca_file),
        )
        waiting = PanelClient(identity.panel_url, identity.agent_token, identity.ca_file)
        waiting.be_patient(WAIT_SECONDS)
        self._listener = Listener(waiting, self._hear)
        self._encode = msgspec.msgpack.Encoder().encode
        self._compressor = zstandard.ZstdCompressor(level=COMPRESSION_LEVEL, write_checksum=True)
        self._sampling, self._cutting, self._sending = threading.Lock(), threading.Lock(), threading.Lock()
        self._gpus: dict[str, str] = {}
        self._next_facts = 0.0
        self._last_cut = float("-inf")
        self._has_sampled = False
        self._next_status = 0.0

    def start(self, *, on_stale_library: Callable[[], None]) -> None:
        """Begin to follow the kernel's log and the panel's wishes.

        on_stale_library: called when only a new process can read the driver.
        """
        self._on_stale_library = on_stale_library
        if self._policy.read_kernel_log:
            self._kernel_log.start()
        self._jobs.start()
        self._engines.start()
        self._gateway.start()
        self._listener.start()

    def sample(self) -> None:
        """Take one round."""
        with _unless_busy(self._sampling) as is_free:
            if is_free:
                taken = collect(self._driver, self._host, is_pcie_wanted=self.intervals.is_pcie_wanted)
                self._gpus = {gpu.uuid: gpu.state for gpu in taken.gpus}
                self._batcher.add(taken)
                self._refresh_facts()
                if not self._has_sampled:
                    self._has_sampled = True
                    self.intervals.hasten("report", 0.0)
                self.last_sample = time.monotonic()
                if self._driver.is_library_stale():
                    self._on_stale_library()

    def report(self) -> None:
        """Cut a batch when one is due, then send what waits."""
        with _unless_busy(self._cutting) as is_free:
            if is_free and self._is_cut_due():
                self._cut()
        with _unless_busy(self._sending) as is_free:
            if is_free:
                self._reporter.drain()
                if time.monotonic() >= self._next_status:
                    self._write_status()
                self.last_report = time.monotonic()
        if len(self._spool):
            self.intervals.hasten("report", self._reporter.seconds_until_due)

    def sync(self) -> None:
        """Ask the panel what should be so on this machine, unless it was heard in the usual way a moment ago.

        While it does not answer reports, it is not asked this either.
        """
        if self._reporter.last_error or self._listener.is_hearing:
            return
        with _unless_busy(self._sending) as is_free:
            if is_free:
                try:
                    self._hear(self._client.assignments())
                except PanelError as error:
                    log.info("No assignments: %s", error)

    def close(self) -> None:
        """Send a last report if the panel takes it at once; what it does not take waits in the spool."""
        self._kernel_log.stop()
        self._listener.stop()
        self._jobs.close()
        self._engines.close()
        self._gateway.close()
        self._probes.close()
        with self._cutting:
            self._cut(is_last=True)
        if self._sending.acquire(timeout=LAST_SEND_SECONDS):
            self._client.hurry(LAST_SEND_SECONDS)
            self._reporter.drain(LAST_SEND_SECONDS)
            self._client.close()
        if self._sampling.acquire(timeout=LAST_SEND_SECONDS):
            self._driver.close()

    # ---- inside

    def _is_cut_due(self) -> bool:
        """Say whether it is time for a batch: `report` is also called in between, to send again.

        The first waits for the first round, which a slow driver can draw out: whoever joins a machine waits for its cards.
        """
        if not self._has_sampled and time.monotonic() - self._started < FIRST_ROUND_SECONDS:
            return False
        interval = self.intervals.report_seconds
        if len(self._spool) >= BACKLOG_BATCHES:
            interval = max(interval, BACKLOG_SECONDS)
        # Being called a moment early is no reason to wait for the next call.
        return time.monotonic() - self._last_cut >= interval - min(0.5, interval / 2)

    def _cut(self, *, is_last: bool = False) -> None:
        """Write what is pending to the spool as a batch with its final name."""
        self._last_cut = time.monotonic()
        if is_last:
            self._ledger.hold_seconds = 0.0  # nobody is left to wait for twins
        batch = self._batcher.cut(spooled_batches=len(self._spool), lost_samples=self._spool.lost_samples)
        body = self._compressor.compress(self._encode(packed(batch.report)))
        self._spool.append(batch.report.boot_id, batch.report.seq, batch.samples, body)
        if not self._ledger.has_untold():
            self._kernel_log.save_cursor()

    def _answered(self, answer: wire.ReportAnswer) -> None:
        if answer.needs_facts:
            self._batcher.resend_facts()
        self.intervals.follow_answer(answer)

    def _hear(self, assignments: wire.Assignments) -> None:
        self.intervals.follow_assignments(assignments)
        ports = {order.port for order in assignments.replicas}
        self._jobs.follow(assignments.version, assignments.jobs, ports)
        self._engines.follow(assignments.version, assignments.replicas)
        self._gateway.follow(assignments.version, assignments.gateway)
        self._probes.follow(assignments.probes, ports)

    def _known_gpus(self) -> dict[str, str] | None:
        """Return the cards for those who give them to engines, None while the driver has not been read."""
        return self._gpus if self._has_sampled else None

    def _refresh_facts(self) -> None:
        if time.monotonic() >= self._next_facts:
            self._next_facts = time.monotonic() + FACTS_SECONDS
            self._batcher.add_host_facts(read_host_facts(self._name))

    def _write_status(self) -> None:
        self._next_status = time.monotonic() + STATUS_SECONDS
        driver = self._driver.driver
        status = Status(
            at_ms=clock.now().at_ms,
            started_at_ms=self._started_at_ms,
            driver_state=driver.state,
            driver_detail=driver.detail,
            gpus=self._gpus,
            spooled_batches=len(self._spool),
            lost_samples=self._spool.lost_samples,
            refused_batches=self._spool.refused_batches,
            seconds_since_acknowledged=round(self._reporter.seconds_since_success, 1),
            last_error=self._reporter.last_error,
        )
        try:
            self._state.write_status(status)
        except StateError as error:
            log.debug("%s", error)


def _do_nothing() -> None:
    pass


@contextmanager
def _unless_busy(lock: threading.Lock) -> Iterator[bool]:
    """Hold a lock if it is free; gives whether it was."""
    is_free = lock.acquire(blocking=False)
    try:
        yield is_free
    finally:
        if is_free:
            lock.release()


def read_options(policy: Policy) -> ReadOptions:
    """Return how cards are read on this machine."""
    are_pids_known = has_host_pids()
    directory = ProcessDirectory(is_visible=bool(are_pids_known), is_private=not policy.tell_process_names)
    return ReadOptions(describe=directory.describe, has_host_pids=are_pids_known)


def collect(driver: DriverWatch, host: HostSampler, *, is_pcie_wanted: bool = False) -> Round:
    """Read everything once."""
    gpus = driver.read(is_pcie_wanted=is_pcie_wanted)
    return Round(driver.driver, gpus, host.read())
