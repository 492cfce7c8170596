"""What each engine calls the same thing: the context of one request, the requests at once, its share of the memory."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from endpoints.engines.arguments import Argument
from endpoints.engines.registry import ENGINES

Concept = Literal["context", "slots", "memory", "quantization", "kv_cache"]

_NAMES: Final[Mapping[Concept, Sequence[str]]] = {
    "context": ("max_model_len", "context_length", "max_total_tokens", "max_seq_len", "context_per_slot"),
    "slots": ("max_num_seqs", "max_running_requests", "max_concurrent_requests", "max_batch_size", "parallel"),
    "memory": (
        "gpu_memory_utilization",
        "mem_fraction_static",
        "cuda_memory_fraction",
        "free_gpu_memory_fraction",
        "cb_max_memory_percent",
    ),
    "quantization": ("quantization", "quantize"),
    "kv_cache": ("kv_cache_dtype",),
}


def argument_for(kind: str, concept: Concept) -> Argument | None:
    """Return an engine's argument for a concept, None when it has none."""
    table = {argument.name: argument for argument in ENGINES[kind].arguments}
    return next((table[name] for name in _NAMES[concept] if name in table), None)
