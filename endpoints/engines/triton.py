"""NVIDIA Triton Inference Server: `tritonserver` over a model repository on the host."""

import json
from typing import Final

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from endpoints.engines import parts
from endpoints.engines.arguments import Argument, checked, flags, screened
from endpoints.engines.base import GIB, Drain, EngineSpec, Launch, Place, ReadyCheck, refuse

ARGUMENTS: Final = (
    Argument(
        name="model_load_thread_count",
        flag="--model-load-thread-count",
        type="integer",
        minimum=1,
        maximum=64,
        help=_("Models loaded at the same time. More start sooner and take more memory while they do."),
    ),
    Argument(
        name="pinned_memory_pool_byte_size",
        flag="--pinned-memory-pool-byte-size",
        type="integer",
        minimum=0,
        maximum=64 * GIB,
        help=_("Host memory kept for copies to the card. More speeds up large inputs such as images."),
    ),
    Argument(
        name="strict_readiness",
        flag="--strict-readiness",
        type="boolean",
        default=True,
        help=_("The server is ready only when every model is. Without it a model that failed goes unseen."),
    ),
)
_OWN: Final = (
    "--model-repository",
    "--model-store",
    "--http-address",
    "--http-port",
    "--metrics-port",
    "--metrics-address",
    "--allow-http",
    "--allow-metrics",
    "--allow-grpc",
    "--exit-timeout-secs",
    "--strict-readiness",
    *(argument.flag for argument in ARGUMENTS),
)
_REFUSED: Final = {
    "--grpc-port": _("the gateway speaks HTTP to engines, so gRPC is off."),
    "--allow-sagemaker": _("it opens one more port past the gateway."),
    "--allow-vertex-ai": _("it opens one more port past the gateway."),
}


def launch(spec: EngineSpec, place: Place) -> Launch:
    """Return how Triton is run. model: the repository's folder; served_name: the model in it that callers use.

    Metrics lie on a port of their own. Raises InvalidInput.
    """
    if spec.source != "path":
        raise refuse(gettext("Triton serves a model repository: give the path of its folder on the host."), "source")
    if not spec.served_name:
        raise refuse(gettext("Say which model of the repository callers use: its folder's name."), "served_name")
    values = checked(ARGUMENTS, spec.arguments)
    metrics_port = parts.side_port(place.port)
    extra = screened(spec.extra_arguments, _OWN, _REFUSED)
    mounts, _told = parts.model_mounts(spec, place, {})
    ready, warnings = _ready(spec)
    command = ["tritonserver", f"--model-repository={spec.model}"]
    command += [f"--http-address={place.host}", f"--http-port={place.port}", f"--metrics-port={metrics_port}"]
    command += ["--allow-grpc=false", f"--strict-readiness={str(values['strict_readiness']).lower()}"]
    command += _joined(flags([one for one in ARGUMENTS if one.type != "boolean"], values, spec.arguments))
    command += [f"--exit-timeout-secs={spec.drain_seconds}", *extra]
    tag = "" if spec.image or place.runtime == "process" else parts.tag_of(spec, form="{}-py3")
    return Launch(
        command=command,
        image=parts.image_of(spec, place, f"nvcr.io/nvidia/tritonserver:{tag}"),
        environment=dict(spec.environment),
        secret_environment=spec.secret_environment,
        port=place.port,
        health_path="/v2/health/ready",
        ready=ready,
        metrics_path="/metrics",
        metrics_port=metrics_port,
        drain=Drain(how="sigterm", seconds=spec.drain_seconds),
        mounts=mounts,
        shm_bytes=GIB if place.runtime == "container" else None,
        start_limit_seconds=spec.start_limit_seconds,
        warnings=parts.check_gpus(spec, place, times=max(place.gpu_count, 1)) + warnings,
    )


def _joined(parts_of_argv: list[str]) -> list[str]:
    """Write --flag=value, as Triton's documentation does."""
    pairs = zip(parts_of_argv[::2], parts_of_argv[1::2], strict=True)
    return [f"{flag}={value}" for flag, value in pairs]


def _ready(spec: EngineSpec) -> tuple[ReadyCheck, list[str]]:
    """Return a real inference when the spec says what to send (custom.ready_body), else the model's readiness page."""
    body = spec.custom.ready_body if spec.custom is not None else None
    if body is None:
        told = gettext(
            "No sample request is given, so ready means loaded, not answered: add a body for the model's inputs."
        )
        return ReadyCheck(kind="http", path=f"/v2/models/{spec.served_name}/ready"), [told]
    if not isinstance(body.get("inputs"), list) or len(json.dumps(body)) > 100_000:
        raise refuse(gettext("The sample request needs “inputs” as a list, within 100 kB."), "custom.ready_body")
    return ReadyCheck(kind="triton_infer", path=f"/v2/models/{spec.served_name}/infer", body=body), []
