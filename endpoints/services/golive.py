"""Go-live tests of endpoints: whom to load from where, what is tested, what it costs meanwhile; and the gate of a rollout."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from django.utils.translation import gettext as _

from endpoints.costs import endpoint_costs
from endpoints.engines.base import EngineSpec, Launch, ReadyCheck
from endpoints.models import Endpoint, Replica, ReplicaGpu
from endpoints.selectors import gateway_list, gateway_url
from endpoints.services.launching import replica_launch
from endpoints.services.routing import routed
from fleet.agent.probes.target import Target
from fleet.models import Server
from monitoring.golive.judge import environment_hash
from monitoring.golive_runs.asked import Asked, Estimate
from monitoring.golive_runs.models import GoLiveRun
from monitoring.golive_runs.starting import Place, Subject, golive_estimate, golive_start
from monitoring.golive_runs.subjects import register_facts
from monitoring.probing.tables import PANEL
from panel.accounts.audit import Actor
from panel.core.clock import now
from panel.core.errors import InvalidInput, NotFound

HOSTS: Final = "hosts"  # each replica from its own machine
PANEL_PLACE: Final = "panel"
_STREAMS: Final = {"chat_stream": "chat", "completion_stream": "completion"}


def endpoint_golive(
    *, endpoint_id: int, actor: Actor, asked: Asked, places: Collection[str], consent: bool, key: str = ""
) -> GoLiveRun:
    """Begin a test of what serves now. places: `hosts`, `panel`, `server:<id>`; the peak is shared evenly between them.

    key: of a caller, where places outside have to show one. Raises NotFound, InvalidInput or Conflict.
    """
    endpoint = _endpoint(endpoint_id)
    replicas = _serving(endpoint)
    chosen = _places(endpoint, replicas, asked, places, key)
    subject = subject_of(endpoint, replicas, is_gate=False)
    return golive_start(actor=actor, asked=asked, subject=subject, places=chosen, consent=consent)


def endpoint_golive_estimate(
    *, endpoint_id: int, asked: Asked, places: Collection[str], key: str = ""
) -> tuple[Estimate, Mapping[str, Any]]:
    """Return what such a test would take, and what the cards cost meanwhile. Raises NotFound or InvalidInput: over a cap too."""
    endpoint = _endpoint(endpoint_id)
    replicas = _serving(endpoint)
    chosen = _places(endpoint, replicas, asked, places, key)
    subject = subject_of(endpoint, replicas, is_gate=False)
    return golive_estimate(asked=asked, subject=subject, shares=[place.share for place in chosen])


def _endpoint(endpoint_id: int) -> Endpoint:
    found = Endpoint.objects.filter(pk=endpoint_id, deleting_at=None, deleted_at=None).first()
    if found is None:
        raise NotFound(_("There is no such endpoint."))
    return found


def _serving(endpoint: Endpoint) -> list[Replica]:
    found = list(_whole(routed(Replica.objects.filter(endpoint=endpoint))))
    if not found:
        raise InvalidInput(_("No replica takes requests, so that there is nothing to load. Deploy or scale it first."))
    return found


def _whole(replicas: Any) -> Any:
    return replicas.select_related("revision", "server__serving", "endpoint").order_by("pk")


def _places(
    endpoint: Endpoint, replicas: Sequence[Replica], asked: Asked, wanted: Collection[str], key: str
) -> list[Place]:
    """Return the places with their targets and shares. Raises InvalidInput."""
    names = list(dict.fromkeys(wanted))
    if not names:
        raise InvalidInput(_("Choose a place from which it is loaded."), field="places")
    share = 1 / len(names)
    found: list[Place] = []
    for name in names:
        if name == HOSTS:
            found += places_on_hosts(replicas, asked, share=share)
        else:
            found.append(Place(_server_of(name), [gateway_target(endpoint, replicas[0], asked)], share, key))
    if endpoint.requires_key and not key and any(name != HOSTS for name in names):
        raise InvalidInput(_("Places outside go through the gateway, which asks for a key: give one."), field="key")
    servers = [place.server_id for place in found]
    if len(servers) != len(set(servers)):
        raise InvalidInput(_("A machine of a replica loads it already; choose another machine."), field="places")
    return found


def _server_of(name: str) -> int:
    """Return a place's server id, 0 for the panel. Raises InvalidInput."""
    if name == PANEL_PLACE:
        return PANEL
    text = name.removeprefix("server:")
    is_known = text.isdecimal() and len(text) < 10 and Server.objects.filter(pk=text, retired_at=None).exists()
    if not name.startswith("server:") or not is_known:
        raise InvalidInput(
            _("A place is `hosts` (each replica from its own machine), `panel`, or `server:` with the id of a server."),
            field="places",
        )
    return int(text)


