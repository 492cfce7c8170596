"""SGLang: `sglang.launch_server`, with its key from the environment."""

from typing import Final

from django.utils.translation import gettext_lazy as _

from endpoints.engines import common_arguments as common
from endpoints.engines import parts
from endpoints.engines.arguments import Argument, checked, flags, screened
from endpoints.engines.base import GIB, Drain, EngineSpec, Launch, Place

ARGUMENTS: Final = (
    common.renamed(common.SLOTS, "max_running_requests", "--max-running-requests"),
    common.renamed(common.CONTEXT, "context_length", "--context-length"),
    common.renamed(common.MEMORY, "mem_fraction_static", "--mem-fraction-static", default=0.85),
    common.QUANTIZATION,
    common.DTYPE,
    common.KV_CACHE_DTYPE,
    common.renamed(common.PREFILL, "chunked_prefill_size", "--chunked-prefill-size"),
    Argument(
        name="max_queued_requests",
        flag="--max-queued-requests",
        type="integer",
        minimum=1,
        maximum=100_000,
        help=_("Requests that may wait in the engine; more are refused at once instead of waiting long."),
    ),
    Argument(
        name="schedule_conservativeness",
        flag="--schedule-conservativeness",
        type="number",
        minimum=0.01,
        maximum=10,
        help=_("Higher begins fewer requests at once and sends fewer back to the queue; lower fills the card more."),
    ),
    Argument(
        name="data_parallel_size",
        flag="--dp-size",
        type="integer",
        minimum=1,
        maximum=64,
        help=_("Copies of the model in one replica. Each has a queue of its own; more replicas are easier to move."),
    ),
    common.TOOL_CALL_PARSER,
    common.REASONING_PARSER,
    common.TRUST_REMOTE_CODE,
    common.READY_WITH,
)
_OWN: Final = (
    "--model-path",
    "--host",
    "--port",
    "--served-model-name",
    "--revision",
    "--tp-size",
    "--tensor-parallel-size",
    "--enable-metrics",
    "--data-parallel-size",
    *(argument.flag for argument in ARGUMENTS if argument.flag),
)
_KEY: Final = _("a key on the command line is seen by everyone on the machine; the panel gives the engine its key.")
_REFUSED: Final = {
    "--api-key": _KEY,
    "--admin-api-key": _KEY,
    "--config": _("a file of arguments cannot be checked; give them here."),
}
_KEY_VARIABLE: Final = "ENGINE_API_KEY"
# SGLang takes its key as an argument only, which every user of the machine could read: it is added inside the process. Run as a
# module, as `python3 -m` does, so that the processes that it spawns find it again.
_START: Final = (
    f"import runpy, sys; from os import environ; sys.argv += ['--api-key', environ.pop('{_KEY_VARIABLE}')]; "
    "runpy.run_module('sglang.launch_server', run_name='__main__', alter_sys=True)"
)


def launch(spec: EngineSpec, place: Place) -> Launch:
    """Return how SGLang is run. Raises InvalidInput."""
    values = checked(ARGUMENTS, spec.arguments)
    extra = screened(spec.extra_arguments, _OWN, _REFUSED)
    warnings = parts.check_gpus(spec, place, times=int(values.get("data_parallel_size", 1)))
    mounts, told = parts.model_mounts(spec, place, {})
    command = ["python3", "-c", _START, "--model-path", spec.model]
    command += ["--host", place.host, "--port", str(place.port), "--served-model-name", spec.name_for_callers()]
    command += ["--revision", spec.revision] if spec.revision and spec.source != "path" else []
    command += ["--tp-size", str(spec.tensor_parallel_size), *flags(ARGUMENTS, values, spec.arguments)]
    command += ["--enable-metrics", *extra]  # off by default
    return Launch(
        command=command,
        image=parts.image_of(spec, place, f"lmsysorg/sglang:{parts.tag_of(spec, form='v{}', default='latest')}"),
        environment=parts.hub_environment(spec, place, {"SGLANG_USE_MODELSCOPE": "true"}) | spec.environment,
        secret_environment=spec.secret_environment,
        port=place.port,
        health_path="/health",
        ready=parts.text_check(spec, values),
        metrics_path="/metrics",
        drain=Drain(how="sigterm", seconds=spec.drain_seconds),
        mounts=mounts,
        shm_bytes=32 * GIB if place.runtime == "container" else None,
        start_limit_seconds=spec.start_limit_seconds,
        warnings=warnings + told,
        api_key_variable=_KEY_VARIABLE,
        slots=int(values["max_running_requests"]),
    )
