"""Endpoints: made with their first revision, changed, scaled, deleted."""

import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from endpoints.engines.base import EngineSpec
from endpoints.enums import DesiredSource, Phase
from endpoints.models import Endpoint, Rollout
from endpoints.services.placing import Placement
from endpoints.services.rollouts import endpoint_locked, revision_create, rollout_begin
from endpoints.services.routing import endpoint_reroute
from endpoints.services.telling import tell_endpoint
from endpoints.services.waking import endpoint_wake
from panel.accounts.audit import Actor, audit
from panel.core.clock import now
from panel.core.errors import Conflict, InvalidInput

# Part of a path and of a host name.
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_HOST: Final = re.compile(r"(?=.{1,100}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]{2,63}")
MOST_REPLICAS: Final = 256

# What may be changed of an endpoint without a new revision, with its bounds.
BOUNDS: Final[Mapping[str, tuple[float, float]]] = {
    "in_flight_limit": (1, 100_000),
    "in_flight_per_replica": (1, 100_000),
    "first_byte_seconds": (1, 3_600),
    "idle_seconds": (1, 3_600),
    "lost_after_seconds": (30, 86_400),
    "rollout_deadline_seconds": (30, 86_400),
}
# Of those, what may be left open.
OPEN: Final = frozenset({"in_flight_per_replica"})
_ROUTED: Final = frozenset(
    {"in_flight_limit", "in_flight_per_replica", "first_byte_seconds", "idle_seconds", "hosts", "requires_key"}
)
_PLAIN: Final = frozenset({"description", "project", "requires_key", "hosts", "placement"})


def endpoint_create(
    *,
    name: str,
    spec: EngineSpec,
    actor: Actor,
    gpus: int | None = None,
    desired_replicas: int = 1,
    settings: Mapping[str, Any] | None = None,
    note: str = "",
    gate: Mapping[str, Any] | None = None,
) -> tuple[Endpoint, Rollout]:
    """Make an endpoint and roll out its first revision; settings: see `endpoint_update`, gate: see `revision_deploy`.

    Raises InvalidInput or Conflict.
    """
    if _NAME.fullmatch(name) is None:
        raise InvalidInput(
            _("A name is of small letters, digits and hyphens, at most 63: it is a part of the address.")
        )
    _check_count(desired_replicas)
    at = now()
    endpoint = Endpoint(
        name=name,
        desired_replicas=desired_replicas,
        upstream_key=secrets.token_urlsafe(32),
        phase=Phase.SCALING,
        phase_changed_at=at,
        created_at=at,
        created_by_name=actor.name[:200],
    )
    _set(endpoint, settings or {})
    try:
        with transaction.atomic():
            endpoint.save()
            revision = revision_create(endpoint=endpoint, spec=spec, gpus=gpus, actor=actor, note=note)
            after = {"replicas": desired_replicas, "engine": revision.engine}
            audit(actor=actor, action="endpoint.create", target=endpoint, target_name=name, after=after)
            rollout = rollout_begin(
                endpoint=endpoint, revision=revision, actor=actor, action="endpoint.deploy", gate=gate
            )
            endpoint_reroute(endpoint)
            tell_endpoint(endpoint)
    except IntegrityError:
        raise Conflict(_("There is an endpoint of this name."), code="name_taken") from None
    return endpoint, rollout


def _check_count(count: int) -> None:
    if not 0 <= count <= MOST_REPLICAS:
        raise InvalidInput(
            _("The number of replicas is from 0 to %(most)s.") % {"most": MOST_REPLICAS}, field="desired_replicas"
        )


def _set(endpoint: Endpoint, settings: Mapping[str, Any]) -> None:
    """Set and check what may change without a new revision. Raises InvalidInput."""
    unknown = set(settings) - _PLAIN - set(BOUNDS)
    if unknown:
        raise InvalidInput(_("There is no such setting: %(names)s") % {"names": ", ".join(sorted(unknown))})
    for name, value in settings.items():
        is_open = name in OPEN and value is None
        if name in BOUNDS and not is_open and not BOUNDS[name][0] <= value <= BOUNDS[name][1]:
            low, high = BOUNDS[name]
            raise InvalidInput(_("It is from %(low)s to %(high)s.") % {"low": low, "high": high}, field=name)
        setattr(endpoint, name, value)
    Placement.read(endpoint.placement)
    _check_hosts(endpoint)


def _check_hosts(endpoint: Endpoint) -> None:
    hosts: Sequence[str] = endpoint.hosts
    wrong = [host for host in hosts if not isinstance(host, str) or _HOST.fullmatch(host) is None]
    if wrong or len(hosts) > 20:
        raise InvalidInput(_("A host name reads like llm.example.com; at most 20 of them."), field="hosts")
    others = Endpoint.objects.filter(deleted_at=None).exclude(pk=endpoint.pk).values_list("hosts", flat=True)
    taken = set(hosts) & {host for each in others for host in each}
    if taken:
        raise Conflict(_("Another endpoint has this host name: %(names)s") % {"names": ", ".join(sorted(taken))})


def endpoint_update(*, endpoint_id: int, actor: Actor, **settings: Any) -> Endpoint:
    """Change what needs no new revision: description, project, placement, hosts, requires_key, and the limits of BOUNDS.

    Replicas stay where they are when the placement changes. Raises NotFound, InvalidInput or Conflict.
    """
    with transaction.atomic():
        endpoint = endpoint_locked(endpoint_id)
        before = {name: getattr(endpoint, name) for name in settings if hasattr(endpoint, name)}
        _set(endpoint, settings)
        endpoint.save(update_fields=list(settings))
        audit(
            actor=actor, action="endpoint.update", target=endpoint, target_name=endpoint.name,
            before=before, after=settings,
        )  # fmt: skip
        if _ROUTED & set(settings):
            endpoint_reroute(endpoint)
        endpoint_wake({endpoint.pk}, at=now())
        tell_endpoint(endpoint)
    return endpoint


def endpoint_scale(
    *,
    endpoint_id: int,
    desired_replicas: int,
    actor: Actor,
    source: DesiredSource = DesiredSource.PERSON,
    reason: str = "",
) -> Endpoint:
    """Change how many replicas are wanted; 0 lets all go. Raises NotFound or InvalidInput."""
    _check_count(desired_replicas)
    with transaction.atomic():
        endpoint = endpoint_locked(endpoint_id)
        before = endpoint.desired_replicas
        endpoint.desired_replicas, endpoint.desired_source = desired_replicas, source
        endpoint.save(update_fields=["desired_replicas", "desired_source"])
        audit(
            actor=actor, action="endpoint.scale", target=endpoint, target_name=endpoint.name, reason=reason,
            before={"replicas": before}, after={"replicas": desired_replicas},
        )  # fmt: skip
        endpoint_wake({endpoint.pk}, at=now())
        tell_endpoint(endpoint)
    return endpoint


def endpoint_delete(*, endpoint_id: int, actor: Actor) -> Endpoint:
    """Let an endpoint go: its replicas finish what they work on, then its address answers no more. Raises NotFound."""
    at = now()
    with transaction.atomic():
        endpoint = endpoint_locked(endpoint_id)
        endpoint.deleting_at, endpoint.phase, endpoint.phase_changed_at = at, Phase.DELETING, at
        endpoint.save(update_fields=["deleting_at", "phase", "phase_changed_at"])
        audit(actor=actor, action="endpoint.delete", target=endpoint, target_name=endpoint.name)
        endpoint_wake({endpoint.pk}, at=at)
        tell_endpoint(endpoint)
    return endpoint
