"""Cards and slices of a report merged into a server's rows, in memory: what is new, what changed, which state follows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import msgspec

from fleet.agent import wire
from fleet.enums import DriverState, GpuState
from fleet.lifecycle import DRIVER_REASON, NOT_LISTED_REASON
from fleet.models import Gpu
from fleet.services.cleaning import clean_integer, clean_json, clean_text
from fleet.services.transitions import GpuChange

FACT_FIELDS: Final = (
    "index",
    "name",
    "vendor",
    "parent",
    "memory_total_bytes",
    "power_limit_watts",
    "pci_bus_id",
    "facts",
    "unsupported",
)
SEEN_FIELDS: Final = (
    "reported_state",
    "reported_reason",
    "last_seen_at",
    "removed_at",
    "health",
    "health_at",
    "processes",
    "processes_visibility",
    "processes_at",
)
_ANSWERING: Final = frozenset({GpuState.OK, GpuState.DEGRADED})
_MAX_INDEX: Final = 32_767
_MAX_WATTS: Final = 100_000


@dataclass(slots=True)
class GpuMerge:
    """What a report changes. `parents`: slice's uuid → its card's uuid, for rows whose card is not stored yet."""

    new: list[Gpu] = field(default_factory=list)
    parents: dict[str, str] = field(default_factory=dict)
    facts_changed: list[Gpu] = field(default_factory=list)
    seen: list[Gpu] = field(default_factory=list)
    changes: list[GpuChange] = field(default_factory=list)
    processes_read: list[Gpu] = field(default_factory=list)
    slices_gone: list[Gpu] = field(default_factory=list)


def _state_of(sent: wire.Gpu) -> tuple[GpuState, str]:
    try:
        state = GpuState(sent.state)
    except ValueError:
        state = GpuState.UNKNOWN
    return state, "" if state == GpuState.OK else clean_text(sent.reason, 64)


def _facts_of(row: Gpu, sent: wire.Gpu) -> dict[str, Any]:
    """Return the stored fields that this report gives, with their values; `parent` is the caller's."""
    given: dict[str, Any] = {}
    if sent.index is not None and 0 <= sent.index <= _MAX_INDEX:
        given["index"] = sent.index
    if sent.facts is not None:
        facts = clean_json(msgspec.to_builtins(sent.facts))
        given |= {
            "facts": facts,
            "name": clean_text(sent.facts.name, 100),
            "vendor": clean_text(sent.facts.vendor, 16) or "nvidia",
            "pci_bus_id": clean_text(sent.facts.pci_bus_id, 32),
            "memory_total_bytes": clean_integer(sent.facts.memory_total_bytes),
        }
    limit = clean_integer(sent.health.enforced_power_limit_milliwatts) if sent.health else None
    if limit is None and sent.facts is not None:
        limit = clean_integer(sent.facts.power_limit_milliwatts)
    if limit is not None and limit / 1000 <= _MAX_WATTS:
        given["power_limit_watts"] = limit / 1000
    if sent.unsupported is not None:
        given["unsupported"] = dict(list(clean_json(sent.unsupported).items())[:64])
    return {name: value for name, value in given.items() if getattr(row, name) != value}


def _read_slow_tier(row: Gpu, sent: wire.Gpu, at: datetime, merge: GpuMerge) -> None:
    if sent.health is not None:
        row.health, row.health_at = clean_json(msgspec.to_builtins(sent.health)), at
    if sent.processes is not None:
        row.processes = clean_json(msgspec.to_builtins(sent.processes))
        row.processes_at = at
        row.processes_visibility = clean_text(sent.processes_visibility, 16)
        merge.processes_read.append(row)


def _merge_sent(row: Gpu, sent: wire.Gpu, at: datetime, merge: GpuMerge) -> None:
    """Merge one card that the report names."""
    is_new = row.pk is None
    state, reason = _state_of(sent)
    if row.removed_at is not None and state == GpuState.MISSING:
        return  # forgotten here, still remembered by its agent
    given = _facts_of(row, sent)
    for name, value in given.items():
        setattr(row, name, value)
    row.reported_state, row.reported_reason, row.removed_at = state, reason, None
    if state in _ANSWERING:
        row.last_seen_at = at
    _read_slow_tier(row, sent, at, merge)
    if is_new:
        row.state, row.state_reason = state, reason
        merge.new.append(row)
        return
    merge.seen.append(row)
    if given:
        merge.facts_changed.append(row)
    if (state, reason) != (row.state, row.state_reason):
        merge.changes.append(GpuChange(row, state, reason))


