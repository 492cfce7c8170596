"""The tables of results, which live in SQL (migration 0003): names, codes, and what of a result goes where."""

import math
from typing import Final

from fleet.agent.probes.result import ProbeResult
from fleet.agent.probes.target import STREAMS
from panel.core.partitions import DailyTable

RESULTS: Final = DailyTable("probe_result")
CHUNKS: Final = DailyTable("probe_chunk")
TABLES: Final = (RESULTS, CHUNKS)
KEPT_DAYS: Final = 90
CHUNK_SECONDS: Final = 300

PANEL: Final = 0  # as server_id
CONNECTIONS: Final = ("cold", "warm")  # by their codes
METRICS: Final = ("e2e", "ttft", "ttfb")  # by their codes
# What says nothing of the target: neither a duration nor a failure.
_SILENT: Final = frozenset({"vantage_down"})
REFUSED_HERE: Final = "address_refused"  # by the rules of the place itself
_WITH_HEADERS: Final = frozenset({"http", "chat", "completion", "kserve_ready", "kserve_infer", "grpc_health"})


def durations_of(result: ProbeResult) -> dict[int, float]:
    """Return the durations in ms that count for percentiles, by the code of the metric; a failure lasts for ever.

    A probe that was skipped because the one before still ran would have waited too: it counts as over every threshold.
    """
    if result.outcome in _SILENT or result.reason == REFUSED_HERE:
        return {}
    metrics = ["e2e"]
    metrics += ["ttft"] if result.kind in STREAMS else []
    metrics += ["ttfb"] if result.kind in _WITH_HEADERS else []
    found = {METRICS.index(name): getattr(result, f"{name}_ms") for name in metrics}
    if result.outcome != "ok":
        return dict.fromkeys(found, math.inf)
    return {code: value for code, value in found.items() if value is not None}
