"""The live topic `probes`: the newest result of each place, told when it is stored."""

from collections.abc import Iterable
from typing import Any, Final

from fleet.agent.probes.result import ProbeResult
from panel.core.live import publish_later

TOPIC: Final = "probes"


def results_tell(server_id: int, results: Iterable[ProbeResult]) -> None:
    """Tell browsers of new results once the caller's transaction commits: one message, the newest of each probe."""
    newest: dict[str, Any] = {}
    for result in sorted(results, key=lambda each: each.started_ms):
        newest[str(result.target)] = {
            "server": server_id or None,
            "connection": result.connection,
            "started_ms": result.started_ms,
            "outcome": result.outcome,
            "e2e_ms": result.e2e_ms,
            "ttft_ms": result.ttft_ms,
        }
    if newest:
        publish_later(TOPIC, {TOPIC: newest})
