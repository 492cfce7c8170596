"""vLLM: `vllm serve`."""

from typing import Final

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from endpoints.engines import common_arguments as common
from endpoints.engines import parts
from endpoints.engines.arguments import Argument, checked, flags, screened
from endpoints.engines.base import GIB, Drain, EngineSpec, Launch, Place, Value

DRAINS_SINCE: Final = (0, 18, 0)  # --shutdown-timeout; before it SIGTERM cuts what runs
_CACHES: Final = {"vllm": "/root/.cache/vllm"}  # compiled graphs: the next start is shorter

ARGUMENTS: Final = (
    common.SLOTS,
    common.CONTEXT,
    common.MEMORY,
    common.QUANTIZATION,
    common.DTYPE,
    common.renamed(
        common.KV_CACHE_DTYPE,
        "kv_cache_dtype",
        "--kv-cache-dtype",
        choices=("auto", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2"),
    ),
    common.PREFILL,
    Argument(
        name="enable_prefix_caching",
        flag="--enable-prefix-caching",
        off_flag="--no-enable-prefix-caching",
        type="boolean",
        help=_(
            "Keeps the KV cache of prompts that begin alike. Saves time with long shared prompts and costs nothing else."
        ),
    ),
    Argument(
        name="enforce_eager",
        flag="--enforce-eager",
        type="boolean",
        help=_("Starts sooner and saves some memory by doing without CUDA graphs; each token takes longer."),
    ),
    Argument(
        name="pipeline_parallel_size",
        flag="--pipeline-parallel-size",
        type="integer",
        minimum=1,
        maximum=64,
        help=_("Splits the layers over GPUs, for cards without fast links; latency is that of one card."),
    ),
    Argument(
        name="data_parallel_size",
        flag="--data-parallel-size",
        type="integer",
        minimum=1,
        maximum=64,
        help=_("Copies of the model in one replica. Each has a queue of its own; more replicas are easier to move."),
    ),
    Argument(
        name="cpu_offload_gb",
        flag="--cpu-offload-gb",
        type="number",
        minimum=0,
        maximum=2048,
        help=_("Weights kept in the machine's own memory, in GiB per card. Makes a model fit and makes it slow."),
    ),
    common.TOOL_CALL_PARSER,
    common.REASONING_PARSER,
    common.TRUST_REMOTE_CODE,
    common.READY_WITH,
)
_OWN: Final = (
    "--model",
    "--host",
    "--port",
    "--served-model-name",
    "--revision",
    "--tensor-parallel-size",
    "-tp",
    "--shutdown-timeout",
    "--enable-auto-tool-choice",
    *(argument.flag for argument in ARGUMENTS if argument.flag),
)
_REFUSED: Final = {
    "--api-key": _("a key on the command line is seen by everyone on the machine; the panel gives the engine its key."),
    "--disable-log-stats": _("without it the panel sees no load; leave it out."),
    "--config": _("a file of arguments cannot be checked; give them here."),
}


def launch(spec: EngineSpec, place: Place) -> Launch:
    """Return how vLLM is run. Raises InvalidInput."""
    values = checked(ARGUMENTS, spec.arguments)
    extra = screened(spec.extra_arguments, _OWN, _REFUSED)
    warnings = parts.check_gpus(spec, place, times=_times(values))
    mounts, told = parts.model_mounts(spec, place, _CACHES)
    drains = not parts.is_older(spec.version, DRAINS_SINCE)
    how = ["--shutdown-timeout", str(spec.drain_seconds)] if drains else []
    tools = ["--enable-auto-tool-choice"] if values.get("tool_call_parser") else []
    command = ["vllm", "serve", spec.model, "--host", place.host, "--port", str(place.port)]
    command += ["--served-model-name", spec.name_for_callers(), *_revision(spec)]
    command += ["--tensor-parallel-size", str(spec.tensor_parallel_size)]
    command += [*flags(ARGUMENTS, values, spec.arguments), *tools, *how, *extra]
    return Launch(
        command=command,
        image=parts.image_of(spec, place, f"vllm/vllm-openai:{parts.tag_of(spec, form='v{}', default='latest')}"),
        environment=parts.hub_environment(spec, place, {"VLLM_USE_MODELSCOPE": "True"}) | spec.environment,
        secret_environment=spec.secret_environment,
        port=place.port,
        health_path="/health",
        ready=parts.text_check(spec, values),
        metrics_path="/metrics",
        drain=Drain(how="sigterm" if drains else "idle_then_sigterm", seconds=spec.drain_seconds),
        mounts=mounts,
        shm_bytes=(8 * GIB if spec.tensor_parallel_size > 1 else 2 * GIB) if place.runtime == "container" else None,
        start_limit_seconds=spec.start_limit_seconds,
        warnings=warnings + told + _warnings(spec, place, values),
        api_key_variable="VLLM_API_KEY",
        slots=int(values["max_num_seqs"]),
    )


def _times(values: dict[str, Value]) -> int:
    return int(values.get("pipeline_parallel_size", 1)) * int(values.get("data_parallel_size", 1))


def _revision(spec: EngineSpec) -> list[str]:
    return ["--revision", spec.revision] if spec.revision and spec.source != "path" else []


def _warnings(spec: EngineSpec, place: Place, values: dict[str, Value]) -> list[str]:
    told = []
    if place.runtime == "container" and not spec.image and not spec.version:
        told.append(
            gettext("The image's tag “latest” moves: state the engine's version, so that every replica runs the same.")
        )
    if float(values["gpu_memory_utilization"]) > 0.95:
        told.append(gettext("A share over 0.95 leaves little for peaks: expect CUDA out of memory under load."))
    return told
