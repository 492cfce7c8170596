"""Reads of endpoints: lists, what pages and the API show of one, logs."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

from django.db.models import Count, Prefetch, Q, QuerySet

from endpoints.enums import ReplicaState, Wanted
from endpoints.models import ApiKey, Endpoint, Gateway, Replica, ReplicaGpu, ReplicaLog, Revision, Rollout
from fleet.selectors.live import iso

_OPEN = Q(replicas__ended_at=None)
_RUN = _OPEN & Q(replicas__wanted=Wanted.RUN)


def endpoint_list(*, phase: Collection[str] = (), project: str = "", search: str = "") -> QuerySet[Endpoint]:
    """Return endpoints that are not deleted, with `ready` and `pending` counts of replicas."""
    endpoints = Endpoint.objects.filter(deleted_at=None).select_related("active_revision", "target_revision")
    if phase:
        endpoints = endpoints.filter(phase__in=phase)
    if project:
        endpoints = endpoints.filter(project=project)
    if search:
        endpoints = endpoints.filter(Q(name__icontains=search) | Q(description__icontains=search))
    is_ready = _RUN & Q(replicas__state=ReplicaState.READY, replicas__is_gated=False)
    return endpoints.annotate(
        ready=Count("replicas", filter=is_ready),
        pending=Count("replicas", filter=_RUN & ~is_ready & ~Q(replicas__state=ReplicaState.FAILED)),
    ).order_by("name")


def replica_list(
    *, endpoint: int | None = None, server: int | None = None, is_open: bool | None = None
) -> QuerySet[Replica]:
    """Return replicas, the newest first, with their server, revision and cards."""
    replicas = Replica.objects.select_related("server", "revision", "endpoint").prefetch_related(
        Prefetch("gpu_holds", ReplicaGpu.objects.select_related("gpu"))
    )
    if endpoint is not None:
        replicas = replicas.filter(endpoint=endpoint)
    if server is not None:
        replicas = replicas.filter(server=server)
    if is_open is not None:
        replicas = replicas.filter(ended_at__isnull=is_open)
    return replicas.order_by("-pk")


def revision_list(*, endpoint: int) -> QuerySet[Revision]:
    """Return an endpoint's revisions, the newest first."""
    return Revision.objects.filter(endpoint=endpoint).select_related("endpoint").order_by("-number")


def rollout_list(*, endpoint: int) -> QuerySet[Rollout]:
    """Return an endpoint's rollouts, the newest first."""
    return Rollout.objects.filter(endpoint=endpoint).select_related("from_revision", "to_revision").order_by("-pk")


def rollout_open(*, endpoint: int) -> Rollout | None:
    """Return the rollout that is under way."""
    return rollout_list(endpoint=endpoint).filter(ended_at=None).first()


def key_list() -> QuerySet[ApiKey]:
    """Return callers' keys, the newest first."""
    return ApiKey.objects.order_by("-pk")


def gateway_list() -> QuerySet[Gateway]:
    """Return gateways with their servers."""
    return Gateway.objects.select_related("server", "server__agent", "server__serving").order_by("server__name")


def gateway_url(gateway: Gateway) -> str:
    """Return where callers reach a gateway: what a person said, else made of the server's address and the port."""
    if gateway.public_url:
        return gateway.public_url.rstrip("/")
    serving = getattr(gateway.server, "serving", None)
    agent = getattr(gateway.server, "agent", None)
    address = (serving and serving.address) or (agent and agent.last_address) or "127.0.0.1"
    scheme = "https" if gateway.certificate_file else "http"
    host = f"[{address}]" if ":" in str(address) else address
    return f"{scheme}://{host}:{gateway.port}"


def endpoint_urls(endpoint: Endpoint) -> list[str]:
    """Return the addresses at which callers reach an endpoint, one for each gateway; append `/v1/…`."""
    return [f"{gateway_url(gateway)}/{endpoint.name}" for gateway in gateway_list()]


def replica_log(*, replica: int, generation: int | None = None) -> QuerySet[ReplicaLog]:
    """Return the kept pieces of one generation of a replica's log (the newest when None), in order."""
    pieces = ReplicaLog.objects.filter(replica=replica)
    if generation is None:
        generation = pieces.order_by("-generation").values_list("generation", flat=True).first() or 0
    return pieces.filter(generation=generation).order_by("offset")


