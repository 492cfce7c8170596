"""Hugging Face `transformers serve`: for trying models that no faster engine knows yet."""

from typing import Final

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from endpoints.engines import common_arguments as common
from endpoints.engines import parts
from endpoints.engines.arguments import Argument, checked, flags, screened
from endpoints.engines.base import GIB, Drain, EngineSpec, Launch, Place, refuse

MODEL_AS_ARGUMENT_SINCE: Final = (5,)  # before it the model is an option

ARGUMENTS: Final = (
    Argument(
        name="continuous_batching",
        flag="--continuous-batching",
        off_flag="--no-continuous-batching",
        type="boolean",
        default=True,
        is_sent=True,
        help=_("Works on several requests at once. Without it they run one after another."),
    ),
    common.renamed(common.QUANTIZATION, "quantization", "--quantization", choices=("bnb-4bit", "bnb-8bit")),
    common.renamed(common.DTYPE, "dtype", "--dtype", choices=("auto", "float16", "bfloat16", "float32")),
    Argument(
        name="attn_implementation",
        flag="--attn-implementation",
        type="string",
        help=_("Attention kernels, such as flash_attention_2 or sdpa; faster ones must be installed in the image."),
    ),
    Argument(
        name="cb_max_memory_percent",
        flag="--cb-max-memory-percent",
        type="number",
        minimum=0.05,
        maximum=0.99,
        help=_(
            "Share of the card's memory for the KV cache, 0 to 1. More holds more requests and leaves less for peaks."
        ),
    ),
    common.renamed(common.PREFILL, "cb_max_batch_tokens", "--cb-max-batch-tokens"),
    common.TRUST_REMOTE_CODE,
    common.READY_WITH,
)
_OWN: Final = (
    "--host",
    "--port",
    "--force-model",
    "--model-timeout",
    *(argument.flag for argument in ARGUMENTS if argument.flag),
)
_REFUSED: Final = {"--enable-cors": _("it lets any web page use the engine; the gateway answers browsers.")}


def launch(spec: EngineSpec, place: Place) -> Launch:
    """Return how `transformers serve` is run. Raises InvalidInput."""
    if spec.served_name:
        raise refuse(
            gettext("transformers serve knows a model by its own name only: leave the served name empty."),
            "served_name",
        )
    values = checked(ARGUMENTS, spec.arguments)
    extra = screened(spec.extra_arguments, _OWN, _REFUSED)
    mounts, told = parts.model_mounts(spec, place, {})
    model = spec.name_for_callers()
    named = ["--force-model", model] if parts.is_older(spec.version, MODEL_AS_ARGUMENT_SINCE) else [model]
    command = ["transformers", "serve", *named, "--host", place.host, "--port", str(place.port)]
    warnings = [*parts.check_gpus(spec, place, times=max(place.gpu_count, 1)), *told]
    warnings.append(
        gettext(
            "transformers serve tells no metrics: queue and cache stay unknown, and load is seen at the gateway only."
        )
    )
    return Launch(
        command=[*command, *flags(ARGUMENTS, values, spec.arguments), *extra],
        image=parts.image_of(spec, place, None),
        environment=parts.hub_environment(spec, place, {}) | spec.environment,
        secret_environment=spec.secret_environment,
        port=place.port,
        health_path="/health",
        ready=parts.text_check(spec, values),
        metrics_path=None,
        drain=Drain(how="sigterm", seconds=spec.drain_seconds),
        mounts=mounts,
        shm_bytes=GIB if place.runtime == "container" else None,
        start_limit_seconds=spec.start_limit_seconds,
        warnings=warnings,
    )
