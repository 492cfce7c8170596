"""Rows of the fleet made by hand, for the rules that need no database."""

from datetime import UTC, datetime, timedelta

from fleet.models import Agent, Server
from frontend.fleet_rows import FleetRows, GpuRow, LastFault, ServerRow
from monitoring.activity import Activity
from monitoring.selectors import Latest

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
GIB = 1024**3


def gpu(number=0, *, server="rack-1", server_id=1, **changes):
    values = {
        "utilization_percent": 97.0,
        "memory_used_bytes": 112 * GIB,
        "power_watts": 612.0,
        "temperature_celsius": 67.0,
    }
    values |= changes.pop("values", {})
    reasons = changes.pop("reasons", 0)
    at = changes.pop("at", NOON)
    given = {
        "id": server_id * 100 + number,
        "uuid": f"GPU-{server_id:04d}{number:04d}-0000-4000-8000-000000000000",
        "index": number,
        "name": "NVIDIA H200",
        "server_id": server_id,
        "server_name": server,
        "parent_id": None,
        "state": "ok",
        "state_reason": "",
        "state_changed_at": NOON - timedelta(hours=1),
        "memory_total_bytes": 140 * GIB,
        "power_limit_watts": 700.0,
        "slowdown_celsius": 90.0,
        "is_mig": False,
        "processes": 1,
        "health": {},
        "activity": Activity.BUSY,
        "is_fresh": True,
        "interval_seconds": 5.0,
        "latest": Latest(at, values, reasons, 0),
    }
    return GpuRow(**(given | changes))


def fault(code, *, severity="critical", minutes_ago=5, kind="xid"):
    return LastFault(kind, code, severity, NOON - timedelta(minutes=minutes_ago), 1)


def server(name="rack-1", pk=1, *, gpus=(), skew=None, is_fresh=True, **changes):
    given = {"state": "ready", "state_changed_at": NOON, "driver_state": "ok", "gpu_health": "healthy", "facts": {}}
    row = Server(pk=pk, name=name, created_at=NOON, **(given | changes))
    row.agent = Agent(last_seen_at=NOON - timedelta(minutes=4), clock_skew_seconds=skew)
    host = Latest(NOON, {"cpu_percent": float(pk), "memory_used_bytes": 1.0 * GIB}, None, None)
    return ServerRow(server=row, gpus=tuple(gpus), host=host, is_fresh=is_fresh, interval_seconds=5.0)


def fleet(*servers):
    return FleetRows(now=NOON, servers=servers, gpus=tuple(card for row in servers for card in row.gpus))