def _mark_gone(row: Gpu, driver_state: DriverState, merge: GpuMerge) -> None:
    """Merge one known card that the report does not name: missing, unless the driver could not be asked at all."""
    is_missing = driver_state in {DriverState.OK, DriverState.NO_GPU}
    state, reason = (GpuState.MISSING, NOT_LISTED_REASON) if is_missing else (GpuState.UNKNOWN, DRIVER_REASON)
    if (row.reported_state, row.reported_reason) != (state, reason):
        row.reported_state, row.reported_reason = state, reason
        merge.seen.append(row)
    if (state, reason) != (row.state, row.state_reason):
        merge.changes.append(GpuChange(row, state, reason))


def _by_uuid(sent_gpus: Sequence[wire.Gpu]) -> dict[str, wire.Gpu]:
    """Return what is sent of each UUID, the first word of each."""
    named: dict[str, wire.Gpu] = {}
    for sent in sent_gpus:
        uuid = clean_text(sent.uuid, 96)
        if uuid and uuid not in named:
            named[uuid] = sent
    return named


def _is_card(sent: wire.Gpu | None) -> bool:
    return sent is not None and not sent.parent_uuid


def _named_indexes(named: Mapping[str, wire.Gpu]) -> set[int]:
    """Return the places whose card the report names by its UUID."""
    return {
        sent.index
        for uuid, sent in named.items()
        if sent.index is not None and _is_card(sent) and not uuid.startswith(wire.UNIDENTIFIED)
    }


def _is_stand_in(row: Gpu, indexes: set[int]) -> bool:
    """Say whether a row only stood for a card without a handle, whose place is now known by a UUID."""
    return row.uuid.startswith(wire.UNIDENTIFIED) and row.index in indexes


def _merge_unsent(
    unsent: Sequence[Gpu], named: Mapping[str, wire.Gpu], driver_state: DriverState, at: datetime, merge: GpuMerge
) -> None:
    """Merge the rows that the report does not name: some were taken apart or stood for others, the rest is gone."""
    answering = {row.pk for row in merge.seen if row.parent_id is None and row.reported_state in _ANSWERING}
    indexes = _named_indexes(named)
    for row in unsent:
        if row.removed_at is not None:
            continue
        is_slice_gone = row.parent_id in answering
        if is_slice_gone or _is_stand_in(row, indexes):
            row.removed_at = at
            merge.seen.append(row)
        else:
            _mark_gone(row, driver_state, merge)
        if is_slice_gone:
            merge.slices_gone.append(row)


def merge_gpus(
    *,
    server_id: int,
    rows: Sequence[Gpu],
    sent_gpus: Sequence[wire.Gpu],
    driver_state: DriverState,
    is_looked: bool,
    at: datetime,
) -> GpuMerge:
    """Return what the report changes; rows are changed in memory but for their states, which transitions assign.

    is_looked: the agent has asked the driver; one that has just started and has not says nothing of cards left out.

    Cards are known by UUID alone: the index and the order of the report say nothing. A slice that is gone while its card
    answers was taken apart on purpose, and is removed; a card that is gone is missing until somebody forgets it. A row that stood
    for a card without a handle goes when its index is reported under a UUID.
    """
    merge = GpuMerge()
    by_uuid = {row.uuid: row for row in rows}
    named = _by_uuid(sent_gpus)
    gone_slices = {uuid for uuid, sent in named.items() if sent.parent_uuid and sent.state == GpuState.MISSING}
    for uuid, sent in named.items():
        if uuid in gone_slices:
            continue
        row = by_uuid.get(uuid) or Gpu(server_id=server_id, uuid=uuid, state_changed_at=at, first_seen_at=at)
        _merge_sent(row, sent, at, merge)
        parent_uuid = clean_text(sent.parent_uuid, 96)
        if parent_uuid and parent_uuid != uuid and _is_card(named.get(parent_uuid)):
            merge.parents[uuid] = parent_uuid
    if is_looked:
        listed = named.keys() - gone_slices
        _merge_unsent([row for row in rows if row.uuid not in listed], named, driver_state, at, merge)
    return merge
