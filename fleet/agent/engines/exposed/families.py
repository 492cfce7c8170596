"""Which name holds which reading, by engine and version, and how the lines of one name are put together.

Sources: vLLM 0.5 to 0.32 (vllm/v1/metrics/loggers.py and pages of old versions), SGLang 0.4 to 0.5.23
(observability/metrics_collector.py), TGI 3.3 (docs/source/reference/metrics.md), Triton (docs/user_guide/metrics.md),
TensorRT-LLM (metrics/collector.py; names without prefix before 1.1), llama.cpp (tools/server/README.md).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

Rule = Literal["sum", "max"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Named:
    """One name of a reading. since, before: versions that have it, () for no bound. scale: to the reading's unit."""

    name: str
    since: tuple[int, ...] = ()
    before: tuple[int, ...] = ()
    scale: float = 1.0

    def is_of(self, version: tuple[int, ...]) -> bool:
        """Say whether a version has this name; an unknown one may have any."""
        return not version or ((not self.since or version >= self.since) and (not self.before or version < self.before))


@dataclass(frozen=True, slots=True)
class Reading:
    """A reading and its names, the newest first. rule: over models, ranks and data-parallel engines."""

    rule: Rule
    names: Sequence[Named]


def _sum(*names: str | Named) -> Reading:
    return Reading("sum", tuple(Named(name=name) if isinstance(name, str) else name for name in names))


def _fullest(*names: Named) -> Reading:
    return Reading("max", names)


