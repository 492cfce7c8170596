"""Lists of servers, cards, agents, join tokens and faults, filtered: what the API and pages show."""

from collections.abc import Collection
from datetime import datetime

from django.db.models import Count, Exists, OuterRef, Prefetch, Q, QuerySet

from fleet.enums import GpuState
from fleet.models import Agent, Gpu, GpuFault, JoinToken, Lease, Server
from fleet.selectors.leasing import with_prices
from fleet.selectors.live import ANSWERING_STATES

_CARD = Q(gpus__parent=None, gpus__removed_at=None)


def with_gpu_counts(servers: QuerySet[Server]) -> QuerySet[Server]:
    """Add what `fleet.selectors.live.gpu_counts` tells: whole cards known, answering, missing, unknown."""
    return servers.annotate(
        gpus_known=Count("gpus", filter=_CARD),
        gpus_answering=Count("gpus", filter=_CARD & Q(gpus__state__in=ANSWERING_STATES)),
        gpus_missing=Count("gpus", filter=_CARD & Q(gpus__state__in=(GpuState.MISSING, GpuState.LOST))),
        gpus_unknown=Count("gpus", filter=_CARD & Q(gpus__state=GpuState.UNKNOWN)),
    )


def _about_server(
    prefix: str,
    provider: str,
    region: str,
    driver_state: Collection[str],
    is_simulated: bool | None,  # noqa: FBT001
) -> Q:
    """Return the conditions on a server that lists of other things share; prefix: the way to it (`server__`)."""
    condition = Q()
    if provider:
        condition &= Q(**{f"{prefix}provider__iexact": provider})
    if region:
        condition &= Q(**{f"{prefix}region__iexact": region})
    if driver_state:
        condition &= Q(**{f"{prefix}driver_state__in": driver_state})
    if is_simulated is not None:
        condition &= Q(**{f"{prefix}is_simulated": is_simulated})
    return condition


def server_list(
    *,
    state: Collection[str] = (),
    gpu_health: Collection[str] = (),
    driver_state: Collection[str] = (),
    provider: str = "",
    region: str = "",
    model: str = "",
    search: str = "",
    label: str = "",
    is_simulated: bool | None = None,
) -> QuerySet[Server]:
    """Return servers with their agents and counts of cards; retired ones only when `state` asks for them.

    model: part of a card's name. search: part of the name, provider, region or host name, or a card's UUID. label:
    `name` or `name=value`.
    """
    servers = Server.objects.select_related("agent").filter(
        _about_server("", provider, region, driver_state, is_simulated)
    )
    servers = servers.filter(state__in=state) if state else servers.filter(retired_at=None)
    if gpu_health:
        servers = servers.filter(gpu_health__in=gpu_health)
    if model:
        servers = servers.filter(
            Exists(Gpu.objects.filter(server=OuterRef("pk"), removed_at=None, name__icontains=model))
        )
    if search:
        has_card = Exists(Gpu.objects.filter(server=OuterRef("pk"), uuid__icontains=search))
        fields = ("name", "provider", "region", "facts__hostname")
        text = Q(*((f"{field}__icontains", search) for field in fields), _connector=Q.OR)
        servers = servers.filter(text | Q(has_card))
    if label:
        name, equals, value = label.partition("=")
        servers = servers.filter(Q(labels__contains={name: value}) if equals else Q(labels__has_key=name))
    return with_open_lease(with_gpu_counts(servers))


def with_open_lease(servers: QuerySet[Server]) -> QuerySet[Server]:
    """Add `open_leases`: the one lease that pays for each server, if any, with its prices in force. Two queries more."""
    leases = with_prices(Lease.objects.filter(ended_at=None))
    return servers.prefetch_related(Prefetch("leases", queryset=leases, to_attr="open_leases"))


def gpu_list(
    *,
    state: Collection[str] = (),
    server: int | None = None,
    uuid: str = "",
    driver_state: Collection[str] = (),
    provider: str = "",
    region: str = "",
    model: str = "",
    search: str = "",
    is_slice: bool | None = None,
    is_simulated: bool | None = None,
) -> QuerySet[Gpu]:
    """Return cards and MIG slices with their servers; forgotten ones never, those of retired servers when named.

    A uuid gives the card's history: one row for each server that it was in.
    """
    gpus = Gpu.objects.select_related("server__agent").filter(
        _about_server("server__", provider, region, driver_state, is_simulated), removed_at=None
    )
    if server is not None:
        gpus = gpus.filter(server=server)
    elif uuid:
        gpus = gpus.filter(uuid=uuid)
    else:
        gpus = gpus.filter(server__retired_at=None)
    if state:
        gpus = gpus.filter(state__in=state)
    if model:
        gpus = gpus.filter(name__icontains=model)
    if is_slice is not None:
        gpus = gpus.exclude(parent=None) if is_slice else gpus.filter(parent=None)
    if search:
        fields = ("uuid", "name", "server__name", "pci_bus_id")
        gpus = gpus.filter(Q(*((f"{field}__icontains", search) for field in fields), _connector=Q.OR))
    return gpus


def gpu_history(*, uuid: str) -> QuerySet[Gpu]:
    """Return every place that this card was seen in, newest first; forgotten rows and retired servers too."""
    return Gpu.objects.select_related("server").filter(uuid=uuid).order_by("-first_seen_at", "-id")


def agent_list(*, server: int | None = None, is_revoked: bool | None = None) -> QuerySet[Agent]:
    """Return agents with their servers."""
    agents = Agent.objects.select_related("server")
    if server is not None:
        agents = agents.filter(server=server)
    return agents if is_revoked is None else agents.filter(revoked_at__isnull=not is_revoked)


def join_token_list(*, is_usable: bool | None = None, now: datetime) -> QuerySet[JoinToken]:
    """Return join tokens with the servers they led to."""
    tokens = JoinToken.objects.select_related("server__agent")
    if is_usable is None:
        return tokens
    usable = Q(used_at=None, revoked_at=None, expires_at__gt=now)
    return tokens.filter(usable) if is_usable else tokens.exclude(usable)


def fault_list(
    *,
    server: int | None = None,
    gpu: int | None = None,
    code: int | None = None,
    kind: str = "",
    severity: Collection[str] = (),
    since: datetime | None = None,
    until: datetime | None = None,
) -> QuerySet[GpuFault]:
    """Return faults with their cards and servers; since and until: those that were seen within."""
    faults = GpuFault.objects.select_related("server", "gpu")
    conditions = {"server": server, "gpu": gpu, "code": code, "last_at__gte": since, "first_at__lte": until}
    faults = faults.filter(**{name: value for name, value in conditions.items() if value is not None})
    if kind:
        faults = faults.filter(kind=kind)
    return faults.filter(severity__in=severity) if severity else faults
