"""What people do about a difference between panel and provider: adopt, end it, accept, ignore until."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.utils.translation import gettext as _

from fleet.enums import DriftKind, DriftResolution, OperationKind, Wanted
from fleet.models import Drift, Lease
from fleet.providers.base import Machine
from fleet.services.accounts import account_locked, account_provider
from fleet.services.cleaning import clean_machine, clean_text
from fleet.services.contracts import lease_attach
from fleet.services.drift import drift_settle, lease_adopt
from fleet.services.leases import lease_locked, price_set
from fleet.services.power import lease_act
from fleet.services.telling_leases import tell_drift
from panel.accounts.audit import Actor, audit
from panel.core.clock import now
from panel.core.errors import Conflict, InvalidInput, NotFound
from panel.core.money import Money

LONGEST_IGNORE: Final = timedelta(days=366)


@dataclass(frozen=True, slots=True)
class _TakingOn:
    """How an unknown machine is taken on: to keep it, or to end it."""

    wanted: Wanted
    resolution: DriftResolution
    action: str


_KEEP: Final = _TakingOn(Wanted.RUNNING, DriftResolution.ADOPTED, "drift.adopt")
_END: Final = _TakingOn(Wanted.ENDED, DriftResolution.ENDED, "drift.end")


def _open_drift(drift_id: int, *kinds: DriftKind) -> Drift:
    drift = Drift.objects.select_for_update(of=("self",)).select_related("account").filter(pk=drift_id).first()
    if drift is None:
        raise NotFound(_("There is no such difference."))
    if drift.resolved_at is not None:
        raise Conflict(_("This difference is settled already."), code="settled")
    if kinds and drift.kind not in kinds:
        raise Conflict(_("That is not possible for a difference of this kind."), code="not_for_this_kind")
    return drift


def _machine_of(drift: Drift) -> Machine:
    """Ask the provider for the machine of a difference. Raises Conflict when it is gone by now."""
    machine = account_provider(drift.account).machine(drift.external_id)
    if machine is None:
        raise Conflict(_("The machine is gone at the provider; the difference settles itself."), code="gone")
    return clean_machine(machine)


def drift_adopt(*, drift_id: int, actor: Actor, server_id: int | None = None) -> Lease:
    """Take on a machine that the panel did not know. Raises NotFound, Conflict, or ProviderError from asking for it."""
    return _take_on(drift_id, actor, _KEEP, server_id)


def drift_end(*, drift_id: int, actor: Actor) -> Lease:
    """End an unknown machine, or one that is not what was ordered: it stays listed until the provider confirms it is gone.

    Raises NotFound, Conflict, or ProviderError from asking for an unknown one.
    """
    if Drift.objects.filter(pk=drift_id, kind=DriftKind.SPEC_DIFFERS).exists():
        return _end_known(drift_id, actor)
    return _take_on(drift_id, actor, _END)


def _end_known(drift_id: int, actor: Actor) -> Lease:
    with transaction.atomic():
        lease_id = Drift.objects.values_list("lease_id", flat=True).get(pk=drift_id)
        assert lease_id is not None  # noqa: S101 (a spec is that of a lease)
        lease = lease_locked(lease_id)
        drift = _open_drift(drift_id, DriftKind.SPEC_DIFFERS)
        lease_act(lease_id=lease.pk, kind=OperationKind.TERMINATE, actor=actor)
        drift_settle([drift], DriftResolution.ENDED, now())
        audit(actor=actor, action=_END.action, target=lease, after={"external_id": drift.external_id})
    lease.refresh_from_db()
    return lease


def _take_on(drift_id: int, actor: Actor, how: _TakingOn, server_id: int | None = None) -> Lease:
    with transaction.atomic():
        drift = _open_drift(drift_id, DriftKind.UNKNOWN_AT_PROVIDER)
    machine = _machine_of(drift)
    with transaction.atomic():
        account_locked(drift.account_id)  # it may have been removed meanwhile, and then nobody could end the machine
        drift = _open_drift(drift_id, DriftKind.UNKNOWN_AT_PROVIDER)
        at = now()
        lease = lease_adopt(drift.account, machine, at=at, wanted=how.wanted, by=actor.name)
        if server_id is not None:
            lease_attach(lease_id=lease.pk, server_id=server_id, actor=actor)
        drift_settle([drift], how.resolution, at)
        audit(actor=actor, action=how.action, target=lease, after={"external_id": drift.external_id})
    return lease


def drift_accept(*, drift_id: int, actor: Actor) -> Drift:
    """Accept what the provider says: a price from when it was first seen, a spec as it was found, a machine that is gone."""
    with transaction.atomic():
        # The lease is locked first, as the sync does: the other way round the two would wait for each other.
        lease_id = Drift.objects.filter(pk=drift_id).values_list("lease_id", flat=True).first()
        lease = lease_locked(lease_id) if lease_id is not None else None
        drift = _open_drift(drift_id, DriftKind.PRICE_DIFFERS, DriftKind.SPEC_DIFFERS, DriftKind.MISSING_AT_PROVIDER)
        assert lease is not None  # noqa: S101 (all three are of a lease)
        if drift.kind == DriftKind.PRICE_DIFFERS:
            price = Money.of(str(drift.found["price_per_hour"]), str(drift.found["currency"]))
            price_set(lease, price, at=drift.first_seen_at, source="provider")
        elif drift.kind == DriftKind.SPEC_DIFFERS:
            lease.spec = {**lease.spec, **drift.found}
            lease.save(update_fields=["spec"])
        drift_settle([drift], DriftResolution.ACCEPTED, now())
        audit(actor=actor, action="drift.accept", target=lease, before=drift.expected, after=drift.found)
    return drift


def drift_ignore(*, drift_id: int, until: datetime, actor: Actor, reason: str = "") -> Drift:
    """Leave a difference out of sight until a time, at most a year ahead. Raises InvalidInput, Conflict or NotFound."""
    at = now()
    if not at < until <= at + LONGEST_IGNORE:
        raise InvalidInput(_("Choose a time in the future, at most a year ahead."), field="until")
    with transaction.atomic():
        drift = _open_drift(drift_id)
        drift.ignored_until, drift.ignored_by_name = until, clean_text(actor.name, 200)
        drift.save(update_fields=["ignored_until", "ignored_by_name"])
        tell_drift(drift)
        audit(actor=actor, action="drift.ignore", target=drift, after={"until": until.isoformat()}, reason=reason)
    return drift
