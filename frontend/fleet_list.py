"""The Fleet page's two lists: which columns there are, what the filters let through, in which order. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from fleet.enums import ServerState
from frontend.fleet_rows import FleetRows, GpuRow, ServerRow
from monitoring.activity import Activity

Tab = Literal["servers", "gpus"]
Row = ServerRow | GpuRow
CHUNK_ROWS: Final = 50
WHOLE_ROWS: Final = 200


def first_chunks(total: int) -> int:
    """Return how many chunks a page brings at once: all of a list of up to `WHOLE_ROWS`, a screenful of a longer one."""
    return WHOLE_ROWS // CHUNK_ROWS if total <= WHOLE_ROWS else 1


@dataclass(frozen=True, slots=True)
class Column:
    """One column. unit: stands in the header; sort: what rows are ordered by, None where that means nothing."""

    key: str
    label: str | Promise
    unit: str = ""
    is_number: bool = False
    sort: Callable[[Any], Any] | None = None
    is_shown: bool = True
    is_fixed: bool = False

    @property
    def is_sortable(self) -> bool:
        """Say whether rows can be ordered by it (templates would call `sort` itself)."""
        return self.sort is not None

    @property
    def descending(self) -> str:
        """Return how an address asks for the column in descending order."""
        return f"-{self.key}"


def _reading(metric: str) -> Callable[[GpuRow], float | None]:
    return lambda row: row.values.get(metric) if row.reports else None


def _host(metric: str) -> Callable[[ServerRow], float | None]:
    return lambda row: row.host_values.get(metric)


# What needs somebody comes first when a list is ordered by state.
_STATE_ORDER: Final = {
    state: place
    for place, state in enumerate(
        (
            ServerState.NOT_REPORTING,
            ServerState.UNREACHABLE,
            ServerState.DEGRADED,
            ServerState.JOINING,
            ServerState.PENDING,
            ServerState.DRAINING,
            ServerState.MAINTENANCE,
            ServerState.READY,
            ServerState.RETIRED,
        )
    )
}
_ACTIVITY_ORDER: Final = {
    activity: place
    for place, activity in enumerate(
        (
            Activity.LOST,
            Activity.MISSING,
            Activity.NO_DATA,
            Activity.GHOST,
            Activity.CANNOT_TELL,
            Activity.IDLE,
            Activity.PARKED,
            Activity.BUSY,
        )
    )
}

SERVER_COLUMNS: Final = (
    Column("name", _("Server"), sort=lambda row: row.server.name.lower(), is_fixed=True),
    Column("state", _("State"), sort=lambda row: _STATE_ORDER[ServerState(row.server.state)]),
    Column("gpus", _("GPUs")),
    Column("busy", _("Busy"), is_number=True, sort=lambda row: row.busy),
    Column("spark", _("Utilisation, 15 min")),
    Column("memory", _("VRAM"), "GiB", is_number=True, sort=lambda row: row.total("memory_used_bytes")),
    Column("temperature", _("Hottest"), "°C", is_number=True, sort=lambda row: row.highest("temperature_celsius")),
    Column("power", _("Power"), "W", is_number=True, sort=lambda row: row.total("power_watts")),
    Column("cpu", _("CPU"), "%", is_number=True, sort=_host("cpu_percent")),
    Column("ram", _("RAM"), "GiB", is_number=True, sort=_host("memory_used_bytes"), is_shown=False),
    Column(
        "network",
        _("Network in / out"),
        "MB/s",
        is_number=True,
        sort=_host("network_receive_bytes_per_second"),
        is_shown=False,
    ),
    Column("driver", _("Driver"), sort=lambda row: row.server.driver_version, is_shown=False),
    Column("age", _("Last report"), sort=lambda row: row.last_seen_at),
)
GPU_COLUMNS: Final = (
    Column(
        "name",
        _("GPU"),
        sort=lambda row: (row.server_name.lower(), row.index if row.index is not None else 999),
        is_fixed=True,
    ),
    Column("state", _("Doing"), sort=lambda row: _ACTIVITY_ORDER[row.activity]),
    Column("model", _("Model"), sort=lambda row: row.name.lower()),
    Column("uuid", _("UUID"), sort=lambda row: row.uuid, is_shown=False),
    Column("utilization", _("Utilisation"), "%", is_number=True, sort=_reading("utilization_percent")),
    Column("memory", _("VRAM"), "GiB", is_number=True, sort=_reading("memory_used_bytes")),
    Column("temperature", _("Temperature"), "°C", is_number=True, sort=_reading("temperature_celsius")),
    Column("power", _("Power / limit"), "W", is_number=True, sort=_reading("power_watts")),
    Column("processes", _("Processes"), is_number=True, sort=lambda row: row.processes),
    Column("mig", _("MIG"), sort=lambda row: len(row.slices), is_shown=False),
    Column("fault", _("Last fault"), sort=lambda row: row.fault.last_at if row.fault else None),
    Column("age", _("Data as of"), sort=lambda row: row.at, is_shown=False),
)
COLUMNS: Final[Mapping[Tab, Sequence[Column]]] = {"servers": SERVER_COLUMNS, "gpus": GPU_COLUMNS}


@dataclass(frozen=True, slots=True)
class ListFilter:
    """What an address asks of a list. sort: a column's key, with "-" before it for the other way round."""

    tab: Tab = "servers"
    search: str = ""
    state: str = ""
    provider: str = ""
    model: str = ""
    server: int | None = None
    sort: str = "name"

    @property
    def is_active(self) -> bool:
        """Say whether any row may be hidden."""
        return any((self.search, self.state, self.provider, self.model, self.server))


