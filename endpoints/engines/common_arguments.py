"""Arguments that several engines have under the same name."""

from dataclasses import replace

from django.utils.translation import gettext_lazy as _

from endpoints.engines.arguments import Argument

TRUST_REMOTE_CODE = Argument(
    name="trust_remote_code",
    flag="--trust-remote-code",
    type="boolean",
    help=_("Runs Python code that comes with the model. Some new models need it; it can do anything the engine can."),
)
READY_WITH = Argument(
    name="ready_with",
    flag="",
    type="string",
    default="chat",
    choices=("chat", "completion"),
    help=_("What is asked before callers are sent: a chat, or a plain completion for models without a chat template."),
)
TOOL_CALL_PARSER = Argument(
    name="tool_call_parser",
    flag="--tool-call-parser",
    type="string",
    help=_("Turns what the model writes into tool calls; the name must fit the model, or calls arrive as text."),
)
REASONING_PARSER = Argument(
    name="reasoning_parser",
    flag="--reasoning-parser",
    type="string",
    help=_("Separates what a model thinks from what it answers; the name must fit the model."),
)
DTYPE = Argument(
    name="dtype",
    flag="--dtype",
    type="string",
    choices=("auto", "half", "float16", "bfloat16", "float32"),
    help=_("Precision of the weights. float32 doubles the memory; cards before Ampere lack bfloat16."),
)
QUANTIZATION = Argument(
    name="quantization",
    flag="--quantization",
    type="string",
    help=_("How weights are stored: 8 bits halve their memory, 4 bits quarter it, at some cost in quality."),
)
KV_CACHE_DTYPE = Argument(
    name="kv_cache_dtype",
    flag="--kv-cache-dtype",
    type="string",
    choices=("auto", "bfloat16", "fp8_e4m3", "fp8_e5m2"),
    help=_("Precision of the KV cache: fp8 holds twice the tokens, at a small cost in quality."),
)
SLOTS = Argument(
    name="max_num_seqs",
    flag="--max-num-seqs",
    type="integer",
    default=128,
    minimum=1,
    maximum=4096,
    is_sent=True,
    help=_("Requests worked on at once. More give more throughput and take memory; too many run out of it under load."),
)
CONTEXT = Argument(
    name="max_model_len",
    flag="--max-model-len",
    type="integer",
    minimum=64,
    maximum=16_777_216,
    help=_("Tokens of prompt and answer together. A smaller limit leaves room for more requests."),
)
MEMORY = Argument(
    name="gpu_memory_utilization",
    flag="--gpu-memory-utilization",
    type="number",
    default=0.9,
    minimum=0.05,
    maximum=0.99,
    is_sent=True,
    help=_(
        "Share of each card's memory that the engine takes. More holds a larger KV cache and leaves less for peaks."
    ),
)
PREFILL = Argument(
    name="max_num_batched_tokens",
    flag="--max-num-batched-tokens",
    type="integer",
    minimum=32,
    maximum=1_048_576,
    help=_("Tokens worked on in one step. More speed up long prompts and delay the next token of everybody else."),
)


def renamed(argument: Argument, name: str, flag: str, **changes: object) -> Argument:
    """Return an argument under an engine's own name and flag."""
    return replace(argument, name=name, flag=flag, **changes)  # type: ignore[arg-type]
