"""Hugging Face Text Generation Inference: `text-generation-launcher`. It is in maintenance mode."""

from typing import Final

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from endpoints.engines import common_arguments as common
from endpoints.engines import parts
from endpoints.engines.arguments import Argument, checked, flags, screened
from endpoints.engines.base import GIB, Drain, EngineSpec, Launch, Place, refuse

VERSION: Final = "3.3.5"
_ENTRY: Final = "/tgi-entrypoint.sh"  # of the image: it sets up the environment and runs the launcher

ARGUMENTS: Final = (
    common.renamed(common.SLOTS, "max_concurrent_requests", "--max-concurrent-requests"),
    common.renamed(common.CONTEXT, "max_total_tokens", "--max-total-tokens"),
    Argument(
        name="max_input_tokens",
        flag="--max-input-tokens",
        type="integer",
        minimum=1,
        maximum=16_777_216,
        help=_("Tokens of a prompt at most; it must be smaller than the total."),
    ),
    common.renamed(common.PREFILL, "max_batch_prefill_tokens", "--max-batch-prefill-tokens"),
    Argument(
        name="max_batch_total_tokens",
        flag="--max-batch-total-tokens",
        type="integer",
        minimum=1,
        maximum=1_000_000_000,
        help=_(
            "Tokens of all requests at once. The engine finds the largest that fits by itself; lower it to leave room."
        ),
    ),
    common.renamed(common.MEMORY, "cuda_memory_fraction", "--cuda-memory-fraction", default=0.95, maximum=1.0),
    common.renamed(
        common.QUANTIZATION,
        "quantize",
        "--quantize",
        choices=("awq", "bitsandbytes", "compressed-tensors", "eetq", "exl2", "fp8", "gptq", "marlin"),
    ),
    common.renamed(common.DTYPE, "dtype", "--dtype", choices=("float16", "bfloat16")),
    common.renamed(common.KV_CACHE_DTYPE, "kv_cache_dtype", "--kv-cache-dtype", choices=("fp8_e4m3fn", "fp8_e5m2")),
    common.TRUST_REMOTE_CODE,
    common.READY_WITH,
)
_OWN: Final = (
    "--model-id",
    "--hostname",
    "--port",
    "-p",
    "--revision",
    "--num-shard",
    "--sharded",
    "--prometheus-port",
    "--shard-uds-path",
    "--master-port",
    "--graceful-termination-timeout",
    "-g",
    *(argument.flag for argument in ARGUMENTS if argument.flag),
)
_REFUSED: Final = {
    "--api-key": _("a key on the command line is seen by everyone on the machine; the panel gives the engine its key."),
    "--ngrok": _("it would open the engine to the internet past the gateway."),
}


def launch(spec: EngineSpec, place: Place) -> Launch:
    """Return how TGI is run. Raises InvalidInput."""
    values = checked(ARGUMENTS, spec.arguments)
    extra = screened(spec.extra_arguments, _OWN, _REFUSED)
    most, prompt = values.get("max_total_tokens"), values.get("max_input_tokens")
    if most is not None and prompt is not None and int(prompt) >= int(most):
        raise refuse(
            gettext("max_input_tokens must be smaller than max_total_tokens: lower it or raise the total."),
            "max_input_tokens",
        )
    warnings = parts.check_gpus(spec, place)
    mounts, told = parts.model_mounts(spec, place, {})
    command = [_ENTRY if place.runtime == "container" else "text-generation-launcher", "--model-id", spec.model]
    command += ["--revision", spec.revision] if spec.revision and spec.source != "path" else []
    command += ["--hostname", place.host, "--port", str(place.port), *_side_ports(place)]
    command += ["--num-shard", str(spec.tensor_parallel_size), *flags(ARGUMENTS, values, spec.arguments)]
    command += ["--graceful-termination-timeout", str(spec.drain_seconds), *extra]
    return Launch(
        command=command,
        image=parts.image_of(
            spec, place, f"ghcr.io/huggingface/text-generation-inference:{parts.tag_of(spec, default=VERSION)}"
        ),
        environment=_environment(spec, place),
        secret_environment=spec.secret_environment,
        port=place.port,
        health_path="/health",
        ready=parts.text_check(spec, values),
        metrics_path="/metrics",
        drain=Drain(how="sigterm", seconds=spec.drain_seconds),
        mounts=mounts,
        shm_bytes=GIB * max(1, spec.tensor_parallel_size) if place.runtime == "container" else None,
        start_limit_seconds=spec.start_limit_seconds,
        warnings=[*warnings, *told, gettext("TGI gets repairs only; vLLM or SGLang are where new models come first.")],
        api_key_variable="API_KEY",
        slots=int(values["max_concurrent_requests"]),
    )


def _environment(spec: EngineSpec, place: Place) -> dict[str, str]:
    """The image keeps models in /data unless told otherwise; the shared cache is the usual one."""
    base = parts.hub_environment(spec, place, {})
    cache = {"HUGGINGFACE_HUB_CACHE": "/root/.cache/huggingface/hub"} if place.runtime == "container" else {}
    return {**base, **cache, **spec.environment}


def _side_ports(place: Place) -> list[str]:
    """Return what would clash between two on one machine: its own metrics port, its socket and its shards' meeting point."""
    own, master = parts.side_port(place.port), parts.side_port(place.port, 1)
    socket = f"/tmp/text-generation-server-{place.port}"  # noqa: S108 (the launcher's own default lies there)
    return ["--prometheus-port", str(own), "--master-port", str(master), "--shard-uds-path", socket]
