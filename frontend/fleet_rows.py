"""The fleet as pages show it: servers with their cards and newest readings, and what follows from those. Data, no queries."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from django.utils.translation import gettext as _

from fleet.enums import GpuState, ServerState
from fleet.models import Server
from monitoring.activity import Activity, is_hot, is_throttled, memory_share
from monitoring.selectors import Latest

SHORT_UUID_LENGTH: Final = 8
# A clock that is off by more than this is worth saying.
SKEW_SECONDS: Final = 30.0
LOST_STATES: Final = frozenset({Activity.MISSING, Activity.LOST})
_SILENT: Final = LOST_STATES | {Activity.NO_DATA}


def short_uuid(uuid: str) -> str:
    """Return the part of a UUID that people compare: "GPU-1a2b3c4d…" → "1a2b3c4d"."""
    bare = uuid.partition("-")[2] if uuid.startswith(("GPU-", "MIG-")) else uuid
    return bare[:SHORT_UUID_LENGTH]


def gpu_label(index: int | None, uuid: str) -> str:
    """Return what a card is called on its server: its index is a label only, the UUID is the key."""
    return f"#{index}" if index is not None else short_uuid(uuid)


@dataclass(frozen=True, slots=True)
class LastFault:
    """The newest fault of a card."""

    kind: str
    code: int | None
    severity: str
    last_at: datetime
    count: int


@dataclass(frozen=True, slots=True)
class GpuRow:
    """One card (or MIG slice) with its newest readings; `values` is empty when there never was one."""

    id: int
    uuid: str
    index: int | None
    name: str
    server_id: int
    server_name: str
    parent_id: int | None
    state: str
    state_reason: str
    state_changed_at: datetime
    memory_total_bytes: int | None
    power_limit_watts: float | None
    slowdown_celsius: float | None
    is_mig: bool
    processes: int | None
    health: Mapping[str, Any]
    activity: Activity
    is_fresh: bool
    interval_seconds: float
    latest: Latest | None = None
    fault: LastFault | None = None
    slices: tuple["GpuRow", ...] = ()

    @property
    def label(self) -> str:
        """Return what the card is called on its server."""
        return gpu_label(self.index, self.uuid)

    @property
    def short_uuid(self) -> str:
        """Return the part of the UUID that people compare."""
        return short_uuid(self.uuid)

    @property
    def at(self) -> datetime | None:
        """Return when the newest reading was taken."""
        return self.latest.at if self.latest else None

    @property
    def values(self) -> Mapping[str, float | None]:
        """Return the newest readings."""
        return self.latest.values if self.latest else {}

    @property
    def reports(self) -> bool:
        """Say whether the card takes part in totals: it answers, and its reading is of now."""
        return self.activity not in _SILENT

    @property
    def is_stale(self) -> bool:
        """Say whether what was read last is of the past, so that it is greyed."""
        return not self.reports

    @property
    def memory_percent(self) -> float | None:
        """Return used memory in percent of the card's own."""
        share = memory_share(self.values.get("memory_used_bytes"), self.memory_total_bytes)
        return None if share is None else share * 100

    @property
    def power_percent(self) -> float | None:
        """Return power in percent of the limit that this very card enforces."""
        power = self.values.get("power_watts")
        return None if power is None or not self.power_limit_watts else power / self.power_limit_watts * 100

    @property
    def is_hot(self) -> bool:
        """Say whether the card is near its own slowdown threshold now."""
        return self.reports and is_hot(self.values.get("temperature_celsius"), self.slowdown_celsius)

    @property
    def is_throttled(self) -> bool:
        """Say whether heat or power supply slow the card down now."""
        return self.reports and self.latest is not None and is_throttled(self.latest.clock_event_reasons)


