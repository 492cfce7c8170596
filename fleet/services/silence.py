"""Servers that fall silent, and those that are heard again: the agent's last report decides, never a look from outside."""

from collections import defaultdict
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from django.db import transaction
from django.db.models import (
    DateTimeField,
    DurationField,
    Exists,
    ExpressionWrapper,
    F,
    Func,
    OuterRef,
    Q,
    QuerySet,
    Value,
)
from django.db.models.functions import Greatest

from fleet.enums import GpuHealth, GpuState, ServerState
from fleet.lifecycle import REPORTING_STATES, SILENT_REASON
from fleet.models import Gpu, Server
from fleet.services.bulk import rows_update
from fleet.services.hearing import hearing_since
from fleet.services.judging import open_faults, server_judge
from fleet.services.telling import tell_servers
from fleet.services.transitions import GpuChange, ServerChange, gpus_transition, servers_transition
from panel.accounts.audit import Actor

if TYPE_CHECKING:
    from django.db.models.expressions import CombinedExpression

CHUNK: Final = 200
ACTOR: Final = Actor.system("silence watch")
_NOT_WATCHED: Final = (ServerState.PENDING, ServerState.JOINING, ServerState.RETIRED)

# Agents that met a panel which did not listen back off for up to a minute: so long after, and a little, they may be quiet.
COMING_BACK: Final = timedelta(seconds=75)


def servers_watch(*, now: datetime) -> int:
    """The beat's round: those who are heard again, faults that are over, and silence, as far as it can be told.

    While the panel takes no reports nobody falls silent. Once it listens again the agents get COMING_BACK to return; those
    who have returned are judged as ever.
    """
    changed = gpu_health_refresh(now=now) + _drain(_heard, _mark_heard, now)
    since = hearing_since(now=now)
    if since is None:
        return changed
    if now < since + COMING_BACK:
        return changed + _drain(partial(_silent, heard_since=since), _mark_silent, now)
    return changed + _drain(_silent, _mark_silent, now)


def servers_mark_silent(*, now: datetime) -> int:
    """Mark servers whose agent missed two reports, and those that are heard again; returns how many changed."""
    return _drain(_silent, _mark_silent, now) + _drain(_heard, _mark_heard, now)


def _drain(
    find: Callable[[datetime], QuerySet[Server]], mark: Callable[[list[Server], datetime], None], now: datetime
) -> int:
    """Work through what `find` returns in chunks, each a transaction of its own; rows that somebody holds wait a round."""
    changed = 0
    while True:
        with transaction.atomic():
            rows = find(now).select_related("agent").select_for_update(of=("self",), skip_locked=True).order_by("pk")
            servers = list(rows[:CHUNK])
            if servers:
                mark(servers, now)
        changed += len(servers)
        if len(servers) < CHUNK:
            return changed


def _oldest_report(now: datetime) -> "ExpressionWrapper[CombinedExpression]":
    """The words of fleet.lifecycle.silent_after_seconds in SQL: an agent last seen before this is silent."""
    interval = F("agent__report_interval_seconds")
    silence = Func(
        interval * 2.0 + Greatest(interval / 2.0, Value(2.5)),
        template="make_interval(secs => %(expressions)s)",
        output_field=DurationField(),
    )
    return ExpressionWrapper(Value(now) - silence, output_field=DateTimeField())


def _with_gpus(condition: Q) -> Exists:
    return Exists(Gpu.objects.filter(condition, server=OuterRef("pk"), removed_at=None))


def _silent(now: datetime, *, heard_since: datetime | None = None) -> QuerySet[Server]:
    """Return the servers that are silent and not marked so; heard_since: only those whose last report came after that."""
    is_unmarked = Q(state__in=REPORTING_STATES) | Q(_with_gpus(~Q(state_reason=SILENT_REASON)))
    silent = Server.objects.filter(is_unmarked, agent__last_seen_at__lt=_oldest_report(now))
    if heard_since is not None:
        silent = silent.filter(agent__last_seen_at__gte=heard_since)
    return silent.exclude(state__in=_NOT_WATCHED)


def _heard(now: datetime) -> QuerySet[Server]:
    is_marked = Q(state=ServerState.NOT_REPORTING) | Q(_with_gpus(Q(state_reason=SILENT_REASON)))
    heard = Server.objects.filter(is_marked, agent__last_seen_at__gte=_oldest_report(now), agent__revoked_at=None)
    return heard.exclude(state__in=_NOT_WATCHED)


def _gpus_of(servers: list[Server]) -> dict[int, list[Gpu]]:
    """Return the cards of each server; their rows are guarded by the lock on the server's."""
    found: dict[int, list[Gpu]] = defaultdict(list)
    for gpu in Gpu.objects.filter(server__in=servers):
        found[gpu.server_id].append(gpu)
    return found


def _mark_silent(servers: list[Server], now: datetime) -> None:
    gpus = _gpus_of(servers)
    reporting = [server for server in servers if server.state in REPORTING_STATES]
    to = ServerState.NOT_REPORTING
    servers_transition([ServerChange(server, to, "agent_silent") for server in reporting], actor=ACTOR, at=now)
    told = []
    for server in servers:
        live = [gpu for gpu in gpus[server.pk] if gpu.removed_at is None and gpu.state_reason != SILENT_REASON]
        changes = [GpuChange(gpu, GpuState.UNKNOWN, SILENT_REASON) for gpu in live]
        gpus_transition(changes, server_name=server.name, actor=ACTOR, at=now, is_quiet=True)
        server.gpu_health = GpuHealth.UNKNOWN
        told.append((server, gpus[server.pk], live))
    rows_update(servers, ["gpu_health"])
    tell_servers(told)


def _mark_heard(servers: list[Server], now: datetime) -> None:
    """Give cards back what the agent said of them last; the next report says it anew."""
    gpus, faults = _gpus_of(servers), open_faults(server_ids=[server.pk for server in servers], at=now)
    told = []
    for server in servers:
        back = [gpu for gpu in gpus[server.pk] if gpu.removed_at is None and gpu.state_reason == SILENT_REASON]
        changes = [GpuChange(gpu, GpuState(gpu.reported_state), gpu.reported_reason) for gpu in back]
        gpus_transition(changes, server_name=server.name, actor=ACTOR, at=now, is_quiet=True)
        server_judge(server=server, gpus=gpus[server.pk], faults=faults.get(server.pk, {}), actor=ACTOR, at=now)
        told.append((server, gpus[server.pk], back))
    rows_update(servers, ["gpu_health"])
    tell_servers(told)


def gpu_health_refresh(*, now: datetime) -> int:
    """Judge again the servers whose cards are not healthy: a fault that no longer repeats is over. Returns the changes."""
    ill = Server.objects.filter(state__in=REPORTING_STATES, gpu_health__in=(GpuHealth.WARNING, GpuHealth.FAILED))
    changed = 0
    with transaction.atomic():
        rows = ill.select_related("agent").select_for_update(of=("self",), skip_locked=True).order_by("pk")
        servers = list(rows[: CHUNK * 5])
        gpus, faults = _gpus_of(servers), open_faults(server_ids=[server.pk for server in servers], at=now)
        for server in servers:
            if server_judge(server=server, gpus=gpus[server.pk], faults=faults.get(server.pk, {}), actor=ACTOR, at=now):
                server.save(update_fields=["gpu_health"])
                tell_servers([(server, gpus[server.pk], [])])
                changed += 1
    return changed
