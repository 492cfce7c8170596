"""How much memory a model takes on each GPU: weights + KV cache + overhead.

weights  = linear weights × bytes(precision) + embeddings × 16 bit, divided by the tensor-parallel degree
KV/token = 2 × layers × ⌈KV heads ÷ degree⌉ × head size × bytes  (keys and values)
           layers × (latent rank + rotary part) × bytes, undivided, with latent attention
           layers with a sliding window keep at most that many tokens
overhead = CUDA context, communication and graphs (fixed) + activations of one prefill step + logits of one step

Sources: Kwon et al., "Efficient Memory Management for Large Language Model Serving with PagedAttention" (2023), section 3;
NVIDIA, "Mastering LLM Techniques: Inference Optimization" (KV cache per token); DeepSeek-AI, "DeepSeek-V2" (2024), section 2.1
(latent attention). The fixed part is what start-up logs of vLLM show beside weights and cache.
"""

import math
from dataclasses import dataclass
from typing import Final

from endpoints.sizing.precision import kv_bytes, precision
from endpoints.sizing.shape import ModelShape

GIB: Final = 1024**3
BLOCK_TOKENS: Final = 16  # engines give the KV cache out in pages
FIXED_BYTES: Final = 1 * GIB
PARALLEL_BYTES: Final = GIB // 4  # more on each GPU for communication buffers
PREFILL_TOKENS: Final = 4096
ACTIVATION_BYTES: Final = 2


@dataclass(frozen=True, slots=True)
class Need:
    """Bytes on each GPU. kv_request_bytes: of one request at full context; kv_bytes: of all requests."""

    weights_bytes: int
    kv_request_bytes: int
    kv_bytes: int
    overhead_bytes: int

    @property
    def total_bytes(self) -> int:
        """All of it."""
        return self.weights_bytes + self.kv_bytes + self.overhead_bytes


def weights_bytes(shape: ModelShape, precision_name: str) -> int:
    """Return the bytes of all weights."""
    chosen = precision(precision_name)
    embedding = min(shape.embedding_parameters, shape.parameters)
    return math.ceil((shape.parameters - embedding) * chosen.bytes + embedding * chosen.embedding_bytes)


def kv_token_bytes(shape: ModelShape, *, kv_precision: str = "auto", degree: int = 1) -> int:
    """Return the bytes that one token takes on each GPU while every layer keeps it."""
    return shape.layers * _layer_bytes(shape, kv_precision, degree)


def kv_request_bytes(shape: ModelShape, *, context: int, kv_precision: str = "auto", degree: int = 1) -> int:
    """Return the bytes that one request of `context` tokens takes on each GPU, in whole pages."""
    tokens, windowed = _paged(context), _paged(min(context, shape.window)) if shape.window else 0
    whole = shape.layers - shape.window_layers
    return (whole * tokens + shape.window_layers * windowed) * _layer_bytes(shape, kv_precision, degree)


def need(
    shape: ModelShape,
    *,
    precision_name: str = "bfloat16",
    kv_precision: str = "auto",
    context: int,
    concurrency: int,
    degree: int = 1,
) -> Need:
    """Return what each of `degree` GPUs must hold for `concurrency` requests of `context` tokens. Raises InvalidInput."""
    request = kv_request_bytes(shape, context=context, kv_precision=kv_precision, degree=degree)
    return Need(
        weights_bytes=math.ceil(weights_bytes(shape, precision_name) / degree),
        kv_request_bytes=request,
        kv_bytes=request * concurrency,
        overhead_bytes=_overhead(shape, concurrency, degree),
    )


def _layer_bytes(shape: ModelShape, kv_precision: str, degree: int) -> int:
    size = kv_bytes(kv_precision)
    if shape.latent_size:
        return math.ceil(shape.latent_size * size)
    return math.ceil(2 * math.ceil(shape.kv_heads / degree) * shape.head_size * size)


def _paged(tokens: int) -> int:
    return math.ceil(tokens / BLOCK_TOKENS) * BLOCK_TOKENS


def _overhead(shape: ModelShape, concurrency: int, degree: int) -> int:
    """Return the bytes beside weights and cache.

    A prefill step holds the residual stream twice, queries, keys and values, and the two halves of the gated feed-forward layer;
    sampling holds the logits of every request in 32 bits.
    """
    hidden = shape.hidden_size or shape.attention_heads * shape.head_size
    wide = shape.intermediate_size or 4 * hidden
    prefill = PREFILL_TOKENS * ACTIVATION_BYTES * (2 * hidden + math.ceil((3 * hidden + 2 * wide) / degree))
    logits = concurrency * shape.vocabulary * 4
    return FIXED_BYTES + (PARALLEL_BYTES if degree > 1 else 0) + prefill + logits