def replica_log_text(*, replica: int, generation: int | None = None) -> str:
    """Return the kept lines of one generation; where some were too many to keep, a line says how many bytes."""
    parts: list[str] = []
    for piece in replica_log(replica=replica, generation=generation):
        if piece.skipped_bytes:
            parts.append(f"… {piece.skipped_bytes} bytes …\n")
        parts.append(piece.text)
    return "".join(parts)


def replica_live(replica: Replica) -> dict[str, Any]:
    """Return a replica as it stands in live frames."""
    return {
        "id": replica.pk,
        "server": replica.server_id,
        "server_name": replica.server.name,
        "revision": replica.revision.number,
        "wanted": replica.wanted,
        "state": replica.state,
        "state_changed_at": iso(replica.state_changed_at),
        "health": replica.health,
        "reason": replica.reason,
        "detail": replica.detail,
        "percent": replica.percent,
        "restarts": replica.restarts,
        "running": replica.running,
        "waiting": replica.waiting,
        "kv_cache_percent": replica.kv_cache_percent,
        "answered_ms": replica.answered_ms,
        "is_gated": replica.is_gated,
        "observed_at": iso(replica.observed_at),
        "ended_at": iso(replica.ended_at),
        "steps": replica.steps,
    }


def endpoint_live(endpoint: Endpoint) -> dict[str, Any]:
    """Return an endpoint as it stands in live frames, and its open replicas by id. Two queries."""
    return endpoints_live([endpoint])[endpoint.pk]


def endpoints_live(endpoints: Sequence[Endpoint]) -> dict[int, dict[str, Any]]:
    """Return endpoints (with their revisions) as they stand in live frames, each with its open replicas. Two queries."""
    replicas: defaultdict[int, list[Replica]] = defaultdict(list)
    for each in (
        Replica.objects.filter(endpoint__in=endpoints, ended_at=None)
        .select_related("server", "revision")
        .order_by("pk")
    ):
        replicas[each.endpoint_id].append(each)
    newest = Rollout.objects.filter(endpoint__in=endpoints).order_by("endpoint_id", "-pk").distinct("endpoint_id")
    rollouts = {each.endpoint_id: each for each in newest.select_related("to_revision")}
    return {
        each.pk: {
            "endpoint": _live(each, replicas[each.pk], rollouts.get(each.pk)),
            "replicas": {str(replica.pk): replica_live(replica) for replica in replicas[each.pk]},
        }
        for each in endpoints
    }


def replicas_on(gpu_ids: Collection[int]) -> dict[int, list[int]]:
    """Return the replica that holds each of these cards, by the card's id; cards that none holds are left out."""
    held = ReplicaGpu.objects.filter(gpu__in=gpu_ids).values_list("gpu_id", "replica_id")
    return {gpu: [replica] for gpu, replica in held}


def _is_up(replica: Replica) -> bool:
    return replica.state == ReplicaState.READY and not replica.is_gated


def _live(endpoint: Endpoint, replicas: Sequence[Replica], rollout: Rollout | None) -> dict[str, Any]:
    run = [each for each in replicas if each.wanted == Wanted.RUN]
    return {
        "id": endpoint.pk,
        "name": endpoint.name,
        "phase": endpoint.phase,
        "phase_reason": endpoint.phase_reason,
        "desired": endpoint.desired_replicas,
        "ready": sum(_is_up(each) for each in run),
        "pending": sum(each.state != ReplicaState.FAILED and not _is_up(each) for each in run),
        "active_revision": endpoint.active_revision.number if endpoint.active_revision else None,
        "target_revision": endpoint.target_revision.number if endpoint.target_revision else None,
        "rollout": rollout
        and {
            "id": rollout.pk,
            "revision": rollout.to_revision.number,
            "state": rollout.state,
            "reason": rollout.reason,
            "detail": rollout.detail,
            "started_at": iso(rollout.started_at),
            "ended_at": iso(rollout.ended_at),
        },
    }
