"""What simulated engines write: pages of metrics in the names of the engine that they stand for, and the lines of a start."""

from dataclasses import dataclass
from typing import Final

# Running, waiting, tokens or requests so far, share of the KV cache; "" where the engine tells none.
NAMES: Final = {
    "vllm": (
        "vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:generation_tokens_total", "vllm:kv_cache_usage_perc",
    ),
    "sglang": (
        "sglang:num_running_reqs", "sglang:num_queue_reqs", "sglang:generation_tokens_total", "sglang:token_usage",
    ),
    "tgi": ("tgi_batch_current_size", "tgi_queue_size", "tgi_batch_inference_count", ""),
    "triton": ("", "nv_inference_pending_request_count", "nv_inference_exec_count", ""),
    "trtllm": ("num_requests_running", "num_requests_waiting", "e2e_request_latency_seconds_count", "kv_cache_utilization"),
    "llamacpp": (
        "llamacpp:requests_processing", "llamacpp:requests_deferred", "llamacpp:tokens_predicted_total", "",
    ),
}  # fmt: skip


@dataclass(slots=True)
class Work:
    """What an engine has done and is doing."""

    running: int = 0
    waiting: int = 0
    tokens: int = 0
    requests: int = 0


def metrics_page(engine: str, model: str, work: Work, slots: int) -> str:
    """Return the page in Prometheus' text format; an engine without names of its own speaks as vLLM does."""
    running, waiting, progress, cache = NAMES.get(engine, NAMES["vllm"])
    done = work.requests if engine in {"triton", "trtllm"} else work.tokens
    share = round(min(work.running / slots, 1.0), 3)
    values = ((running, work.running), (waiting, work.waiting), (progress, done), (cache, share))
    return "".join(f'{name}{{model_name="{model}"}} {value}\n' for name, value in values if name)


def start_lines(model: str, seconds: float, gib: float) -> list[tuple[float, str]]:
    """Return (share of the start that has passed, line) of a start, in words by which real engines tell how far they are."""
    return [
        (0.0, f"This engine is simulated: it stands for one that would serve {model}."),
        (0.1, f"Starting to load model {model}..."),
        (0.6, f"Loading model weights took {gib:.1f} GiB and {0.5 * seconds:.1f} seconds"),
        (0.6, "Model loading took no time beyond that."),
        (0.9, f"Graph capturing finished in {0.3 * seconds:.1f} secs"),
        (1.0, "Application startup complete."),
    ]


FAULTS: Final = {
    "crash": "RuntimeError: Engine core initialization failed, as the environment asked for (SIMULATED_FAULT).",
    "out_of_memory": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (SIMULATED_FAULT).",
}
WORDS: Final = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def word(number: int) -> str:
    """Return a piece of an answer: they count, so that a lost or repeated one is seen."""
    return f" {WORDS[number % len(WORDS)]}"
