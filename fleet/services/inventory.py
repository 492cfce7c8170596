"""What a report says of a machine and its cards, applied to the fleet's tables; the samples are the store's."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

import msgspec
from django.db import transaction
from django.utils.translation import gettext as _

from fleet.agent import wire
from fleet.enums import DriverState, ServerState
from fleet.models import Agent, AgentStream, Gpu, JoinToken, Server
from fleet.services.bulk import rows_update
from fleet.services.cleaning import clean_address, clean_json, clean_text
from fleet.services.faults import faults_record
from fleet.services.inventory_gpus import FACT_FIELDS, SEEN_FIELDS, GpuMerge, merge_gpus
from fleet.services.judging import open_faults, server_judge, whole_cards
from fleet.services.telling import tell_join, tell_processes, tell_server
from fleet.services.transitions import gpus_transition
from panel.accounts.audit import Actor
from panel.core.enums import Severity
from panel.core.errors import InvalidInput, NotAuthenticated
from panel.core.events import event_write

_AGENT_FIELDS: Final = ("version", "capabilities", "last_seen_at", "last_address", "clock_skew_seconds")
_LONGEST_DRIVER_STATE: Final = timedelta(days=3650)


@dataclass(frozen=True, slots=True)
class _Arrival:
    """When and whence a report came."""

    at: datetime
    clock_skew_seconds: float | None
    address: str | None
    actor: Actor


def inventory_apply(
    *,
    agent_id: int,
    report: wire.Report,
    received_at: datetime,
    clock_skew_seconds: float | None,
    address: str | None,
) -> dict[str, int]:
    """Apply everything but the samples of one report; returns uuid → id of all the server's cards and slices.

    Applying the same report again changes nothing, and one that is already stored (its `seq` is behind its stream) is not
    applied over newer ones. Only rows of the agent's own server are touched. Raises NotAuthenticated when the agent's
    token was taken back or its server is retired, InvalidInput for a boot id that is none.
    """
    try:
        boot_id = UUID(report.boot_id)
    except ValueError:
        raise InvalidInput(_("The report's boot_id is no UUID."), field="boot_id") from None
    with transaction.atomic():
        server = _server_of(agent_id)
        gpus = list(Gpu.objects.filter(server=server).order_by("pk"))
        if not AgentStream.objects.filter(agent=agent_id, boot_id=boot_id, last_seq__gte=report.seq).exists():
            actor = Actor(kind="agent", id=agent_id, name=f"agent of {server.name}", address=address)
            _apply(server, gpus, report, _Arrival(received_at, clock_skew_seconds, address, actor))
    return {gpu.uuid: gpu.pk for gpu in gpus}


def _server_of(agent_id: int) -> Server:
    """Return the agent's server with its agent, both rows locked: reports of one machine are applied one by one."""
    servers = Server.objects.select_related("agent").select_for_update(of=("self", "agent"))
    server = servers.filter(agent=agent_id, agent__revoked_at=None).exclude(state=ServerState.RETIRED).first()
    if server is None:
        raise NotAuthenticated(_("This agent's token was taken back, or its server is retired."))
    return server


def _apply(server: Server, gpus: list[Gpu], report: wire.Report, arrival: _Arrival) -> None:
    server_fields = _apply_driver(server, report.driver, arrival) | _apply_host(server, report, arrival)
    _apply_agent(server.agent, report, arrival)
    merge = merge_gpus(
        server_id=server.pk,
        rows=gpus,
        sent_gpus=report.gpus,
        is_looked=report.driver.state != DriverState.UNKNOWN,
        driver_state=DriverState(server.driver_state),
        at=arrival.at,
    )
    _store_gpus(server, gpus, merge, arrival)
    if report.faults:
        faults_record(
            server=server,
            gpus=gpus,
            faults=report.faults,
            received_at=arrival.at,
            clock_skew_seconds=arrival.clock_skew_seconds,
        )
    was = (server.state, server.gpu_health)
    faults = open_faults(server_ids=[server.pk], at=arrival.at).get(server.pk, {})
    server_judge(server=server, gpus=gpus, faults=faults, actor=arrival.actor, at=arrival.at)
    if server.gpu_health != was[1]:
        server_fields.add("gpu_health")
    if server_fields:
        server.save(update_fields=sorted(server_fields))
    changed = list(
        {gpu.pk: gpu for gpu in [*merge.new, *merge.facts_changed, *(c.gpu for c in merge.changes)]}.values()
    )
    if changed or server_fields or was[0] != server.state:
        tell_server(server, gpus=gpus, changed=changed)
        _tell_joins(server, arrival.at)
    tell_processes(server.pk, merge.processes_read)


def _apply_agent(agent: Agent, report: wire.Report, arrival: _Arrival) -> None:
    agent.version = clean_text(report.agent_version, 32)
    agent.capabilities = [clean_text(name, 32) for name in report.capabilities[:64]]
    agent.last_seen_at = max(agent.last_seen_at or arrival.at, arrival.at)
    agent.last_address = clean_address(arrival.address)
    agent.clock_skew_seconds = arrival.clock_skew_seconds
    rows_update([agent], _AGENT_FIELDS)


