"""Whether a machine that a provider shows, or does not show, is a lease's: by its id, by its name, by its absence."""

from collections.abc import Sequence
from datetime import datetime

from fleet.enums import DriftKind, LeaseOrigin, LeaseState
from fleet.leasing.lifecycle import MISSES_UNTIL_LOST
from fleet.models import Lease
from fleet.providers.base import Machine, Provider
from fleet.services.drift import drift_note
from fleet.services.leases import lease_gone


def has_id_again(lease: Lease, machine: Machine) -> bool:
    """Say whether a machine only has the id of a lease that is over: it was made after that one's machine had gone.

    Providers that number their machines anew give an id twice. One that was given up before it was ever seen is no such
    lease: its own machine may be made late.
    """
    if lease.ended_at is None or lease.observed_at is None or machine.created_at is None:
        return False
    return machine.created_at > lease.ended_at


def lease_link(lease: Lease, candidates: Sequence[Machine], *, at: datetime) -> Machine | None:
    """Give a lease that was ordered the id of the machine that carries its name, in the caller's transaction; return it.

    Of several (the provider made it twice) the first is taken; the others stay unknown and are shown as drift. One that is
    another lease's was only given the name.
    """
    by_id = {each.external_id: each for each in candidates}
    taken = Lease.objects.filter(account=lease.account, external_id__in=by_id) if candidates else Lease.objects.none()
    known = {each.external_id for each in taken if not has_id_again(each, by_id[each.external_id])}
    machine = next((each for each in candidates if each.external_id not in known), None)
    if machine is None or lease.origin != LeaseOrigin.ORDERED:
        return None
    lease.external_id, lease.create_settled_at, lease.sealed_order = machine.external_id, at, ""
    lease.next_step_at = at
    lease.save(update_fields=["external_id", "create_settled_at", "sealed_order", "next_step_at"])
    return machine


def lease_miss(lease: Lease, provider: Provider, *, asked_at: datetime, at: datetime) -> None:
    """Count that the provider does not show a machine; twice in a row, past the time in which it must appear, it is gone."""
    if lease.ended_at is not None:
        return
    settled = lease.create_settled_at or lease.requested_at
    is_young = lease.observed_at is None and asked_at < settled + provider.appears_within
    if is_young or asked_at < settled:
        return
    lease.misses += 1
    lease.save(update_fields=["misses"])
    if lease.misses < MISSES_UNTIL_LOST:
        return
    lease_gone(lease, at=at)
    if lease.state == LeaseState.LOST:
        assert lease.account is not None  # noqa: S101 (only leases of accounts are looked for)
        drift_note(
            account=lease.account,
            kind=DriftKind.MISSING_AT_PROVIDER,
            external_id=lease.external_id,
            at=at,
            lease=lease,
            name=lease.name,
            expected={"state": "running"},
        )
