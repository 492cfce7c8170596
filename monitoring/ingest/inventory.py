"""When a report's inventory must be applied, and which GPU ids its samples go to.

Most reports say nothing new but numbers. The rest (facts, health, processes, faults, a changed state) goes through
`fleet.services.inventory` before the samples are stored, so that a retry after a failure applies it again.
"""

from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from fleet.agent import wire
from fleet.enums import GpuState, ServerState
from fleet.models import Gpu, Server
from fleet.services.agents import AgentIdentity
from fleet.services.inventory import carries_samples, inventory_apply
from monitoring.ingest.body import ABSENT, QuickReport, decode_full, is_present
from panel.core.threads import DjangoThreads

REAPPLY_SECONDS: Final = 60.0  # another process may have applied something else since
MAX_AGENTS: Final = 20_000
_SETTLED: Final = frozenset({ServerState.READY, ServerState.DEGRADED})

Signature = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Applied:
    """What was applied of one agent last: uuid → GPU id, and whether the panel still lacks facts of the machine, or any
    sample of it.
    """

    signature: Signature
    gpu_ids: dict[str, int]
    needs_facts: bool
    lacks_samples: bool
    at: float


def signature_of(report: QuickReport) -> Signature:
    """Return what must be the same as last time for a report to be only numbers."""
    driver = report.driver
    cards = tuple([(gpu.uuid, gpu.index, gpu.parent_uuid, gpu.state, gpu.reason) for gpu in report.gpus])
    return (
        report.boot_id,
        driver.state,
        driver.detail,
        driver.version,
        report.agent_version,
        tuple(report.capabilities),
        cards,
    )


def has_news(report: QuickReport) -> bool:
    """Say whether a report carries more than numbers and states."""
    parts = [report.host, report.faults]
    for gpu in report.gpus:
        parts += (gpu.facts, gpu.health, gpu.processes, gpu.unsupported)
    return any(is_present(part) for part in parts if part is not ABSENT)


class Inventories:
    """What this process applied last, by agent."""

    def __init__(self, threads: DjangoThreads) -> None:
        self._threads = threads
        self._applied: OrderedDict[int, Applied] = OrderedDict()

    def settled(self, identity: AgentIdentity, report: QuickReport, now: float) -> Applied | None:
        """Return what is known when this report brings only numbers, else None. now: monotonic seconds."""
        applied = self._applied.get(identity.agent_id)
        if applied is None or now - applied.at > REAPPLY_SECONDS or identity.server_state not in _SETTLED:
            return None
        if applied.lacks_samples and carries_samples(report):
            return None
        return applied if applied.signature == signature_of(report) and not has_news(report) else None

    async def apply(
        self,
        *,
        identity: AgentIdentity,
        report: QuickReport,
        plain: bytes,
        encoding: str,
        received_ms: float,
        skew_seconds: float | None,
        address: str | None,
        now: float,
    ) -> Applied:
        """Apply the report's inventory. Raises Refused (400) when a part of it cannot be read, and what the service raises."""
        full = decode_full(plain, encoding)
        gpu_ids, needs_facts, lacks_samples = await self._threads.run(
            _apply,
            identity=identity,
            report=full,
            received_at=datetime.fromtimestamp(received_ms / 1000, tz=UTC),
            skew_seconds=skew_seconds,
            address=address,
        )
        applied = Applied(signature_of(report), gpu_ids, needs_facts, lacks_samples, now)
        self._applied[identity.agent_id] = applied
        self._applied.move_to_end(identity.agent_id)
        if len(self._applied) > MAX_AGENTS:
            self._applied.popitem(last=False)
        return applied


def _apply(
    *,
    identity: AgentIdentity,
    report: wire.Report,
    received_at: datetime,
    skew_seconds: float | None,
    address: str | None,
) -> tuple[dict[str, int], bool, bool]:
    gpu_ids = inventory_apply(
        agent_id=identity.agent_id,
        report=report,
        received_at=received_at,
        clock_skew_seconds=skew_seconds,
        address=address,
    )
    facts_at, first_sample_at = Server.objects.values_list("facts_at", "first_sample_at").get(pk=identity.server_id)
    lacks_card = Gpu.objects.filter(server=identity.server_id, parent=None, state=GpuState.OK, facts={}).exists()
    return gpu_ids, facts_at is None or lacks_card, first_sample_at is None
