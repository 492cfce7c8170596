"""One account against its provider: claim, ask without a transaction, compare, apply."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import F, Q

from fleet.enums import AccountHealth, DriftKind, DriftResolution, LeaseState, PriceComponent, Wanted
from fleet.leasing.lifecycle import MISSES_UNTIL_LOST, ask_again_after
from fleet.models import Drift, Lease, LeasePrice, ProviderAccount
from fleet.providers.base import Machine, MachineStatus, Provider
from fleet.providers.errors import AccessRefused, NotUnderstood, ProviderError
from fleet.reasons import Reason
from fleet.services.accounts import account_provider
from fleet.services.cleaning import clean_machine, clean_text
from fleet.services.drift import drift_note, drift_settle, lease_adopt, machine_check
from fleet.services.finding import has_id_again, lease_link, lease_miss
from fleet.services.leases import lease_observe, observed_facts
from panel.core import claims
from panel.core.clock import now
from panel.core.enums import Severity
from panel.core.events import event_write

SYNC_EVERY: Final = timedelta(minutes=1)
CLAIM_SECONDS: Final = 180.0

log = structlog.get_logger(__name__)


def accounts_due(*, at: datetime) -> list[int]:
    """Return the accounts whose turn to be synced it is, longest waiting first."""
    due = ProviderAccount.objects.filter(
        claims.unclaimed(at), removed_at=None, is_paused=False, next_sync_at__lte=at
    ).order_by("next_sync_at")
    return list(due.values_list("pk", flat=True))


def account_sync(*, account_id: int) -> bool:
    """Compare one account with its provider; return whether the provider could be asked. Does nothing when another does."""
    token = claims.claim(ProviderAccount.objects.filter(removed_at=None), account_id, seconds=CLAIM_SECONDS)
    if token is None:
        return False
    account = ProviderAccount.objects.get(pk=account_id)
    try:
        provider = account_provider(account)
        if not provider.is_synced:
            _sync_not_needed(account, token)
            return True
        asked_at = now()
        machines = [clean_machine(machine) for machine in provider.machines()]
        machines += _left_out(account, provider, machines)
        _apply(account, token, provider, machines, asked_at)
    except ProviderError as error:
        _sync_failed(account, token, error)
        return False
    except Exception as error:
        # Also the task's time limit: without a pause it would take a worker again and again, and look well all the while.
        _sync_failed(account, token, NotUnderstood(f"The answer could not be used ({type(error).__name__})."))
        raise
    except BaseException:
        claims.release(ProviderAccount, account_id, token)
        raise
    return True


def _left_out(account: ProviderAccount, provider: Provider, machines: Sequence[Machine]) -> list[Machine]:
    """Ask by its id for each machine that would now count as lost; return those that a listing just does not show."""
    missed = Lease.objects.filter(account=account, ended_at=None, misses__gte=MISSES_UNTIL_LOST - 1)
    ids = set(missed.exclude(external_id="").values_list("external_id", flat=True))
    ids -= {machine.external_id for machine in machines}
    found = (provider.machine(external_id) for external_id in sorted(ids))
    return [clean_machine(machine) for machine in found if machine is not None]


def _sync_not_needed(account: ProviderAccount, token: UUID) -> None:
    at = now()
    ProviderAccount.objects.filter(pk=account.pk, claim=token).update(
        claim=None, claimed_until=None, health=AccountHealth.OK, last_sync_at=at, next_sync_at=at + timedelta(days=1)
    )


def _sync_failed(account: ProviderAccount, token: UUID, error: ProviderError) -> None:
    """Keep what went wrong, ask again later and later, tell once when the health changes."""
    at = now()
    health = AccountHealth.REFUSED if isinstance(error, AccessRefused) else AccountHealth.FAILING
    pause = max(ask_again_after(account.failures + 1), timedelta(seconds=error.retry_after_seconds or 0))
    with transaction.atomic():
        done = ProviderAccount.objects.filter(pk=account.pk, claim=token).update(
            claim=None,
            claimed_until=None,
            last_attempt_at=at,
            last_error=error.facts(),
            last_error_at=at,
            failures=F("failures") + 1,
            health=health,
            health_reason=error.reason,
            next_sync_at=at + pause,
        )
        if done:
            _tell_health(account, health, error.reason, error.message)
    log.warning("account.sync_failed", account_id=account.pk, reason=str(error.reason), error=error.message)


def _tell_health(account: ProviderAccount, health: AccountHealth, reason: Reason, words: str = "") -> None:
    if account.health == health:
        return
    event_write(
        kind="account.health_changed",
        severity=Severity.INFO if health == AccountHealth.OK else Severity.WARNING,
        subject_kind="account",
        subject_id=account.pk,
        subject_name=account.name,
        data={"from": str(account.health), "to": str(health), "reason": str(reason), "detail": words},
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """What a complete listing showed, by external id and by name."""

    by_id: dict[str, Machine]
    by_name: dict[str, list[Machine]]

    @classmethod
    def of(cls, machines: Sequence[Machine]) -> "_Found":
        by_name: dict[str, list[Machine]] = {}
        for machine in machines:
            by_name.setdefault(machine.name, []).append(machine)
        return cls({machine.external_id: machine for machine in machines}, by_name)


def _apply(
    account: ProviderAccount, token: UUID, provider: Provider, machines: Sequence[Machine], asked_at: datetime
) -> None:
    """Apply a complete listing that was asked for at `asked_at`."""
    present = [machine for machine in machines if machine.status != MachineStatus.GONE]
    with transaction.atomic():
        ours = ProviderAccount.objects.select_for_update(no_key=True).filter(pk=account.pk, claim=token)
        if ours.first() is None:
            return
        at = now()
        found = _Found.of(present)
        known = _leases_that_matter(account, found)
        prices = _prices_in_force(known, at)
        quiet = {lease.pk for lease in known if _is_as_before(lease, found, prices.get(lease.pk))}
        Lease.objects.filter(pk__in=quiet).update(observed_at=at)
        Drift.objects.filter(lease__in=quiet, resolved_at=None).update(last_seen_at=at)
        for lease in known:
            if lease.pk not in quiet:
                _apply_to_lease(lease, found, provider, asked_at, at)
        ids = {lease.external_id for lease in known}
        unknown = [machine for external_id, machine in found.by_id.items() if external_id not in ids]
        for machine in unknown:
            _apply_unknown(account, machine, at)
        _settle_vanished(account, {machine.external_id for machine in unknown}, at)
        _tell_health(account, AccountHealth.OK, Reason.NONE)
        ProviderAccount.objects.filter(pk=account.pk).update(
            claim=None,
            claimed_until=None,
            health=AccountHealth.OK,
            health_reason=Reason.NONE,
            failures=0,
            last_error={},
            last_attempt_at=at,
            last_sync_at=at,
            next_sync_at=asked_at + SYNC_EVERY,
        )


def _leases_that_matter(account: ProviderAccount, found: _Found) -> list[Lease]:
    """Return, locked, the open leases and those thought over whose machine is there all the same: of an id the last one."""
    wanted = Q(ended_at=None) | Q(external_id__in=found.by_id) | Q(external_id="", name__in=found.by_name)
    rows = (
        Lease.objects.select_for_update(of=("self",))
        .select_related("account", "server__agent")
        .filter(wanted, account=account)
        .order_by("pk")
    )
    known: dict[str, Lease] = {}
    for lease in rows:
        machine = found.by_id.get(lease.external_id)
        if machine is None or not has_id_again(lease, machine):
            known[lease.external_id or f"lease {lease.pk}"] = lease
    return list(known.values())


def _prices_in_force(leases: Sequence[Lease], at: datetime) -> dict[int, LeasePrice]:
    rows = LeasePrice.objects.in_force(at).filter(lease__in=leases, component=PriceComponent.COMPUTE)
    return {row.lease_id: row for row in rows}


def _is_as_before(lease: Lease, found: _Found, price: LeasePrice | None) -> bool:
    """Say whether the provider says of a settled machine just what it said before, so that nothing follows from it."""
    machine = found.by_id.get(lease.external_id)
    if machine is None or lease.observed_at is None or lease.ended_at is not None or lease.misses:
        return False
    is_settled = lease.wanted != Wanted.ENDED and lease.state != LeaseState.BOOTING
    is_price_old = price is None or max(price.noted_at, price.effective_from) <= lease.observed_at
    told = (machine.status, clean_text(machine.raw_status, 100), observed_facts(machine), machine.renews_at)
    kept = (lease.status, lease.raw_status, lease.observed, lease.renews_at or machine.renews_at)
    return is_settled and is_price_old and told == kept


def _apply_to_lease(lease: Lease, found: _Found, provider: Provider, asked_at: datetime, at: datetime) -> None:
    if not lease.external_id:
        lease_link(lease, found.by_name.get(lease.name, ()), at=at)
        if not lease.external_id:
            return  # the order is on its way, or the machine never came to be; fleet.services.orders settles which
    elif lease.ended_at is not None and lease.ended_at > asked_at:
        return  # the listing is older than the end
    machine = found.by_id.get(lease.external_id)
    if machine is not None:
        lease_observe(lease, machine, at=at)
        machine_check(lease, machine, at=at)
        return
    lease_miss(lease, provider, asked_at=asked_at, at=at)


def _is_paid_elsewhere(account: ProviderAccount, machine: Machine) -> bool:
    """Say whether another account has this machine: then it is the same login, and its bill would count twice."""
    same = Lease.objects.filter(external_id=machine.external_id, ended_at=None, account__kind=account.kind)
    return same.exclude(account=account).exists()


def _apply_unknown(account: ProviderAccount, machine: Machine, at: datetime) -> None:
    if machine.status == MachineStatus.TERMINATING:
        return
    if account.is_adopting and not _is_paid_elsewhere(account, machine):
        lease_adopt(account, machine, at=at, by="sync")
        return
    drift_note(
        account=account,
        kind=DriftKind.UNKNOWN_AT_PROVIDER,
        external_id=machine.external_id,
        at=at,
        name=machine.name,
        found={**observed_facts(machine), "status": str(machine.status), "raw_status": machine.raw_status},
        price=machine.price_per_hour,
    )


def _settle_vanished(account: ProviderAccount, unknown: set[str], at: datetime) -> None:
    """Settle unknown machines that are not there any more, or are known by now, and what differed on machines that are gone."""
    is_unknown = Q(kind=DriftKind.UNKNOWN_AT_PROVIDER) & ~Q(external_id__in=unknown)
    is_over = Q(kind__in=(DriftKind.SPEC_DIFFERS, DriftKind.PRICE_DIFFERS), lease__ended_at__isnull=False)
    gone = Drift.objects.filter(is_unknown | is_over, account=account, resolved_at=None)
    drift_settle(list(gone), DriftResolution.GONE, at)
