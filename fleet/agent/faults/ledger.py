"""Each fault once, although two sources tell of it and bursts repeat it: sightings by card, code and second."""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from fleet.agent import wire

# The two sources tell of one fault within this time of each other.
TWIN_MS: Final = 3_000
# A sighting waits so long for its twin before it is told.
HOLD_SECONDS: Final = 3.0
FORGET_SECONDS: Final = 120.0
MAX_ENTRIES: Final = 5_000
# What NVML says when it does not know the number.
UNNAMED_XID: Final = 999


@dataclass(frozen=True, slots=True)
class Sighting:
    """One time that one source told of a fault; pci_bus_id in canonical form, empty when unknown."""

    at_ms: int
    code: int
    source: str
    kind: str = "xid"
    uuid: str = ""
    pci_bus_id: str = ""
    message: str = ""


@dataclass
class _Entry:
    """One card, code and second. counts: how often each source told of it; told: the count that was last handed out."""

    first: Sighting
    noted: float
    counts: dict[str, int] = field(default_factory=dict)
    message: str = ""
    told: int = 0

    @property
    def count(self) -> int:
        return max(self.counts.values())


class FaultLedger:
    """Takes sightings from any thread, gives out faults whose keys are the same whoever saw them.

    hold_seconds: how long a sighting waits for its twin before it is told.
    """

    def __init__(self, hold_seconds: float = HOLD_SECONDS) -> None:
        self.hold_seconds = hold_seconds
        self._lock = threading.Lock()
        self._entries: dict[tuple[str, str, int], list[_Entry]] = {}
        self._uuid_of_bus: dict[str, str] = {}
        self._bus_of_uuid: dict[str, str] = {}

    def learn_cards(self, uuid_of_bus: Mapping[str, str]) -> None:
        """Learn which card is at which address, for sources that know only one of the two."""
        with self._lock:
            self._uuid_of_bus.update(uuid_of_bus)
            self._bus_of_uuid.update({uuid: bus for bus, uuid in uuid_of_bus.items()})

    def note(self, sighting: Sighting) -> None:
        """Take one sighting."""
        with self._lock:
            bus = sighting.pci_bus_id or self._bus_of_uuid.get(sighting.uuid, "")
            entries = self._entries.setdefault((bus or sighting.uuid, sighting.kind, sighting.code), [])
            entry = _match(entries, sighting)
            if entry is None:
                if sum(map(len, self._entries.values())) >= MAX_ENTRIES:
                    return
                entry = _Entry(sighting, time.monotonic())
                entries.append(entry)
            entry.counts[sighting.source] = entry.counts.get(sighting.source, 0) + 1
            entry.message = entry.message or sighting.message

    def take(self, limit: int) -> list[wire.Fault]:
        """Return what is new since the last call, at most `limit`."""
        now = time.monotonic()
        taken: list[wire.Fault] = []
        with self._lock:
            for place, entries in self._entries.items():
                for entry in entries:
                    is_ripe = now - entry.noted >= self.hold_seconds
                    if is_ripe and entry.count > entry.told and len(taken) < limit and not self._is_named(place, entry):
                        entry.told = entry.count
                        taken.append(self._fault(place, entry))
            self._forget(now)
        return taken

    def has_untold(self) -> bool:
        """Say whether anything noted was not handed out yet."""
        with self._lock:
            return any(entry.count > entry.told for entries in self._entries.values() for entry in entries)

    def _is_named(self, place: tuple[str, str, int], entry: _Entry) -> bool:
        """Say whether a fault without a number is the one that another entry of this card and second names."""
        card, kind, code = place
        return code == UNNAMED_XID and any(
            abs(other.first.at_ms - entry.first.at_ms) <= TWIN_MS
            for (other_card, other_kind, other_code), others in self._entries.items()
            if (other_card, other_kind) == (card, kind) and other_code != code
            for other in others
        )

    def _fault(self, place: tuple[str, str, int], entry: _Entry) -> wire.Fault:
        card, kind, code = place
        first = entry.first
        bus = first.pci_bus_id or self._bus_of_uuid.get(first.uuid, "")
        return wire.Fault(
            key=f"{kind}:{card}:{code}:{first.at_ms // 1000}",
            at_ms=first.at_ms,
            code=code,
            kind=kind,
            source="kernel_log" if "kernel_log" in entry.counts else first.source,
            uuid=first.uuid or self._uuid_of_bus.get(bus, ""),
            pci_bus_id=bus,
            message=entry.message[:500],
            count=entry.count,
        )

    def _forget(self, now: float) -> None:
        for place, entries in list(self._entries.items()):
            kept = [entry for entry in entries if entry.count > entry.told or now - entry.noted < FORGET_SECONDS]
            if kept:
                self._entries[place] = kept
            else:
                del self._entries[place]


def _match(entries: list[_Entry], sighting: Sighting) -> _Entry | None:
    """Find the entry that a sighting belongs to: its own second, or a twin that its source has not told of yet."""
    for entry in entries:
        if entry.first.at_ms // 1000 == sighting.at_ms // 1000:
            return entry
    for entry in entries:
        told = entry.counts.get(sighting.source, 0)
        if abs(entry.first.at_ms - sighting.at_ms) <= TWIN_MS and told < entry.count:
            return entry
    return None