def _driver_since(driver: wire.Driver, arrival: _Arrival) -> datetime:
    """Return when the driver's state began, by the panel's clock: the agent's word where it can be true."""
    skew = timedelta(seconds=arrival.clock_skew_seconds or 0.0)
    if 0 < driver.since_ms < 2**42:
        since = datetime.fromtimestamp(driver.since_ms / 1000, tz=UTC) - skew
        if arrival.at - _LONGEST_DRIVER_STATE < since <= arrival.at:
            return since
    return arrival.at


def _apply_driver(server: Server, driver: wire.Driver, arrival: _Arrival) -> set[str]:
    """Set the driver's fields in memory and write the event of a change; returns the names of fields that changed.

    Versions that a failing driver no longer tells are kept as they were, and so is everything while an agent that has
    just started has not looked yet.
    """
    before = DriverState(server.driver_state)
    state = DriverState(driver.state) if driver.state in DriverState.values else DriverState.ERROR
    if state == DriverState.UNKNOWN and before != DriverState.UNKNOWN:
        return set()
    wanted: dict[str, Any] = {
        "driver_state": state,
        "driver_detail": clean_text(driver.detail, 500),
        "driver_version": clean_text(driver.version, 64) or server.driver_version,
        "driver_library_version": clean_text(driver.library_version, 64) or server.driver_library_version,
        "cuda_version": clean_text(driver.cuda_version, 32) or server.cuda_version,
    }
    if state != before or server.driver_since is None:
        wanted["driver_since"] = _driver_since(driver, arrival)
    changed = _assign(server, wanted)
    if state != before:
        event_write(
            kind="server.driver_changed",
            severity=Severity.INFO if before == DriverState.UNKNOWN or state == DriverState.OK else Severity.WARNING,
            subject_kind="server",
            subject_id=server.pk,
            subject_name=server.name,
            server_id=server.pk,
            data={
                "from": str(before),
                "to": str(state),
                "detail": server.driver_detail,
                "driver_version": server.driver_version,
                "library_version": server.driver_library_version,
            },
        )
    return changed


def _assign(server: Server, wanted: dict[str, Any]) -> set[str]:
    changed = {name for name, value in wanted.items() if getattr(server, name) != value}
    for name in changed:
        setattr(server, name, wanted[name])
    return changed


def carries_samples(report: Any) -> bool:
    """Say whether a `wire.Report`, or a struct with its fields, brings samples, as rows or as columns."""
    host_rows = 0 if report.host_columns is None else report.host_columns.rows - report.has_host_previous
    of_cards = any(gpu.samples or gpu.rows > gpu.has_previous for gpu in report.gpus)
    return bool(report.host_samples) or host_rows > 0 or of_cards


def _apply_host(server: Server, report: wire.Report, arrival: _Arrival) -> set[str]:
    """Set what the machine is, in memory; returns the names of fields that changed."""
    wanted: dict[str, Any] = {}
    if report.host is not None:
        facts = clean_json(msgspec.to_builtins(report.host))
        if facts != server.facts or server.facts_at is None:
            wanted |= {"facts": facts, "facts_at": arrival.at}
    if server.first_sample_at is None and carries_samples(report):
        wanted["first_sample_at"] = arrival.at
    return _assign(server, wanted)


def _store_gpus(server: Server, gpus: list[Gpu], merge: GpuMerge, arrival: _Arrival) -> None:
    """Store the merge: whole cards before their slices, then what changed, then the states."""
    cards = [gpu for gpu in merge.new if gpu.uuid not in merge.parents]
    slices = [gpu for gpu in merge.new if gpu.uuid in merge.parents]
    if cards:
        Gpu.objects.bulk_create(cards)
        gpus.extend(cards)
    by_uuid = {gpu.uuid: gpu for gpu in gpus}
    for gpu in [*slices, *merge.seen]:
        parent = by_uuid.get(merge.parents.get(gpu.uuid, ""))
        if parent is not None and gpu.parent_id != parent.pk:
            gpu.parent = parent
            if gpu.pk is not None:
                merge.facts_changed.append(gpu)
    if slices:
        Gpu.objects.bulk_create(slices)
        gpus.extend(slices)
    rows_update(list({gpu.pk: gpu for gpu in merge.facts_changed}.values()), FACT_FIELDS)
    rows_update(merge.seen, SEEN_FIELDS)
    was_silent = server.state == ServerState.NOT_REPORTING
    gpus_transition(merge.changes, server_name=server.name, actor=arrival.actor, at=arrival.at, is_quiet=was_silent)
    _tell_found(server, merge)


def _tell_found(server: Server, merge: GpuMerge) -> None:
    """One event for all new cards, one for slices that were taken apart."""
    found = whole_cards(merge.new)
    for kind, gpus in (("gpu.found", found), ("gpu.slices_removed", merge.slices_gone)):
        if gpus:
            event_write(
                kind=kind,
                subject_kind="server",
                subject_id=server.pk,
                subject_name=server.name,
                server_id=server.pk,
                data={"count": len(gpus), "name": gpus[0].name, "uuids": [gpu.uuid for gpu in gpus]},
            )


def _tell_joins(server: Server, at: datetime) -> None:
    """Tell a join page that is still open how far its machine has come."""
    if server.agent.joined_at > at - timedelta(hours=24):
        token = JoinToken.objects.filter(server=server).exclude(used_at=None).order_by("-used_at").first()
        if token is not None:
            token.server = server
            tell_join(token)
