"""How long requests waited, were read and were answered in the engine itself, between two looks at its page of metrics.

Names as in the engines' own sources: vLLM (v0 and v1), SGLang, TGI; sums and counts of Prometheus histograms in seconds.
"""

import math
from collections import defaultdict
from typing import Final

from fleet.agent.rounds.plan import EngineTimes

_QUEUE: Final = ("vllm:request_queue_time_seconds", "sglang:queue_time_seconds", "tgi_request_queue_duration")
_PREFILL: Final = ("vllm:request_prefill_time_seconds",)
_DECODE: Final = ("vllm:request_decode_time_seconds",)
_RUNNING: Final = ("vllm:num_requests_running", "sglang:num_running_reqs", "tgi_batch_current_size")
_WAITING: Final = ("vllm:num_requests_waiting", "sglang:num_queue_reqs", "tgi_queue_size")
_CACHE: Final = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage")
_WANTED: Final = frozenset(
    [*_RUNNING, *_WAITING, *_CACHE]
    + [f"{name}_{end}" for name in (*_QUEUE, *_PREFILL, *_DECODE) for end in ("sum", "count")]
)
MOST_LINES: Final = 200_000

Look = dict[str, float]


def read_look(page: str) -> Look:
    """Return the readings of a page by name: added over models and ranks, of KV caches the fullest."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    for line in page.splitlines()[:MOST_LINES]:
        name = line.split("{", 1)[0].split(" ", 1)[0]
        if name in _WANTED:
            value = _value(line)
            if value is not None:
                found[name].append(value)
    return {name: max(values) if name in _CACHE else sum(values) for name, values in found.items()}


def _value(line: str) -> float | None:
    """Return the value of a sample, without its time; None when it is none."""
    rest = line.rpartition("}")[2].split() if "}" in line else line.split()[1:]
    try:
        value = float(rest[0])
    except (ValueError, IndexError):
        return None
    return value if math.isfinite(value) else None


def between(looks: list[Look]) -> EngineTimes | None:
    """Return means over the looks: of counters from the first to the last, of gauges of all; None for an unknown page."""
    if not looks or not any(looks):
        return None
    first, last = looks[0], looks[-1]
    queue, requests = _mean(first, last, _QUEUE)
    return EngineTimes(
        queue_ms=queue,
        prefill_ms=_mean(first, last, _PREFILL)[0],
        decode_ms=_mean(first, last, _DECODE)[0],
        waiting=_gauge(looks, _WAITING),
        running=_gauge(looks, _RUNNING),
        kv_cache_usage=_gauge(looks, _CACHE),
        requests=requests,
    )


def _mean(first: Look, last: Look, names: tuple[str, ...]) -> tuple[float | None, float | None]:
    """Return (mean in ms, requests) of what was added between two looks; None after a restart, and without any request."""
    for name in names:
        total, count = f"{name}_sum", f"{name}_count"
        if total in last and count in last:
            requests = last[count] - first.get(count, 0.0)
            seconds = last[total] - first.get(total, 0.0)
            return (seconds / requests * 1000, requests) if requests > 0 and seconds >= 0 else (None, None)
    return None, None


def _gauge(looks: list[Look], names: tuple[str, ...]) -> float | None:
    for name in names:
        values = [look[name] for look in looks if name in look]
        if values:
            return sum(values) / len(values)
    return None
