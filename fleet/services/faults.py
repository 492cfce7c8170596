"""XIDs and other faults that agents saw: each sighting counted once whoever told it, bursts kept as one row."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import structlog

from fleet.agent import wire
from fleet.models import FaultSighting, Gpu, GpuFault, Server
from fleet.pci import same_bus_id
from fleet.services.bulk import rows_update
from fleet.services.cleaning import clean_text
from fleet.services.judging import FAULT_QUIET
from fleet.services.transitions import gpu_title
from fleet.xids import fault_severity
from panel.core.enums import Severity
from panel.core.events import event_write

# Agents read the kernel log from its beginning each time they start: what is older than this is history, not news, and
# is not taken (its sightings may have been cleared away, so it could be counted again).
OLDEST_FAULT: Final = timedelta(days=30)
SIGHTING_RETENTION: Final = timedelta(days=35)
# Older ones get a row and no event: nobody needs waking for last week's.
EVENT_AGE: Final = timedelta(hours=24)
# A machine under its landlord's control may send what it likes; past this it only fills our tables.
MAX_SIGHTINGS_PER_HOUR: Final = 2_000
MAX_CODE: Final = 100_000

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Sighting:
    """One card, code and second, as one report tells it."""

    key: str
    gpu: Gpu | None
    kind: str
    code: int
    at: datetime
    count: int
    source: str
    pci_bus_id: str
    message: str

    @property
    def group(self) -> tuple[int | None, str, str, int]:
        """What faults are counted by."""
        return (self.gpu.pk if self.gpu else None, self.pci_bus_id if self.gpu is None else "", self.kind, self.code)


def _find_gpu(fault: wire.Fault, gpus: Sequence[Gpu]) -> Gpu | None:
    for gpu in gpus:
        if fault.uuid and gpu.uuid == fault.uuid:
            return gpu
    for gpu in gpus:
        if gpu.parent_id is None and same_bus_id(gpu.pci_bus_id, fault.pci_bus_id):
            return gpu
    return None


def read_sightings(
    faults: Sequence[wire.Fault], gpus: Sequence[Gpu], *, received_at: datetime, clock_skew_seconds: float | None
) -> dict[str, Sighting]:
    """Return sightings by their key, times moved from the agent's clock to the panel's and never into the future.

    The same key from two sources, or twice, keeps the larger count.
    """
    skew = timedelta(seconds=clock_skew_seconds or 0.0)
    found: dict[str, Sighting] = {}
    for fault in faults:
        if not (0 <= fault.code <= MAX_CODE and 0 < fault.at_ms < 2**42):
            continue
        stamped = datetime.fromtimestamp(fault.at_ms / 1000, tz=UTC)
        at = min(stamped - skew, received_at)
        if received_at - at > OLDEST_FAULT:
            continue
        gpu = _find_gpu(fault, gpus)
        kind, bus_id = clean_text(fault.kind, 16) or "xid", clean_text(fault.pci_bus_id, 32)
        card = str(gpu.pk) if gpu else f"bus {bus_id.lower()}"
        key = f"{card}:{kind}:{fault.code}:{fault.at_ms // 1000}"
        count = min(max(fault.count, 1), 100_000)
        sighting = Sighting(
            key, gpu, kind, fault.code, at, count, clean_text(fault.source, 16), bus_id, clean_text(fault.message, 500)
        )
        if key not in found or found[key].count < count:
            found[key] = sighting
    return found


def faults_record(
    *,
    server: Server,
    gpus: Sequence[Gpu],
    faults: Sequence[wire.Fault],
    received_at: datetime,
    clock_skew_seconds: float | None,
) -> None:
    """Count what was not counted before, in the caller's transaction, which holds the server's row."""
    sightings = read_sightings(faults, gpus, received_at=received_at, clock_skew_seconds=clock_skew_seconds)
    if not sightings:
        return
    known = {row.key: row for row in FaultSighting.objects.filter(server=server, key__in=list(sightings))}
    fresh = [sighting for key, sighting in sightings.items() if key not in known]
    fresh = _within_rate(server, fresh, received_at)
    _raise_counts(known, sightings)
    if fresh:
        _count(server, sorted(fresh, key=lambda sighting: sighting.at), received_at)


def _within_rate(server: Server, fresh: list[Sighting], received_at: datetime) -> list[Sighting]:
    hour_ago = received_at - timedelta(hours=1)
    used = FaultSighting.objects.filter(server=server, received_at__gt=hour_ago).count() if fresh else 0
    room = max(0, MAX_SIGHTINGS_PER_HOUR - used)
    if len(fresh) > room:
        log.warning("fleet.faults_dropped", server_id=server.pk, dropped=len(fresh) - room)
    return fresh[:room]


def _raise_counts(known: dict[str, FaultSighting], sightings: dict[str, Sighting]) -> None:
    """The second source may have seen more in the same second: its surplus counts."""
    raised = [(row, sightings[key].count - row.count) for key, row in known.items() if sightings[key].count > row.count]
    if not raised:
        return
    faults = {fault.pk: fault for fault in GpuFault.objects.filter(pk__in={row.fault_id for row, _surplus in raised})}
    for row, surplus in raised:
        row.count += surplus
        faults[row.fault_id].count += surplus
    rows_update([row for row, _surplus in raised], ["count"])
    rows_update(list(faults.values()), ["count"])


def _count(server: Server, fresh: list[Sighting], received_at: datetime) -> None:
    """Put each sighting into the fault that it belongs to: the one of its card and code within ten minutes, or a new one."""
    known: dict[tuple[int | None, str, str, int], list[GpuFault]] = defaultdict(list)
    near = GpuFault.objects.filter(
        server=server, last_at__gte=fresh[0].at - FAULT_QUIET, first_at__lte=fresh[-1].at + FAULT_QUIET
    )
    for fault in near:
        bus_id = fault.pci_bus_id if fault.gpu_id is None else ""
        known[fault.gpu_id, bus_id, fault.kind, fault.code or 0].append(fault)
    new: list[GpuFault] = []
    touched: dict[int, GpuFault] = {}
    owners: list[tuple[Sighting, GpuFault]] = []
    for sighting in fresh:
        absorbed = _absorb(known[sighting.group], sighting)
        fault = absorbed or _new_fault(server, sighting)
        if absorbed is None:
            known[sighting.group].append(fault)
            new.append(fault)
        elif absorbed.pk is not None:
            touched[absorbed.pk] = absorbed
        owners.append((sighting, fault))
    rows_update(list(touched.values()), ["first_at", "last_at", "count", "severity", "message"])
    GpuFault.objects.bulk_create(new)
    FaultSighting.objects.bulk_create(
        [
            FaultSighting(
                fault=fault,
                server=server,
                key=sighting.key,
                at=sighting.at,
                received_at=received_at,
                count=sighting.count,
            )
            for sighting, fault in owners
        ]
    )
    cards = {sighting.gpu.pk: sighting.gpu for sighting in fresh if sighting.gpu}
    for fault in new:
        _tell(server, fault, cards.get(fault.gpu_id or 0), received_at)


def _absorb(candidates: list[GpuFault], sighting: Sighting) -> GpuFault | None:
    for fault in candidates:
        if fault.first_at - FAULT_QUIET <= sighting.at <= fault.last_at + FAULT_QUIET:
            fault.count += sighting.count
            fault.first_at, fault.last_at = min(fault.first_at, sighting.at), max(fault.last_at, sighting.at)
            severity = fault_severity(sighting.kind, sighting.code, sighting.message)
            if severity == Severity.CRITICAL and fault.severity != Severity.CRITICAL:
                fault.severity, fault.message = severity, sighting.message
            return fault
    return None


def _new_fault(server: Server, sighting: Sighting) -> GpuFault:
    return GpuFault(
        server=server,
        gpu=sighting.gpu,
        kind=sighting.kind,
        code=sighting.code,
        severity=fault_severity(sighting.kind, sighting.code, sighting.message),
        pci_bus_id=sighting.pci_bus_id or (sighting.gpu.pci_bus_id if sighting.gpu else ""),
        message=sighting.message,
        source=sighting.source,
        first_at=sighting.at,
        last_at=sighting.at,
        count=sighting.count,
    )


def _tell(server: Server, fault: GpuFault, gpu: Gpu | None, received_at: datetime) -> None:
    """One event a burst; the row counts on while it lasts."""
    if received_at - fault.last_at > EVENT_AGE:
        return
    event_write(
        kind=f"gpu.{fault.kind}",
        severity=Severity(fault.severity),
        subject_kind="gpu" if gpu else "server",
        subject_id=gpu.pk if gpu else server.pk,
        subject_name=gpu_title(gpu, server.name) if gpu else server.name,
        server_id=server.pk,
        data={
            "fault_id": fault.pk,
            "code": fault.code,
            "message": fault.message,
            "pci_bus_id": fault.pci_bus_id,
            "uuid": gpu.uuid if gpu else "",
            "first_at": fault.first_at.isoformat(),
            "count": fault.count,
        },
    )


def sightings_clear(*, now: datetime) -> int:
    """Delete sightings that no report can repeat any more; the faults stay."""
    return FaultSighting.objects.filter(at__lt=now - SIGHTING_RETENTION).delete()[0]
