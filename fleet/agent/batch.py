"""Rounds become batches: what was read since the last batch, with just as much of the rest as has changed."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from fleet.agent import __version__, clock, wire, wire_engines
from fleet.agent.nvml.card import GpuReading
from fleet.agent.packing import columns

TakeEngines = Callable[[], tuple[list[wire_engines.Engine], list[wire_engines.EngineSample]]]

CAPABILITIES: Final = ("nvml", "host")


@dataclass(frozen=True, slots=True)
class Round:
    """One reading of everything: the driver, each known card and instance, the host."""

    driver: wire.Driver
    gpus: list[GpuReading]
    host: wire.HostSample


@dataclass(frozen=True, slots=True)
class Batch:
    """A report that has its name, (boot_id, seq), and will keep it. samples: how many readings are lost with it."""

    report: wire.Report
    samples: int


class Batcher:
    """Collects rounds and cuts batches; threads may add and cut at once.

    boot_id: names this run of the agent. take_faults: gives at most so many faults that are to be told. capabilities: what this
    agent can do. take_engines: gives what engines told since the last time.
    """

    def __init__(
        self,
        boot_id: str,
        take_faults: Callable[[int], list[wire.Fault]],
        capabilities: Sequence[str] = CAPABILITIES,
        take_engines: TakeEngines = lambda: ([], []),
    ) -> None:
        self.boot_id = boot_id
        self._capabilities = list(capabilities)
        self.lost_samples = 0
        self._take_faults = take_faults
        self._take_engines = take_engines
        self._lock = threading.Lock()
        self._seq = 0
        self._driver = wire.Driver("unknown")
        self._gpus: dict[str, _Pending] = {}
        self._listed: set[str] = set()
        self._host = _PendingHost()

    def add(self, taken: Round) -> None:
        """Add one round. Without batches being cut memory stays bounded: the oldest samples go, and are counted."""
        with self._lock:
            self._driver = taken.driver
            self._listed = {reading.uuid for reading in taken.gpus}
            self._forget_unlisted()
            for reading in taken.gpus:
                pending = self._gpus.setdefault(reading.uuid, _Pending(reading))
                self.lost_samples += pending.add(reading)
            self._host.add(taken.host)

    def add_host_facts(self, facts: wire.HostFacts) -> None:
        """Have the host's facts sent if they are not what was sent before."""
        with self._lock:
            self._host.facts = facts

    def resend_facts(self) -> None:
        """Have everything sent again that is only sent when it changes: the panel does not have it."""
        with self._lock:
            self._host.sent_facts = None
            for pending in self._gpus.values():
                pending.forget_sent()

    def cut(self, *, spooled_batches: int, lost_samples: int) -> Batch:
        """Return what is pending as the next batch, which may have no samples: a sign of life."""
        faults = self._take_faults(wire.LIMITS["faults"])
        engines, engine_rows = self._take_engines()
        with self._lock:
            self._seq += 1
            gpus = [pending.cut() for pending in self._bounded()]
            host_samples, host_previous, facts = self._host.cut()
            self._forget_unlisted()
            report = wire.Report(
                protocol=wire.PROTOCOL,
                boot_id=self.boot_id,
                seq=self._seq,
                agent_version=__version__,
                driver=self._driver,
                gpus=gpus,
                host_samples=host_samples,
                host_previous=host_previous,
                host=facts,
                faults=faults,
                os_boot_id=clock.os_boot_id(),
                spooled_batches=spooled_batches,
                lost_samples=lost_samples + self.lost_samples,
                capabilities=self._capabilities,
                engines=engines,
                engine_columns=columns(engine_rows),
            )
        return Batch(report, max(len(host_samples), sum(len(gpu.samples) for gpu in gpus)))

    def _forget_unlisted(self) -> None:
        """Forget what the last round did not list, once its samples are out: instances that were taken apart."""
        for uuid in [uuid for uuid, pending in self._gpus.items() if uuid not in self._listed and not pending.samples]:
            del self._gpus[uuid]

    def _bounded(self) -> list["_Pending"]:
        """Return the pending cards, no more of them than a report may name."""
        cards = [pending for pending in self._gpus.values() if not pending.latest.parent_uuid]
        allowed = {pending.latest.uuid for pending in cards[: wire.LIMITS["gpus"]]}
        return [
            pending
            for pending in self._gpus.values()
            if pending.latest.uuid in allowed or pending.latest.parent_uuid in allowed
        ]


class _Pending:
    """What is to be told of one card or instance."""

    def __init__(self, reading: GpuReading) -> None:
        self.latest = reading
        self.samples: list[wire.GpuSample] = []
        self._previous: wire.GpuSample | None = None
        self._health: wire.GpuHealth | None = None
        self._processes: list[wire.GpuProcess] | None = None
        self._visibility = ""
        self._sent_facts: wire.GpuFacts | None = None
        self._sent_unsupported: dict[str, str] | None = None

    def add(self, reading: GpuReading) -> int:
        """Take one reading; returns how many samples that pushed out."""
        self.latest = reading
        self._health = reading.health or self._health
        if reading.processes is not None:
            self._processes, self._visibility = reading.processes, reading.processes_visibility
        if reading.sample is None:
            return 0
        self.samples.append(reading.sample)
        surplus = len(self.samples) - wire.LIMITS["samples_per_gpu"]
        if surplus > 0:
            self._previous = self.samples[surplus - 1]
            del self.samples[:surplus]
            return surplus
        return 0

    def forget_sent(self) -> None:
        self._sent_facts = self._sent_unsupported = None

    def cut(self) -> wire.Gpu:
        latest = self.latest
        gpu = wire.Gpu(
            uuid=latest.uuid,
            index=latest.index,
            parent_uuid=latest.parent_uuid,
            state=latest.state,
            reason=latest.reason,
            samples=self.samples,
            previous=self._previous if self.samples else None,
            facts=latest.facts if latest.facts != self._sent_facts else None,
            unsupported=latest.unsupported if latest.unsupported != self._sent_unsupported else None,
            health=self._health,
            processes=self._processes,
            processes_visibility=self._visibility if self._processes is not None else "",
        )
        if latest.facts is not None:
            self._sent_facts, self._sent_unsupported = latest.facts, latest.unsupported
        else:
            gpu.unsupported = None
        if self.samples:
            self._previous = self.samples[-1]
        self.samples, self._health, self._processes = [], None, None
        return gpu


class _PendingHost:
    """What is to be told of the host."""

    def __init__(self) -> None:
        self.facts: wire.HostFacts | None = None
        self.sent_facts: wire.HostFacts | None = None
        self._samples: list[wire.HostSample] = []
        self._previous: wire.HostSample | None = None

    def add(self, sample: wire.HostSample) -> None:
        self._samples.append(sample)
        del self._samples[: -wire.LIMITS["host_samples"]]

    def cut(self) -> tuple[list[wire.HostSample], wire.HostSample | None, wire.HostFacts | None]:
        samples, previous = self._samples, self._previous
        self._samples = []
        if samples:
            self._previous = samples[-1]
        facts = self.facts if self.facts != self.sent_facts else None
        self.sent_facts = self.facts
        return samples, previous if samples else None, facts
