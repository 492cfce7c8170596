"""llama.cpp's server: GGUF models, on GPUs of any kind and on CPUs."""

from typing import Final

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from endpoints.engines import common_arguments as common
from endpoints.engines import parts
from endpoints.engines.arguments import Argument, checked, flags, screened
from endpoints.engines.base import GIB, Drain, EngineSpec, Launch, Place, Value, refuse

_CACHE_TYPES: Final = ("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1")

ARGUMENTS: Final = (
    common.renamed(common.SLOTS, "parallel", "--parallel", default=4, maximum=256),
    Argument(
        name="context_per_slot",
        flag="",
        type="integer",
        default=8192,
        minimum=64,
        maximum=16_777_216,
        help=_("Tokens of prompt and answer of one request. Memory grows with it times the number of slots."),
    ),
    Argument(
        name="n_gpu_layers",
        flag="--n-gpu-layers",
        type="integer",
        default=999,
        minimum=0,
        maximum=999,
        is_sent=True,
        help=_("Layers kept on the card; 999 is all. Fewer make a model fit and make it slow."),
    ),
    Argument(
        name="cache_type_k",
        flag="--cache-type-k",
        type="string",
        choices=_CACHE_TYPES,
        help=_("Precision of keys in the KV cache: q8_0 nearly halves it at a small cost in quality."),
    ),
    Argument(
        name="cache_type_v",
        flag="--cache-type-v",
        type="string",
        choices=_CACHE_TYPES,
        help=_("Precision of values in the KV cache; below f16 it needs flash attention."),
    ),
    Argument(
        name="flash_attn",
        flag="--flash-attn",
        type="string",
        choices=("on", "off", "auto"),
        help=_("Attention that needs less memory; auto uses it where the card can."),
    ),
    Argument(
        name="batch_size",
        flag="--batch-size",
        type="integer",
        minimum=1,
        maximum=65_536,
        help=_("Tokens of prompts worked on in one step. More is faster and takes memory."),
    ),
    Argument(
        name="split_mode",
        flag="--split-mode",
        type="string",
        choices=("none", "layer", "row"),
        help=_("How several cards share the model: by layers (the usual), by rows (fast links only), or not."),
    ),
    Argument(
        name="threads",
        flag="--threads",
        type="integer",
        minimum=1,
        maximum=1024,
        help=_("CPU threads for what is not on the card. More than there are cores make it slower."),
    ),
    common.READY_WITH,
)
_OWN: Final = (
    "--model",
    "-m",
    "--hf-repo",
    "-hf",
    "-hfr",
    "--host",
    "--port",
    "--alias",
    "-a",
    "--ctx-size",
    "-c",
    "--metrics",
    "-np",
    "-ngl",
    "--gpu-layers",
    *(argument.flag for argument in ARGUMENTS if argument.flag),
)
_KEY: Final = _("a key on the command line is seen by everyone on the machine; the panel gives the engine its key.")
_TOOLS: Final = _("it lets whoever chats run commands on the server.")
_REFUSED: Final = {
    "--api-key": _KEY,
    "--hf-token": _KEY,
    "--tools": _TOOLS,
    "--agent": _TOOLS,
    "-ag": _TOOLS,
    "--ui-mcp-proxy": _TOOLS,
    "--webui-mcp-proxy": _TOOLS,
    "--mcp-servers-config": _TOOLS,
    "--mcp-servers-json": _TOOLS,
}


def launch(spec: EngineSpec, place: Place) -> Launch:
    """Return how llama-server is run. Raises InvalidInput."""
    values = checked(ARGUMENTS, spec.arguments)
    extra = screened(spec.extra_arguments, _OWN, _REFUSED)
    if spec.revision:
        raise refuse(
            gettext("llama.cpp loads the newest revision only: leave the revision empty, or give a file's path."),
            "revision",
        )
    mounts, told = parts.model_mounts(
        spec, place, {"llama.cpp": "/root/.cache/llama.cpp"} if spec.source != "path" else {}
    )
    slots = int(values["parallel"])
    # The engine divides its context among the slots.
    context = int(values["context_per_slot"]) * slots
    command = ["/app/llama-server" if place.runtime == "container" else "llama-server"]
    command += ["--model" if spec.source == "path" else "--hf-repo", spec.model, "--alias", spec.name_for_callers()]
    command += ["--host", place.host, "--port", str(place.port), "--ctx-size", str(context)]
    command += [*flags(ARGUMENTS, values, spec.arguments), "--metrics", *extra]
    tag = parts.tag_of(spec, form="server-cuda-{}", default="server-cuda")
    return Launch(
        command=command,
        image=parts.image_of(spec, place, f"ghcr.io/ggml-org/llama.cpp:{tag}"),
        environment=_environment(spec, place),
        secret_environment=spec.secret_environment,
        port=place.port,
        health_path="/health",
        ready=parts.text_check(spec, values),
        metrics_path="/metrics",
        drain=Drain(how="idle_then_sigterm", seconds=spec.drain_seconds),
        mounts=mounts,
        shm_bytes=GIB if place.runtime == "container" else None,
        start_limit_seconds=spec.start_limit_seconds,
        warnings=parts.check_gpus(spec, place, times=max(place.gpu_count, 1)) + told + _warnings(place, values),
        api_key_variable="LLAMA_API_KEY",
        slots=slots,
    )


def _environment(spec: EngineSpec, place: Place) -> dict[str, str]:
    """llama.cpp names its hub by a variable of its own."""
    base = parts.hub_environment(spec, place, {"MODEL_ENDPOINT": "https://www.modelscope.cn/"})
    if spec.source == "huggingface" and place.mirrors.hf_endpoint:
        base["MODEL_ENDPOINT"] = place.mirrors.hf_endpoint.rstrip("/") + "/"
    return {**base, **spec.environment}


def _warnings(place: Place, values: dict[str, Value]) -> list[str]:
    if place.gpu_count == 0 and int(values["n_gpu_layers"]) > 0:
        return [gettext("The replica gets no GPU: all layers run on the CPU, slowly.")]
    return []
