"""TensorRT-LLM: `trtllm-serve`."""

from typing import Final

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from endpoints.engines import common_arguments as common
from endpoints.engines import parts
from endpoints.engines.arguments import Argument, checked, flags, screened
from endpoints.engines.base import GIB, Drain, EngineSpec, Launch, Mount, Place, check_path

ARGUMENTS: Final = (
    common.renamed(common.SLOTS, "max_batch_size", "--max_batch_size"),
    common.renamed(common.CONTEXT, "max_seq_len", "--max_seq_len"),
    Argument(
        name="free_gpu_memory_fraction",
        flag="--kv_cache_free_gpu_memory_fraction",
        type="number",
        default=0.9,
        minimum=0.05,
        maximum=0.99,
        is_sent=True,
        help=_(
            "Share of what is free after loading that the KV cache takes. More holds more tokens, less leaves room for peaks."
        ),
    ),
    common.renamed(common.PREFILL, "max_num_tokens", "--max_num_tokens"),
    Argument(
        name="backend",
        flag="--backend",
        type="string",
        choices=("pytorch", "tensorrt"),
        help=_("pytorch loads a checkpoint as it is; tensorrt runs an engine built before for this very card."),
    ),
    Argument(
        name="options_file",
        flag="--extra_llm_api_options",
        type="string",
        help=_("Path of a YAML file on the host with more options. Metrics need return_perf_metrics: true in it."),
    ),
    common.renamed(common.TRUST_REMOTE_CODE, "trust_remote_code", "--trust_remote_code"),
    common.READY_WITH,
)
_OWN: Final = (
    "--host",
    "--port",
    "--tp_size",
    "--tensor_parallel_size",
    "--revision",
    "--free_gpu_memory_fraction",
    "--config",
    *(argument.flag for argument in ARGUMENTS if argument.flag),
)


def launch(spec: EngineSpec, place: Place) -> Launch:
    """Return how trtllm-serve is run. Raises InvalidInput."""
    given = dict(spec.arguments)
    options = given.pop("options_file", None)
    values = checked(ARGUMENTS, given)
    extra = screened(spec.extra_arguments, _OWN, {})
    mounts, told = parts.model_mounts(spec, place, {})
    if options is not None:
        check_path(str(options), "options_file")
        given["options_file"] = values["options_file"] = str(options)
        mounts += (
            [Mount(source=str(options), target=str(options), is_read_only=True)] if place.runtime == "container" else []
        )
    command = ["trtllm-serve", spec.model, "--host", place.host, "--port", str(place.port)]
    command += ["--tp_size", str(spec.tensor_parallel_size), *flags(ARGUMENTS, values, given)]
    command += ["--revision", spec.revision] if spec.revision and spec.source != "path" else []
    tag = "" if spec.image or place.runtime == "process" else parts.tag_of(spec)
    warnings = parts.check_gpus(spec, place) + told
    if options is None:
        warnings.append(
            gettext("Without an options file that says return_perf_metrics: true, TensorRT-LLM tells no metrics.")
        )
    return Launch(
        command=[*command, *extra],
        image=parts.image_of(spec, place, f"nvcr.io/nvidia/tensorrt-llm/release:{tag}"),
        environment=parts.hub_environment(spec, place, {}) | spec.environment,
        secret_environment=spec.secret_environment,
        port=place.port,
        health_path="/health",
        ready=parts.text_check(spec, values),
        metrics_path="/prometheus/metrics" if options is not None else None,
        drain=Drain(how="idle_then_sigterm", seconds=spec.drain_seconds),
        mounts=mounts,
        shm_bytes=8 * GIB if place.runtime == "container" else None,
        start_limit_seconds=spec.start_limit_seconds,
        warnings=warnings,
        slots=int(values["max_batch_size"]),
    )
