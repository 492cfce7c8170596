"""The tables of results, which live in SQL (migration 0003): names, codes, and what of a result goes where."""

import math
from typing import Final

import numpy as np

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
METRICS: Final = ("e2e", "ttft", "ttfb", "tpot")  # by their codes
# Fewer tokens say nothing of the time per token.
LEAST_TOKENS: Final = 16
# Beside each duration of a chunk: when it began within the chunk, in steps of 5 ms, and whether it is suspect.
MARK: Final = np.dtype([("offset", "<u2"), ("flags", "u1")])
MARK_STEP_MS: Final = 5
SUSPECT: Final = 1
# What says nothing of the target: neither a duration nor a failure.
_SILENT: Final = frozenset({"vantage_down"})
REFUSED_HERE: Final = "address_refused"  # by the rules of the place itself
_WITH_HEADERS: Final = frozenset({"http", "chat", "completion", "kserve_ready", "kserve_infer", "grpc_health"})


def durations_of(result: ProbeResult) -> dict[int, float]:
    """Return the durations in ms that count for percentiles, by the code of the metric; a failure lasts for ever.

    A probe that was skipped because the one before still ran would have waited too: it counts as over every threshold. The
    time per token is of answers alone.
    """
    if result.outcome in _SILENT or result.reason == REFUSED_HERE:
        return {}
    metrics = ["e2e"]
    metrics += ["ttft"] if result.kind in STREAMS else []
    metrics += ["ttfb"] if result.kind in _WITH_HEADERS else []
    found = {METRICS.index(name): getattr(result, f"{name}_ms") for name in metrics}
    if result.outcome != "ok":
        return dict.fromkeys(found, math.inf)
    if result.tpot_ms is not None and (result.completion_tokens or 0) >= LEAST_TOKENS:
        found[METRICS.index("tpot")] = result.tpot_ms
    return {code: value for code, value in found.items() if value is not None}