@dataclass(frozen=True, slots=True)
class ServerRow:
    """One server with its cards (slices under them) and its host's newest readings.

    expected: the cards that its open lease tells of, as in "8 × H100 SXM 80GB", while it has not reported; else empty.
    """

    server: Server
    gpus: tuple[GpuRow, ...]
    host: Latest | None
    is_fresh: bool
    interval_seconds: float
    expected: str = ""

    @property
    def reporting(self) -> tuple[GpuRow, ...]:
        """Return the cards that take part in totals."""
        return tuple(gpu for gpu in self.gpus if gpu.reports)

    @property
    def gone(self) -> tuple[GpuRow, ...]:
        """Return the cards that are missing or lost."""
        return tuple(gpu for gpu in self.gpus if gpu.activity in LOST_STATES)

    @property
    def last_seen_at(self) -> datetime | None:
        """Return when the agent was heard last."""
        agent = getattr(self.server, "agent", None)
        return agent.last_seen_at if agent else None

    @property
    def has_reported(self) -> bool:
        """Say whether anything is known of what the machine has; one that is joining has told nothing yet."""
        is_awaited = self.server.state in {ServerState.PENDING, ServerState.JOINING}
        is_heard = self.last_seen_at is not None or self.server.facts_at is not None
        return bool(self.gpus) or (is_heard and not is_awaited)

    @property
    def no_cards_words(self) -> str:
        """Return why no card is shown: nothing was reported yet, or there is no GPU."""
        if self.has_reported:
            return _("no GPU")
        if self.server.state == ServerState.RETIRED:
            return _("never reported")
        if self.expected:
            return _("no report yet; %(cards)s expected") % {"cards": self.expected}
        return _("no report yet")

    @property
    def clock_skew_seconds(self) -> float | None:
        """Return the agent's clock minus the panel's."""
        agent = getattr(self.server, "agent", None)
        return agent.clock_skew_seconds if agent else None

    @property
    def busy(self) -> int:
        """Return how many cards work."""
        return sum(gpu.activity == Activity.BUSY for gpu in self.gpus)

    def total(self, metric: str) -> float | None:
        """Return a reading summed over the cards that report it; None when none does."""
        found = [value for gpu in self.reporting if (value := gpu.values.get(metric)) is not None]
        return sum(found) if found else None

    def highest(self, metric: str) -> float | None:
        """Return the highest reading among the cards that report it."""
        return max((value for gpu in self.reporting if (value := gpu.values.get(metric)) is not None), default=None)

    @property
    def memory_total_bytes(self) -> int | None:
        """Return the memory of all cards that are known."""
        return sum(gpu.memory_total_bytes or 0 for gpu in self.gpus) or None

    @property
    def power_limit_watts(self) -> float | None:
        """Return the power that all cards together may draw."""
        return sum(gpu.power_limit_watts or 0 for gpu in self.gpus) or None

    @property
    def total_power_watts(self) -> float | None:
        """Return what all cards that report draw together."""
        return self.total("power_watts")

    @property
    def total_memory_used(self) -> float | None:
        """Return the memory that is used on all cards that report."""
        return self.total("memory_used_bytes")

    @property
    def hottest(self) -> float | None:
        """Return the temperature of the hottest card that reports."""
        return self.highest("temperature_celsius")

    @property
    def present(self) -> int:
        """Return how many of the known cards are there."""
        return len(self.gpus) - len(self.gone)

    @property
    def has_skew(self) -> bool:
        """Say whether the machine's clock is visibly wrong."""
        skew = self.clock_skew_seconds
        return self.has_reported and skew is not None and abs(skew) > SKEW_SECONDS

    @property
    def booted_at(self) -> datetime | None:
        """Return when the machine was started; what is waited for has told nothing."""
        at_ms = self.server.facts.get("booted_at_ms") if self.has_reported else None
        return datetime.fromtimestamp(at_ms / 1000, tz=UTC) if at_ms else None

    @property
    def memory_limit_bytes(self) -> int | None:
        """Return the memory that the machine may use; None before it told."""
        return self.server.memory_limit_bytes if self.has_reported else None

    @property
    def gpu_ids(self) -> list[int]:
        """Return the ids of all cards and slices."""
        return [one.id for gpu in self.gpus for one in (gpu, *gpu.slices)]

    @property
    def known(self) -> str:
        """Return what the page knows of the server's state, as scripts compare it with live frames."""
        states = [gpu.state for gpu in self.gpus]
        answering = sum(state in {GpuState.OK, GpuState.DEGRADED} for state in states)
        missing = sum(state in {GpuState.MISSING, GpuState.LOST} for state in states)
        server = self.server
        parts = (server.state, server.driver_state, server.gpu_health, len(states), answering, missing)
        return "|".join(str(part) for part in (*parts, server.memory_limit_bytes or ""))

    @property
    def host_values(self) -> Mapping[str, float | None]:
        """Return the host's newest readings while they are of now."""
        return self.host.values if self.host is not None and self.is_fresh else {}


@dataclass(frozen=True, slots=True)
class FleetRows:
    """Every server and card, as of `now`."""

    now: datetime
    servers: tuple[ServerRow, ...]
    gpus: tuple[GpuRow, ...] = field(default=())

    @property
    def data_at(self) -> datetime | None:
        """Return the newest reading of the whole fleet."""
        return max((gpu.at for gpu in self.gpus if gpu.at is not None), default=None)
