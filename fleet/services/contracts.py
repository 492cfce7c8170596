"""Leases as contracts: typed in for machines without an API, their prices, terms and renewals, and whose server they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from fleet.enums import LeaseOrigin, LeaseState, PriceComponent, PriceUnit, Wanted
from fleet.leasing.costs import hourly
from fleet.leasing.terms import TIME_TERMS
from fleet.models import Lease, ProviderAccount, Server
from fleet.providers.base import Billing, MachineStatus
from fleet.providers.registry import provider_type
from fleet.reasons import Reason
from fleet.services.accounts import account_locked
from fleet.services.cleaning import HIGHEST_PRICE, clean_text
from fleet.services.leases import bill, lease_locked, lease_transition, price_set
from fleet.services.telling_leases import tell_lease
from panel.accounts.audit import Actor, audit
from panel.core.clock import now
from panel.core.errors import Conflict, InvalidInput, NotFound
from panel.core.money import Money

YEARS: Final = range(2000, 2200)
HIGHEST_FEE: Final = Decimal(10) ** 9
TYPED_FIELDS: Final = (
    "landlord",
    "notes",
    "renews_at",
    "is_renewing",
    "reminder_days",
    "region",
    "billing",
    *TIME_TERMS,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class PricePart:
    """One part of a price as a person types it in."""

    component: PriceComponent
    price: Money
    unit: PriceUnit
    runs_while_stopped: bool = True


def lease_type_in(
    *,
    name: str,
    billing: Billing,
    prices: Sequence[PricePart],
    started_at: datetime,
    actor: Actor,
    account: ProviderAccount | None = None,
    server_id: int | None = None,
    spec: dict[str, Any] | None = None,
    **terms: Any,
) -> Lease:
    """Write down a contract for a machine that no API tells of. Raises InvalidInput.

    started_at: since when it is paid. spec: what was agreed {gpu_model, gpu_count, gpu_memory_bytes, …}. terms: any of
    TYPED_FIELDS. account: one of machines without an API.
    """
    name = clean_text(name, 200)
    if not name:
        raise InvalidInput(_("Give the contract a name."), field="name")
    at = now()
    _check_days(started_at=started_at, renews_at=terms.get("renews_at"))
    _check_prices(prices, at)
    if started_at > at:
        raise InvalidInput(
            _("A contract that has not begun costs nothing yet; write it down on its day."), field="started_at"
        )
    with transaction.atomic():
        lease = Lease.objects.create(
            account=_account_of_typed(account),
            name=name,
            origin=LeaseOrigin.TYPED,
            state=LeaseState.ACTIVE,
            state_reason=Reason.USER,
            state_changed_at=at,
            status=MachineStatus.RUNNING,
            spec=spec or {},
            billing=billing,
            requested_at=started_at,
            create_settled_at=started_at,
            started_at=started_at,
            **{key: value for key, value in terms.items() if key in TYPED_FIELDS},
        )
        bill(lease, started_at, is_confirmed=True)
        _set_prices(lease, prices, started_at)
        audit(actor=actor, action="lease.type_in", target=lease, after={"billing": str(billing)})
        if server_id is not None:
            lease_attach(lease_id=lease.pk, server_id=server_id, actor=actor)
        tell_lease(lease)
    return lease


def _account_of_typed(account: ProviderAccount | None) -> ProviderAccount | None:
    """Return the account that a typed-in contract belongs to, locked, so that it is not removed before the contract is there.

    Raises InvalidInput for an account with an API: what is there is found by itself, and a contract beside it counts twice.
    """
    if account is None:
        return None
    account = account_locked(account.pk)
    if provider_type(account.kind).is_synced:
        raise InvalidInput(
            _(
                "Machines of this account are found by themselves. Choose an account of machines without an API, or none; "
                "adopt a machine that was found under Differences."
            ),
            field="account",
        )
    return account


def _check_days(**days: datetime | None) -> None:
    """Raise InvalidInput for a day that can only be a slip: other zones and sums could not even show it."""
    for name, day in days.items():
        if day is not None and day.year not in YEARS:
            raise InvalidInput(_("This day lies too far away."), field=name)


def _check_prices(prices: Sequence[PricePart], at: datetime) -> None:
    """Raise InvalidInput for an amount that can only be a slip: sums over years could not hold it."""
    for part in prices:
        is_fee_high = part.unit == PriceUnit.ONCE and part.price.amount > HIGHEST_FEE
        if is_fee_high or hourly(part.price.amount, part.unit, at) > HIGHEST_PRICE:
            raise InvalidInput(
                _("That is more than any machine costs. Look at the amount and its unit."), field="prices"
            )


def _set_prices(lease: Lease, prices: Sequence[PricePart], at: datetime) -> None:
    for part in prices:
        price_set(
            lease,
            part.price,
            at=at,
            source="person",
            component=part.component,
            unit=part.unit,
            runs_while_stopped=part.runs_while_stopped,
        )


def lease_terms_update(
    *,
    lease_id: int,
    actor: Actor,
    prices: Sequence[PricePart] = (),
    effective_from: datetime | None = None,
    **terms: Any,
) -> Lease:
    """Change the terms of a contract; new prices count from `effective_from` (now when left out). Raises NotFound, Conflict."""
    changes = {key: value for key, value in terms.items() if key in TYPED_FIELDS}
    _check_days(effective_from=effective_from, renews_at=changes.get("renews_at"))
    _check_prices(prices, now())
    with transaction.atomic():
        lease = lease_locked(lease_id)
        if lease.ended_at is not None:
            raise Conflict(_("This contract has ended; its terms are history."), code="lease_ended")
        before = {key: getattr(lease, key) for key in changes}
        for key, value in changes.items():
            setattr(lease, key, value)
        lease.save(update_fields=list(changes) or None)
        _set_prices(lease, prices, max(effective_from or now(), lease.requested_at))
        after = {**changes, "prices": [f"{part.component}: {part.price} {part.unit}" for part in prices]}
        audit(actor=actor, action="lease.update", target=lease, before=before, after=after)
        tell_lease(lease)
    return lease


def lease_close(*, lease_id: int, ended_at: datetime, actor: Actor, reason: str = "") -> Lease:
    """Write down that a typed-in contract has ended. Raises Conflict for one that a provider's API tells of."""
    with transaction.atomic():
        lease = lease_locked(lease_id)
        if lease.origin != LeaseOrigin.TYPED:
            raise Conflict(_("This machine is ended at its provider: use “End”."), code="not_typed")
        if lease.ended_at is not None:
            return lease
        if not lease.requested_at <= ended_at <= now():
            raise InvalidInput(_("The end lies between the contract's start and now."), field="ended_at")
        lease_transition(lease, LeaseState.TERMINATED, Reason.USER, at=now(), by=actor.name)
        lease.wanted, lease.ended_at = Wanted.ENDED, ended_at
        lease.save(update_fields=["wanted", "ended_at"])
        bill(lease, ended_at, is_confirmed=True)
        audit(actor=actor, action="lease.close", target=lease, after={"ended_at": ended_at.isoformat()}, reason=reason)
        tell_lease(lease)
    return lease


def lease_attach(*, lease_id: int, server_id: int | None, actor: Actor) -> Lease:
    """Say which server a lease pays for; None takes the tie away. Raises NotFound, or Conflict when the server has one."""
    try:
        with transaction.atomic():
            lease = lease_locked(lease_id)
            server = Server.objects.filter(pk=server_id).first() if server_id is not None else None
            if server_id is not None and server is None:
                raise NotFound(_("There is no such server."))
            before = {"server": lease.server_id}
            lease.server = server
            lease.save(update_fields=["server"])
            audit(actor=actor, action="lease.attach", target=lease, before=before, after={"server": server_id})
            tell_lease(lease)
    except IntegrityError:
        raise Conflict(_("This server has an open lease already."), code="server_has_lease") from None
    return lease
