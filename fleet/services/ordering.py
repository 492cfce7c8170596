"""Placing an order: once for one key, with nothing asked of the provider yet; fleet.services.driving carries it out."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from fleet.agent_package.installer import join_command, panel_url
from fleet.enums import LeaseOrigin, LeaseState, OperationKind, PriceComponent, ServerState
from fleet.models import Lease, Offer, Operation, ProviderAccount, Server
from fleet.providers.base import Billing, CanOrder, MachineOrder, missing_fields
from fleet.providers.registry import provider_type
from fleet.reasons import REASON_WORDS, Reason
from fleet.services.accounts import account_locked
from fleet.services.cleaning import clean_text
from fleet.services.joining import join_token_create
from fleet.services.leases import price_set
from fleet.services.operations import JOIN_DEADLINE, operation_begin, operation_known
from fleet.services.planning import Plan, order_plan
from fleet.services.rebuilding import server_rebuild
from fleet.services.servers import server_locked
from fleet.services.telling_leases import tell_lease
from panel.accounts.audit import Actor
from panel.core.clock import now
from panel.core.errors import Conflict, InvalidInput
from panel.core.installation import install_id, is_copied
from panel.core.money import Money


@dataclass(frozen=True, kw_only=True, slots=True)
class Placed:
    """An order that was placed: its operation, and whether this call placed it."""

    operation: Operation
    is_new: bool


def order_place(
    *,
    account_id: int,
    offer_id: int,
    server_name: str,
    actor: Actor,
    options: Mapping[str, Any] | None = None,
    max_price_per_hour: Decimal | None = None,
    override_reason: str = "",
    server_id: int | None = None,
    key: str = "",
    url: str = "",
) -> Placed:
    """Place an order: its lease, its server (pending, or an existing one to be built again) and its operation.

    key: asking again with it orders nothing more. override_reason: orders although the budget is used up, and is kept.
    url: the panel's address for the machine's agent. Raises InvalidInput, NotFound, or Conflict with what stands against it.
    """
    asked = {name: str(value) for name, value in (options or {}).items()}
    request: dict[str, Any] = {
        "account": account_id,
        "offer": offer_id,
        "name": server_name,
        "options": asked,
        "max_price_per_hour": str(max_price_per_hour) if max_price_per_hour is not None else None,
        "server": server_id,
    }
    if reason := clean_text(override_reason, 500):
        request["override_reason"] = reason
    known = operation_known(actor=actor, key=key, kind=OperationKind.ORDER, request=request)
    if known is not None:
        return Placed(operation=known, is_new=False)
    plan = order_plan(account_id=account_id, offer_id=offer_id, max_price_per_hour=max_price_per_hour)
    _refuse(plan, reason)
    if is_copied():
        raise Conflict(
            _(
                "This database is a copy of another panel's: ordered machines of both would carry the same names. An "
                "administrator decides which panel keeps the id, with “manage.py installation”; then order again."
            ),
            code="installation_copied",
        )
    chosen = _clean_options(plan.offer.account, asked)
    with transaction.atomic():
        if account_locked(account_id).is_paused:  # locked, so that it is not removed before the lease is there
            raise Conflict(_("This account is paused. Switch it on first."), code="paused")
        maximum = Money(max_price_per_hour, plan.offer.currency) if max_price_per_hour is not None else None
        server = _server_for(server_id, server_name, plan.offer, actor)
        lease = _lease_for(plan, chosen, server)
        script = _startup_script(server, actor, url or panel_url()) if plan.runs_startup_script else ""
        lease.sealed_order = seal(_machine_order(lease, plan.offer, chosen, script, maximum))
        lease.save(update_fields=["name", "sealed_order"])
        operation = _begin(plan, lease, request, actor, key)
    return Placed(operation=operation, is_new=True)


def _refuse(plan: Plan, override_reason: str) -> None:
    """Raise Conflict for the first reason against an order; a used-up budget may be overridden with a reason."""
    for reason in plan.refusals:
        if reason == Reason.BUDGET_CAP and override_reason:
            continue
        words = REASON_WORDS[reason]
        raise Conflict(f"{words.sentence} {words.next_step}", code=str(reason))


def _clean_options(account: ProviderAccount, values: Mapping[str, str]) -> dict[str, str]:
    kind = provider_type(account.kind)
    assert issubclass(kind, CanOrder)  # noqa: S101 (order_plan refused the others)
    fields = {field.name: field for field in kind.order_fields}
    if unknown := sorted(set(values) - set(fields)):
        raise InvalidInput(_("Not known here: %(names)s.") % {"names": ", ".join(unknown)}, field="options")
    chosen = {name: (values.get(name) or field.default).strip()[: field.max_length] for name, field in fields.items()}
    if missing := missing_fields(tuple(kind.order_fields), chosen):
        names = ", ".join(str(fields[name].label) for name in missing)
        raise InvalidInput(_("Still missing: %(names)s.") % {"names": names}, field="options")
    return chosen


def _lease_for(plan: Plan, chosen: dict[str, str], server: Server) -> Lease:
    """Write down the lease with the prices of its offer; its name is what the machine is found by."""
    offer, at = plan.offer, now()
    lease = Lease.objects.create(
        account=offer.account,
        server=server,
        name="",
        origin=LeaseOrigin.ORDERED,
        state=LeaseState.REQUESTED,
        state_reason=Reason.USER,
        state_changed_at=at,
        spec=_spec(offer, chosen),
        region=offer.region,
        billing=offer.billing,
        expects_agent=plan.runs_startup_script,
        requested_at=at,
        next_step_at=at,
    )
    lease.name = f"fleetdeck-{install_id()}-{lease.pk}"
    if plan.price_per_hour is not None:
        price_set(lease, plan.price_per_hour, at=at, source="offer")
    if offer.price_stopped_per_hour is not None:
        stopped = Money(offer.price_stopped_per_hour, offer.currency)
        price_set(lease, stopped, at=at, source="offer", component=PriceComponent.STOPPED)
    tell_lease(lease)
    return lease


def _begin(plan: Plan, lease: Lease, request: dict[str, Any], actor: Actor, key: str) -> Operation:
    kind = provider_type(plan.offer.account.kind)
    return operation_begin(
        kind=OperationKind.ORDER,
        actor=actor,
        account=plan.offer.account,
        lease=lease,
        request=request,
        key=key,
        deadline=kind.boot_deadline + (JOIN_DEADLINE if plan.runs_startup_script else timedelta(0)),
        skipped=() if plan.runs_startup_script else ("join",),
    )


def _spec(offer: Offer, chosen: dict[str, str]) -> dict[str, Any]:
    return {
        "offer_key": offer.key,
        "gpu_model": offer.gpu_model,
        "raw_gpu": offer.raw_gpu,
        "gpu_count": offer.gpu_count,
        "gpu_memory_bytes": offer.gpu_memory_bytes,
        "cpu_count": offer.cpu_count,
        "memory_bytes": offer.memory_bytes,
        "region": offer.region,
        "options": chosen,
    }


def _server_for(server_id: int | None, name: str, offer: Offer, actor: Actor) -> Server:
    """Return the server that the machine will be: a new one that waits for it, or the one that is built again."""
    if server_id is not None:
        server = server_locked(server_id)
        if Lease.objects.filter(server=server, ended_at=None).exists():
            raise Conflict(_("This server has an open lease already. End it first."), code="server_has_lease")
        server_rebuild(server=server, actor=actor)
        return server
    name = clean_text(name, 100)
    if not name:
        raise InvalidInput(_("Give the server a name."), field="name")
    if Server.objects.filter(name__iexact=name, retired_at=None).exists():
        raise InvalidInput(_("There is a server of that name already."), code="name_taken", field="name")
    at = now()
    try:
        with transaction.atomic():
            return Server.objects.create(
                name=name,
                state=ServerState.PENDING,
                state_reason="ordered",
                state_changed_at=at,
                created_at=at,
                provider=offer.account.kind,
                region=offer.region,
                is_simulated=provider_type(offer.account.kind).is_simulated,
            )
    except IntegrityError:  # another request was first, by less than the check above sees
        raise InvalidInput(_("There is a server of that name already."), code="name_taken", field="name") from None


def _startup_script(server: Server, actor: Actor, url: str) -> str:
    """Return the shell text that installs the agent and joins it to this server, with a one-time token."""
    token = join_token_create(name=server.name, actor=actor, server=server, is_for_startup=True).token
    return f"#!/bin/sh\n{join_command(url=url, token=token)}\n"


def _machine_order(
    lease: Lease, offer: Offer, chosen: dict[str, str], script: str, maximum: Money | None
) -> MachineOrder:
    return MachineOrder(
        name=lease.name,
        offer_key=offer.key,
        gpu_model=offer.gpu_model,
        gpu_count=offer.gpu_count,
        region=offer.region,
        billing=Billing(offer.billing),
        details=offer.details,
        options=chosen,
        startup_script=script,
        max_price_per_hour=maximum,
    )


def seal(order: MachineOrder) -> str:
    """Return an order as it is stored, encrypted, until its outcome is known: its script holds a join token."""
    return json.dumps(asdict(order), default=str)


def unseal(text: str) -> MachineOrder:
    """Return the order that was stored."""
    values = json.loads(text)
    maximum = values.pop("max_price_per_hour")
    price = Money.of(maximum["amount"], maximum["currency"]) if maximum is not None else None
    return MachineOrder(**{**values, "billing": Billing(values["billing"])}, max_price_per_hour=price)