# How the fields of EngineMetrics are found. A histogram's name stands without _bucket, _sum and _count.
FAMILIES: Final[Mapping[str, Mapping[str, Reading]]] = {
    "vllm": {
        "running": _sum("vllm:num_requests_running"),
        "waiting": _sum("vllm:num_requests_waiting"),
        "kv_cache_usage_percent": _fullest(
            Named(name="vllm:kv_cache_usage_perc", since=(0, 9, 2), scale=100.0),
            Named(name="vllm:gpu_cache_usage_perc", before=(0, 9, 2), scale=100.0),
        ),
        "preemptions_total": _sum("vllm:num_preemptions_total", "vllm:num_preemptions"),
        "prompt_tokens_total": _sum("vllm:prompt_tokens_total", "vllm:prompt_tokens"),
        "generation_tokens_total": _sum("vllm:generation_tokens_total", "vllm:generation_tokens"),
        "time_to_first_token": _sum("vllm:time_to_first_token_seconds"),
        "inter_token": _sum(
            Named(name="vllm:inter_token_latency_seconds", since=(0, 11)),
            Named(name="vllm:time_per_output_token_seconds", before=(0, 11)),
        ),
        "requests_total": _sum("vllm:request_success_total", "vllm:request_success"),
        "queue_time": _sum("vllm:request_queue_time_seconds"),
        "prefill_time": _sum("vllm:request_prefill_time_seconds"),
        "decode_time": _sum("vllm:request_decode_time_seconds"),
        "request_latency": _sum("vllm:e2e_request_latency_seconds"),
    },
    "sglang": {
        "running": _sum("sglang:num_running_reqs"),
        "waiting": _sum("sglang:num_queue_reqs"),
        "kv_cache_usage_percent": _fullest(Named(name="sglang:token_usage", scale=100.0)),
        "preemptions_total": _sum("sglang:num_retracted_requests_total"),
        "prompt_tokens_total": _sum("sglang:prompt_tokens_total"),
        "generation_tokens_total": _sum("sglang:generation_tokens_total"),
        "time_to_first_token": _sum("sglang:time_to_first_token_seconds"),
        "inter_token": _sum(
            Named(name="sglang:inter_token_latency_seconds", since=(0, 4, 5)),
            Named(name="sglang:time_per_output_token_seconds", before=(0, 4, 5)),
        ),
        "requests_total": _sum("sglang:num_requests_total", "sglang:e2e_request_latency_seconds_count"),
        "queue_time": _sum("sglang:queue_time_seconds"),
        "request_latency": _sum("sglang:e2e_request_latency_seconds"),
    },
    "tgi": {
        "running": _sum("tgi_batch_current_size"),
        "waiting": _sum("tgi_queue_size"),
        "prompt_tokens_total": _sum("tgi_request_input_length_sum"),
        "generation_tokens_total": _sum("tgi_request_generated_tokens_sum"),
        "requests_total": _sum("tgi_request_success"),
        "inter_token": _sum("tgi_request_mean_time_per_token_duration"),
        "queue_time": _sum("tgi_request_queue_duration"),
        "request_latency": _sum("tgi_request_duration"),
    },
    "triton": {
        "waiting": _sum("nv_inference_pending_request_count"),
        "requests_total": _sum("nv_inference_request_success"),
        "time_to_first_token": _sum(Named(name="nv_inference_first_response_histogram_ms", scale=0.001)),
    },
    "trtllm": {
        "running": _sum("trtllm_num_requests_running", "num_requests_running"),
        "waiting": _sum("trtllm_num_requests_waiting", "num_requests_waiting"),
        "kv_cache_usage_percent": _fullest(
            Named(name="trtllm_kv_cache_utilization", scale=100.0), Named(name="kv_cache_utilization", scale=100.0)
        ),
        "prompt_tokens_total": _sum("trtllm_prompt_tokens_total"),
        "generation_tokens_total": _sum("trtllm_generation_tokens_total"),
        "time_to_first_token": _sum("trtllm_time_to_first_token_seconds", "time_to_first_token_seconds"),
        "inter_token": _sum("trtllm_time_per_output_token_seconds", "time_per_output_token_seconds"),
        "requests_total": _sum(
            "trtllm_request_success_total",
            "request_success_total",
            "trtllm_e2e_request_latency_seconds_count",
            "e2e_request_latency_seconds_count",
        ),
        "queue_time": _sum("trtllm_request_queue_time_seconds", "request_queue_time_seconds"),
        "request_latency": _sum("trtllm_e2e_request_latency_seconds", "e2e_request_latency_seconds"),
    },
    "llamacpp": {
        "running": _sum("llamacpp:requests_processing"),
        "waiting": _sum("llamacpp:requests_deferred"),
        "kv_cache_usage_percent": _fullest(Named(name="llamacpp:kv_cache_usage_ratio", scale=100.0)),
        "prompt_tokens_total": _sum("llamacpp:prompt_tokens_total"),
        "generation_tokens_total": _sum("llamacpp:tokens_predicted_total"),
    },
}
# Which grow with any work done: compared with an earlier look they tell whether an engine moves. They are added.
PROGRESS: Final[Mapping[str, Sequence[str]]] = {
    "vllm": (
        "vllm:generation_tokens_total",
        "vllm:generation_tokens",
        "vllm:prompt_tokens_total",
        "vllm:prompt_tokens",
        "vllm:iteration_tokens_total_count",
    ),
    "sglang": ("sglang:generation_tokens_total", "sglang:prompt_tokens_total"),
    "tgi": ("tgi_batch_inference_count", "tgi_request_generated_tokens_sum", "tgi_request_success"),
    "triton": ("nv_inference_exec_count", "nv_inference_request_failure"),
    "trtllm": (
        "trtllm_generation_tokens_total",
        "trtllm_e2e_request_latency_seconds_count",
        "e2e_request_latency_seconds_count",
    ),
    "llamacpp": ("llamacpp:tokens_predicted_total", "llamacpp:prompt_tokens_total", "llamacpp:n_decode_total"),
}
# Each rank of one tensor- or pipeline-parallel engine tells the same; each data-parallel engine has its own queue.
RANK_LABELS: Final = frozenset({"tp_rank", "pp_rank", "moe_ep_rank", "pid"})