def read_filter(query: Mapping[str, str]) -> ListFilter:
    """Return the filter of an address; what it cannot mean is left out."""
    tab: Tab = "gpus" if query.get("tab") == "gpus" else "servers"
    sort = query.get("sort", "name")
    sortable = {column.key for column in COLUMNS[tab] if column.sort is not None}
    states = {*Activity.values, "attention"} if tab == "gpus" else {*ServerState.values, "attention"}
    state = query.get("state", "")
    server = query.get("server", "")
    return ListFilter(
        tab=tab,
        search=query.get("q", "").strip()[:100],
        state=state if state in states else "",
        provider=query.get("provider", "")[:64],
        model=query.get("model", "")[:100],
        server=int(server) if server.isdecimal() and len(server) < 18 else None,
        sort=sort if sort.removeprefix("-") in sortable else "name",
    )


def filtered(fleet: FleetRows, wanted: ListFilter) -> list[Row]:
    """Return the rows of the tab that pass the filters, in the order asked for; what has no value comes last."""
    rows: Iterable[Row]
    if wanted.tab == "servers":
        rows = (row for row in fleet.servers if _server_passes(row, wanted))
    else:
        servers = {row.server.pk: row for row in fleet.servers}
        rows = (gpu for gpu in fleet.gpus if _gpu_passes(gpu, servers[gpu.server_id], wanted))
    return _ordered(list(rows), wanted)


def _ordered(rows: list[Row], wanted: ListFilter) -> list[Row]:
    key = wanted.sort.removeprefix("-")
    column = next(column for column in COLUMNS[wanted.tab] if column.key == key)
    assert column.sort is not None  # noqa: S101 - read_filter lets through only columns that sort
    valued = [(column.sort(row), row) for row in rows]
    known = [(value, row) for value, row in valued if value is not None and value != ""]
    known.sort(key=lambda pair: pair[0], reverse=wanted.sort.startswith("-"))
    return [*(row for _value, row in known), *(row for value, row in valued if value is None or value == "")]


def _contains(search: str, *texts: str) -> bool:
    return any(search.lower() in text.lower() for text in texts)


def server_needs_attention(row: ServerRow) -> bool:
    """Say whether a server belongs to those that need somebody."""
    return row.server.state in {ServerState.NOT_REPORTING, ServerState.DEGRADED, ServerState.UNREACHABLE} or any(
        gpu_needs_attention(gpu) for gpu in row.gpus
    )


def gpu_needs_attention(row: GpuRow) -> bool:
    """Say whether a card belongs to those that need somebody."""
    bad = {Activity.LOST, Activity.MISSING, Activity.NO_DATA, Activity.GHOST}
    return row.activity in bad or row.is_hot or row.is_throttled or row.state == "degraded"


def _server_passes(row: ServerRow, wanted: ListFilter) -> bool:
    server = row.server
    if wanted.state == "attention":
        if not server_needs_attention(row):
            return False
    elif wanted.state and server.state != wanted.state:
        return False
    if wanted.provider and server.provider != wanted.provider:
        return False
    if wanted.model and all(gpu.name != wanted.model for gpu in row.gpus):
        return False
    if wanted.server is not None and server.pk != wanted.server:
        return False
    texts = (server.name, server.provider, server.region, server.facts.get("hostname", ""))
    return (
        not wanted.search
        or _contains(wanted.search, *texts)
        or any(_contains(wanted.search, gpu.uuid) for gpu in row.gpus)
    )


def _gpu_passes(row: GpuRow, server: ServerRow, wanted: ListFilter) -> bool:
    if wanted.state == "attention":
        if not gpu_needs_attention(row):
            return False
    elif wanted.state and row.activity != wanted.state:
        return False
    if wanted.provider and server.server.provider != wanted.provider:
        return False
    if wanted.model and row.name != wanted.model:
        return False
    if wanted.server is not None and row.server_id != wanted.server:
        return False
    return not wanted.search or _contains(
        wanted.search, row.uuid, row.name, row.server_name, f"{row.server_name} {row.label}"
    )


def shown_columns(tab: Tab, chosen: Sequence[str] | None) -> list[Column]:
    """Return the columns to show: those that were chosen, or the usual ones; the first one always."""
    if chosen is None:
        return [column for column in COLUMNS[tab] if column.is_shown]
    return [column for column in COLUMNS[tab] if column.is_fixed or column.key in chosen]
