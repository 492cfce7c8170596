"""What an engine's own metrics page says of its work, by one small table of names: running, waiting, progress, KV cache.

Only what the agent decides with is read here; the panel reads more. Names differ by engine and by version, so each reading
lists all that were seen; the first that a page has counts. Sources: the pages of vLLM 0.5 to 0.26 (`vllm:`), SGLang
(`sglang:`), TGI 3 (`tgi_`), Triton (`nv_`), trtllm-serve (`/prometheus/metrics`), llama.cpp's server (`llamacpp:`).
"""

import json
import math
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Family:
    """Names of one engine's readings. progress: counters that grow while it generates; their sum is taken.

    Tokens of prompts are none of them where the engine counts them as they come in: a stuck engine takes our checks in, too.
    """

    name: str
    progress: tuple[str, ...]
    running: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    kv_cache_ratio: tuple[str, ...] = ()


FAMILIES: Final = (
    Family(
        "vllm",
        running=("vllm:num_requests_running",),
        waiting=("vllm:num_requests_waiting",),
        # Before 0.6 counters had no _total. The iterations move in a long prefill too, when no token comes out yet.
        progress=("vllm:generation_tokens_total", "vllm:generation_tokens", "vllm:iteration_tokens_total_count"),
        kv_cache_ratio=("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
    ),
    Family(
        "sglang",
        running=("sglang:num_running_reqs",),
        waiting=("sglang:num_queue_reqs",),
        progress=("sglang:generation_tokens_total", "sglang:prompt_tokens_total"),
        kv_cache_ratio=("sglang:token_usage",),
    ),
    Family(
        "tgi",
        running=("tgi_batch_current_size",),
        waiting=("tgi_queue_size",),
        progress=("tgi_batch_inference_count", "tgi_request_generated_tokens_sum", "tgi_request_success"),
    ),
    Family(
        "triton",
        waiting=("nv_inference_pending_request_count",),
        progress=("nv_inference_exec_count", "nv_inference_request_failure"),
    ),
    Family(
        "llamacpp",
        running=("llamacpp:requests_processing",),
        waiting=("llamacpp:requests_deferred",),
        progress=("llamacpp:tokens_predicted_total", "llamacpp:n_decode_total"),
        kv_cache_ratio=("llamacpp:kv_cache_usage_ratio",),
    ),
    # Without a prefix of its own: the last to be tried.
    Family(
        "trtllm",
        running=("trtllm_num_requests_running", "num_requests_running"),
        waiting=("trtllm_num_requests_waiting", "num_requests_waiting"),
        progress=("trtllm_e2e_request_latency_seconds_count", "e2e_request_latency_seconds_count"),
        kv_cache_ratio=("trtllm_kv_cache_utilization", "kv_cache_utilization"),
    ),
)
_SLEEP: Final = "vllm:engine_sleep_state"
MAX_LINES: Final = 200_000


@dataclass(frozen=True, slots=True)
class Counters:
    """One look at an engine's page; each None where the page has none. progress only compares with an earlier one.

    Parallel engines behind one page have labels of their own: requests and counters are added, of KV caches the fullest counts.
    """

    family: str = ""
    running: float | None = None
    waiting: float | None = None
    progress: float | None = None
    kv_cache_percent: float | None = None
    is_asleep: bool = False

    @property
    def in_flight(self) -> float | None:
        """Requests that the engine has not finished, None when it tells neither running nor waiting ones."""
        if self.running is None and self.waiting is None:
            return None
        return (self.running or 0.0) + (self.waiting or 0.0)


def read_counters(page: str) -> Counters | None:
    """Return what a page in Prometheus' text format says, None when no engine that is known here wrote it."""
    values = _values(page)
    for family in FAMILIES:
        names = (*family.progress, *family.running, *family.waiting)
        if any(name in values for name in names):
            return _counters(family, values)
    return None


def read_queue(page: str) -> Counters | None:
    """Return what a page that lists an engine's work says (ComfyUI's /queue), None when it is no such page."""
    try:
        told = json.loads(page)
    except ValueError:
        return None
    running, waiting = (
        (told.get("queue_running"), told.get("queue_pending")) if isinstance(told, dict) else (None, None)
    )
    if not isinstance(running, list) or not isinstance(waiting, list):
        return None
    return Counters(family="comfyui", running=float(len(running)), waiting=float(len(waiting)))


def _counters(family: Family, values: dict[str, list[tuple[str, float]]]) -> Counters:
    counted = [sum(value for _, value in values[name]) for name in family.progress if name in values]
    ratio = _first(family.kv_cache_ratio, values, max)
    return Counters(
        family=family.name,
        running=_first(family.running, values, sum),
        waiting=_first(family.waiting, values, sum),
        progress=sum(counted) if counted else None,
        kv_cache_percent=None if ratio is None else round(ratio * 100.0, 2),
        is_asleep=any(value == 1.0 and 'sleep_state="awake"' not in labels for labels, value in values.get(_SLEEP, [])),
    )


def _first(names: tuple[str, ...], values: dict[str, list[tuple[str, float]]], join: object) -> float | None:
    for name in names:
        if name in values:
            found = [value for _, value in values[name]]
            return float(max(found) if join is max else sum(found))
    return None


def _values(page: str) -> dict[str, list[tuple[str, float]]]:
    """Return name → (labels, value) of each sample; lines that are none are passed over."""
    wanted: dict[str, list[tuple[str, float]]] = {}
    for line in page.splitlines()[:MAX_LINES]:
        if not line or line[0] == "#":
            continue
        name, labels, rest = _split(line)
        if name not in _NAMES:
            continue
        try:
            value = float(rest.split()[0])
        except (ValueError, IndexError):
            continue
        if math.isfinite(value):
            wanted.setdefault(name, []).append((labels, value))
    return wanted


def _split(line: str) -> tuple[str, str, str]:
    """Return (name, labels, the rest) of a line."""
    opening = line.find("{")
    if opening < 0:
        name, _, rest = line.partition(" ")
        return name, "", rest
    closing = line.rfind("}")
    return line[:opening].strip(), line[opening + 1 : closing], line[closing + 1 :]


_NAMES: Final = frozenset(
    name for family in FAMILIES for name in (*family.progress, *family.running, *family.waiting, *family.kv_cache_ratio)
) | {_SLEEP}
