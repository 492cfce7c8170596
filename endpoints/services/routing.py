"""What gateways serve: saying that it changed, and answering a gateway that asks what did."""

from collections.abc import Collection
from typing import Final

from django.db.models import Max, Prefetch, QuerySet

from endpoints.enums import ReplicaState, Wanted
from endpoints.models import ApiKey, Endpoint, Gateway, Replica, RoutingClock, ServingHost
from fleet.agent import orders
from fleet.services.telling import assignments_change
from panel.core.clock import now
from panel.core.marks import probe_mark

_CLOCK: Final = 1


def routing_next() -> int:
    """Return the version of a change that gateways must hear of, and have them told once the caller's transaction commits.

    The clock's row is locked until then: whoever sees this version sees every lower one. Endpoints are locked before it.
    """
    RoutingClock.objects.bulk_create([RoutingClock(pk=_CLOCK)], ignore_conflicts=True)
    clock = RoutingClock.objects.select_for_update().get(pk=_CLOCK)
    clock.version += 1
    clock.save(update_fields=["version"])
    assignments_change(Gateway.objects.values_list("server_id", flat=True))
    return clock.version


def endpoint_reroute(endpoint: Endpoint) -> None:
    """Mark one endpoint's route as changed, in the caller's transaction."""
    endpoint.routing_version = routing_next()
    endpoint.save(update_fields=["routing_version"])


def routing_version() -> int:
    """Return the version of the last change."""
    return RoutingClock.objects.filter(pk=_CLOCK).values_list("version", flat=True).first() or 0


def routed(replicas: "QuerySet[Replica]") -> "QuerySet[Replica]":
    """Return those of the replicas that gateways send requests to."""
    return replicas.filter(ended_at=None, wanted=Wanted.RUN, state=ReplicaState.READY, is_gated=False)


def routes_since(*, have: int, gateway: Gateway) -> orders.Routes:
    """Return what changed after a version, or everything when that version is none of ours. Four queries.

    The version is read first: what changes meanwhile is told again, and nothing is missed.
    """
    version = routing_version()
    is_whole = not 0 < have <= version
    endpoints = list(_with_replicas(Endpoint.objects.filter(routing_version__gt=0 if is_whole else have)))
    return orders.Routes(
        version=version,
        is_whole=is_whole,
        routes=[_route(endpoint, gateway) for endpoint in endpoints if endpoint.deleted_at is None],
        gone=[] if is_whole else _gone(endpoints),
        keys=_keys(have=0 if is_whole else have),
    )


def route_for_others(*, endpoint_id: int) -> orders.Route:
    """Return an endpoint's route as a proxy on any machine has to see it. Raises Endpoint.DoesNotExist. Two queries."""
    return _route(_with_replicas(Endpoint.objects.filter(deleted_at=None)).get(pk=endpoint_id), None)


def _with_replicas(endpoints: "QuerySet[Endpoint]") -> "QuerySet[Endpoint]":
    replicas = routed(Replica.objects.select_related("revision", "server__agent", "server__serving"))
    return endpoints.select_related("active_revision").prefetch_related(
        Prefetch("replicas", replicas, to_attr="serving_replicas")
    )


def _gone(endpoints: Collection[Endpoint]) -> list[str]:
    """Return the names that are no more: deleted, and not given to another endpoint since."""
    names = {endpoint.name for endpoint in endpoints if endpoint.deleted_at is not None}
    return sorted(names - set(Endpoint.objects.filter(name__in=names, deleted_at=None).values_list("name", flat=True)))


def _route(endpoint: Endpoint, gateway: Gateway | None) -> orders.Route:
    replicas: list[Replica] = endpoint.serving_replicas  # type: ignore[attr-defined]  # prefetched just above
    revision = endpoint.active_revision or (replicas[0].revision if replicas else None)
    return orders.Route(
        name=endpoint.name,
        upstreams=[_upstream(replica, gateway) for replica in sorted(replicas, key=lambda each: each.pk)],
        hosts=endpoint.hosts,
        upstream_key=endpoint.upstream_key,
        in_flight_limit=endpoint.in_flight_limit,
        in_flight_per_replica=endpoint.in_flight_per_replica,
        first_byte_seconds=endpoint.first_byte_seconds,
        idle_seconds=endpoint.idle_seconds,
        health_path=revision.health_path if revision is not None else "",
        requires_key=endpoint.requires_key,
        probe_mark=probe_mark("endpoint", endpoint.pk),
    )


def _upstream(replica: Replica, gateway: Gateway | None) -> orders.Upstream:
    is_here = gateway is not None and replica.server_id == gateway.server_id
    address = "127.0.0.1" if is_here else address_of(replica)
    return orders.Upstream(replica.pk, address, replica.port, replica.revision.slots)


def address_of(replica: Replica) -> str:
    """Return where other machines reach a replica: what a person said, else where its agent was heard from last."""
    serving = getattr(replica.server, "serving", None)
    if isinstance(serving, ServingHost) and serving.address:
        return serving.address
    agent = getattr(replica.server, "agent", None)
    return str(agent.last_address) if agent is not None and agent.last_address else "127.0.0.1"


def _keys(*, have: int) -> list[orders.KeyRule] | None:
    """Return every key that opens something, when one changed after the version; else None."""
    if have and (ApiKey.objects.aggregate(newest=Max("routing_version"))["newest"] or 0) <= have:
        return None
    at = now()
    keys = ApiKey.objects.filter(revoked_at=None).exclude(expires_at__lte=at).order_by("pk")
    return [
        orders.KeyRule(
            id=key.pk,
            digest=key.digest,
            endpoints=key.endpoints,
            expires_at_ms=round(key.expires_at.timestamp() * 1000) if key.expires_at is not None else None,
            requests_per_minute=key.requests_per_minute,
            is_held=key.held_until is not None and key.held_until > at,
        )
        for key in keys[: orders.LIMITS["keys"]]
    ]
