"""From a revision to what an agent is told to run: the engine's preset, the server's mirrors, secrets by name."""

from collections.abc import Collection, Iterable
from typing import Any, Final, Literal

import msgspec
import structlog
from django.utils.translation import gettext as _

from endpoints.engines.base import EngineSpec, Launch, Place, ReadyCheck, ServerMirrors
from endpoints.engines.registry import launch
from endpoints.enums import Wanted
from endpoints.models import Gateway, Replica, Secret, ServingHost
from endpoints.services.binding import Place as Where
from endpoints.services.binding import gateway_places, listens_on
from endpoints.services.placing import serving_of
from endpoints.services.routing import routing_version
from fleet.agent import orders
from panel.core.errors import InvalidInput

_ANY_PORT: Final = 20_000
# Engines whose presets load from ModelScope by a switch of their own.
_MODELSCOPE: Final = frozenset({"vllm", "sglang"})
log = structlog.get_logger(__name__)


def spec_check(spec: EngineSpec, *, gpus: int) -> Launch:
    """Return what a spec becomes on a server of no kind. Raises InvalidInput when it cannot run there: an argument out of
    bounds, or a secret that is not kept here.
    """
    made = launch(spec, Place(port=_ANY_PORT, gpu_count=gpus, runtime=spec.runtime))
    wanted = set(made.secret_environment.values())
    missing = wanted - set(Secret.objects.filter(name__in=wanted).values_list("name", flat=True))
    if missing:
        raise InvalidInput(
            _("There is no secret of this name: %(names)s. Add it first.") % {"names": ", ".join(sorted(missing))},
            field="secret_environment",
        )
    return made


def spec_facts(spec: EngineSpec, *, gpus: int) -> dict[str, Any]:
    """Return the columns of a revision that follow from its spec. Raises InvalidInput; see `spec_check`."""
    made = spec_check(spec, gpus=gpus)
    return {
        "spec": spec.to_json(),
        "engine": spec.kind,
        "runtime": spec.runtime,
        "gpus": gpus,
        "slots": made.slots,
        "health_path": made.health_path,
    }


def _place(replica: Replica, host: str) -> Place:
    """Return where a replica runs, as engines see it."""
    serving = serving_of(replica.server)
    mirrors = ServerMirrors(
        hf_endpoint=serving.hf_endpoint, image_prefix=serving.image_prefix, cache_folder=serving.models_dir
    )
    return Place(
        port=replica.port, gpu_count=replica.revision.gpus, host=host, mirrors=mirrors, runtime=_runtime(replica)
    )


def _runtime(replica: Replica) -> Literal["container", "process"]:
    return "container" if replica.runtime == "container" else "process"


def assignments_part(server_id: int) -> dict[str, Any]:
    """Return what a server's agent runs for endpoints: replicas, and a gateway. Four queries, five with secrets."""
    replicas = list(
        Replica.objects.filter(server_id=server_id, ended_at=None)
        .exclude(wanted=Wanted.STOP)
        .select_related("endpoint", "revision", "server__serving")
        .prefetch_related("gpu_holds__gpu")
        .order_by("pk")
    )
    gateway = Gateway.objects.filter(server_id=server_id).first()
    return {"replicas": _orders(replicas), "gateway": _gateway(gateway) if gateway is not None else None}


def _orders(replicas: Iterable[Replica]) -> list[orders.ReplicaOrder]:
    gateways = gateway_places()
    launches = [(each, made) for each in replicas if (made := replica_launch(each, gateways)) is not None]
    names = {name for _replica, made in launches for name in made.secret_environment.values()}
    secrets = {each.name: each.value for each in Secret.objects.filter(name__in=names)} if names else {}
    return [_order(replica, made, secrets, listens_on(replica, gateways)) for replica, made in launches]


def replica_launch(replica: Replica, gateways: Collection[Where] | None = None) -> Launch | None:
    """Return how a replica is run on its server; None, with a line in the log, when a later panel does not know it any more.

    gateways: where they are, when the caller knows.
    """
    spec = EngineSpec.from_json(replica.revision.spec)
    host = listens_on(replica, gateway_places() if gateways is None else gateways)
    try:
        return launch(_mirrored(spec, serving_of(replica.server)), _place(replica, host))
    except InvalidInput as error:
        log.warning("endpoints.launch_refused", replica=replica.pk, field=error.field, reason=error.message)
        return None


def _mirrored(spec: EngineSpec, serving: ServingHost) -> EngineSpec:
    """Return the spec that loads from ModelScope on a server that cannot reach Hugging Face, where the engine can."""
    is_wanted = serving.uses_modelscope and spec.source == "huggingface" and spec.kind in _MODELSCOPE
    return msgspec.structs.replace(spec, source="modelscope", revision="") if is_wanted else spec


def _order(replica: Replica, made: Launch, secrets: dict[str, str], host: str) -> orders.ReplicaOrder:
    hidden = {name: secrets[ref] for name, ref in made.secret_environment.items() if ref in secrets}
    if made.api_key_variable is not None:
        hidden[made.api_key_variable] = replica.endpoint.upstream_key
    return orders.ReplicaOrder(
        id=replica.pk,
        generation=replica.generation,
        endpoint=replica.endpoint.name,
        revision=replica.revision.number,
        wanted="drain" if replica.wanted == Wanted.DRAIN else "run",
        runtime=_runtime(replica),
        command=made.command,
        port=replica.port,
        ready=_check(made.ready),
        engine=replica.revision.engine,
        host=host,
        image=made.image,
        environment=made.environment,
        secrets=hidden,
        upstream_key=replica.endpoint.upstream_key if made.api_key_variable is not None else "",
        gpu_uuids=[hold.gpu.uuid for hold in replica.gpu_holds.all()],
        mounts=[orders.Mount(each.source, each.target, each.is_read_only) for each in made.mounts],
        shm_bytes=made.shm_bytes,
        health_path=made.health_path,
        metrics_path=made.metrics_path or "",
        metrics_port=made.metrics_port,
        queue_path=made.drain.queue_path,
        start_limit_seconds=made.start_limit_seconds,
        drain_limit_seconds=made.drain.seconds,
    )


def _check(ready: ReadyCheck) -> orders.ReadyCheck:
    is_stream = ready.kind in {"chat_stream", "completion_stream"}
    return orders.ReadyCheck(
        kind="stream" if is_stream else "answer", path=ready.path, method=ready.method, body=ready.body
    )


def _gateway(gateway: Gateway) -> orders.GatewayOrder:
    return orders.GatewayOrder(
        port=gateway.port,
        routes_version=routing_version(),
        certificate_file=gateway.certificate_file,
        key_file=gateway.key_file,
    )