def places_on_hosts(replicas: Sequence[Replica], asked: Asked, *, share: float, of: int | None = None) -> list[Place]:
    """Return a place for each machine: its own replicas over loopback. of: how many replicas share the peak, these if None."""
    by_server: defaultdict[int, list[Replica]] = defaultdict(list)
    for replica in replicas:
        by_server[replica.server_id].append(replica)
    total = of or len(replicas)
    found: list[Place] = []
    for server_id, here in sorted(by_server.items()):
        launch = _launch(here[0])
        bearer = here[0].endpoint.upstream_key if launch.api_key_variable is not None else ""
        targets = [_target(each, launch.ready, asked, host="127.0.0.1", port=each.port) for each in here]
        found.append(Place(server_id, targets, share * len(here) / total, bearer))
    return found


def _launch(replica: Replica) -> Launch:
    """Return how a replica is run. Raises InvalidInput for one that this panel does not know any more."""
    found = replica_launch(replica)
    if found is None:
        raise InvalidInput(_("This panel does not know its engine any more: deploy it again first."))
    return found


def gateway_target(endpoint: Endpoint, replica: Replica, asked: Asked) -> Target:
    """Return whom callers ask: the first gateway. Raises InvalidInput where there is none."""
    gateway = gateway_list().first()
    if gateway is None:
        raise InvalidInput(_("There is no gateway; load it from its own machines instead."), field="places")
    address = urlsplit(f"{gateway_url(gateway)}/{endpoint.name}")
    is_tls = address.scheme == "https"
    port = address.port or (443 if is_tls else 80)
    ready = _launch(replica).ready
    prefix = address.path.rstrip("/")
    return _target(replica, ready, asked, host=address.hostname or "", port=port, prefix=prefix, is_tls=is_tls)


def _target(
    replica: Replica, ready: ReadyCheck, asked: Asked, *, host: str, port: int, prefix: str = "", is_tls: bool = False
) -> Target:
    """Return a target of the request that the engine is known to answer."""
    shared: dict[str, Any] = {
        "id": replica.pk, "host": host, "port": port, "is_tls": is_tls, "path": f"{prefix}{ready.path}",
        "timeout_seconds": asked.timeout_seconds,
    }  # fmt: skip
    if ready.kind not in _STREAMS:
        if asked.measure != "total":
            raise InvalidInput(_("This engine is not asked for a stream: measure the whole time."), field="measure")
        return Target(kind="http", method="GET" if ready.body is None else "POST", body=ready.body, **shared)
    model = str((ready.body or {}).get("model") or EngineSpec.from_json(replica.revision.spec).name_for_callers())
    kind = _STREAMS[ready.kind]
    return Target(kind=kind, model=model, max_tokens=asked.max_tokens, **shared)  # type: ignore[arg-type]  # one of two


def subject_of(endpoint: Endpoint, replicas: Sequence[Replica], *, is_gate: bool) -> Subject:
    """Return what is tested, with its fingerprint and what its cards cost."""
    cost = endpoint_costs(endpoint_ids=[endpoint.pk], at=now())[endpoint.pk]
    before = {"replica_ids": [replica.pk for replica in replicas], "is_gate": is_gate}
    return Subject(
        kind="endpoint",
        id=endpoint.pk,
        name=endpoint.name,
        facts=endpoint_facts(endpoint.pk, before),
        cost_per_hour={code: money.amount for code, money in cost.known.items()},
        is_cost_known=cost.unknown == 0,
    )


def endpoint_facts(endpoint_id: int, before: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an endpoint is made of: the replicas of `before`, and, where no gate keeps callers out, who takes requests.

    An engine that crashes and starts again stays the same one: that is a failure, and no change of what is tested.
    """
    ids = list(before.get("replica_ids", []))
    replicas = list(_whole(Replica.objects.filter(endpoint_id=endpoint_id, pk__in=ids, ended_at=None)))
    cards: defaultdict[int, list[str]] = defaultdict(list)
    for replica_id, name in ReplicaGpu.objects.filter(replica__in=replicas).values_list("replica_id", "gpu__name"):
        cards[replica_id].append(name)
    is_gate = bool(before.get("is_gate"))
    taking = routed(Replica.objects.filter(endpoint_id=endpoint_id)).order_by("pk")
    return {
        "replica_ids": ids,
        "is_gate": is_gate,
        "routed": [] if is_gate else list(taking.values_list("pk", flat=True)),
        "replicas": [
            {
                "id": replica.pk,
                "generation": replica.generation,
                "revision": replica.revision.number,
                "engine": replica.revision.engine,
                "spec": environment_hash(replica.revision.spec),
                "server": replica.server.name,
                "driver": replica.server.driver_version,
                "cards": sorted(cards[replica.pk]),
            }
            for replica in replicas
        ],
    }


def register_all() -> None:
    """Say how facts of endpoints are read (once, when the app starts)."""
    register_facts("endpoint", endpoint_facts)
