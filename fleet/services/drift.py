"""Where panel and provider differ, as rows; machines that were found are taken on here."""

from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from fleet.enums import BilledMode, DriftKind, DriftResolution, LeaseOrigin, LeaseState, PriceComponent, Wanted
from fleet.leasing.lifecycle import Life, state_after_status
from fleet.models import BilledInterval, Drift, Lease, LeasePrice, ProviderAccount
from fleet.providers.base import Billing, Machine, MachineStatus
from fleet.providers.gpu_models import is_same_model
from fleet.reasons import Reason
from fleet.services.cleaning import clean_text
from fleet.services.leases import bill, observed_facts, price_new, price_set
from fleet.services.telling_leases import tell_drift, tell_lease
from panel.core.enums import Severity
from panel.core.events import event_write
from panel.core.money import Money

PRICE_TOLERANCE: Final = Decimal("0.005")


def drift_note(
    *,
    account: ProviderAccount,
    kind: DriftKind,
    external_id: str,
    at: datetime,
    lease: Lease | None = None,
    name: str = "",
    found: dict[str, Any] | None = None,
    expected: dict[str, Any] | None = None,
    price: Money | None = None,
) -> Drift:
    """Open a difference, or see an open one again. In the caller's transaction."""
    facts: dict[str, Any] = {"lease": lease, "name": name[:200], "found": found or {}, "expected": expected or {}}
    facts |= {
        "last_seen_at": at,
        "cost_per_hour": price.rounded().amount if price else None,
        "currency": price.currency if price else "",
    }
    drift, is_new = Drift.objects.get_or_create(
        account=account,
        kind=kind,
        external_id=external_id,
        resolved_at=None,
        defaults={**facts, "first_seen_at": at},
    )
    if is_new:
        told = {"kind": str(kind), "external_id": external_id, "drift_id": drift.pk}
        event_write(
            kind="drift.found",
            severity=Severity.WARNING,
            subject_kind="account",
            subject_id=account.pk,
            subject_name=account.name,
            server_id=lease.server_id if lease else None,
            data={**told, "name": lease.title if lease else name},
        )
        tell_drift(drift)
        return drift
    before = [getattr(drift, field) for field in facts if field != "last_seen_at"]
    for field, value in facts.items():
        setattr(drift, field, value)
    drift.save(update_fields=list(facts))
    if before != [getattr(drift, field) for field in facts if field != "last_seen_at"]:
        tell_drift(drift)
    return drift


def drift_settle(drifts: list[Drift], resolution: DriftResolution, at: datetime) -> None:
    """Close differences, in the caller's transaction."""
    for drift in drifts:
        drift.resolved_at, drift.resolution = at, resolution
        drift.save(update_fields=["resolved_at", "resolution"])
        tell_drift(drift)


def spec_differences(lease: Lease, machine: Machine) -> dict[str, tuple[Any, Any]]:
    """Return what is not as ordered, name → (ordered, found); what either side does not tell is no difference. Pure."""
    spec = lease.spec
    differences: dict[str, tuple[Any, Any]] = {}
    if spec.get("gpu_model") and machine.gpu_model and not is_same_model(spec["gpu_model"], machine.gpu_model):
        differences["gpu_model"] = (spec["gpu_model"], machine.gpu_model)
    for name in ("gpu_count", "region"):
        ordered, found = spec.get(name), getattr(machine, name)
        if ordered and found and ordered != found:
            differences[name] = (ordered, found)
    return differences


def price_difference(machine: Machine, in_force: LeasePrice | None) -> Money | None:
    """Return the price that the provider bills when it is not the one in force; None when they agree or one is unknown."""
    told = machine.price_per_hour
    if told is None or in_force is None or in_force.unit != "hour" or machine.status != MachineStatus.RUNNING:
        return None
    if in_force.currency == told.currency and abs(told.amount - in_force.amount) <= in_force.amount * PRICE_TOLERANCE:
        return None
    return told


def machine_check(lease: Lease, machine: Machine, *, at: datetime) -> None:
    """Note or settle the differences of one known machine, in the caller's transaction; a spot price just moves on."""
    assert lease.account is not None  # noqa: S101 (only machines of accounts are seen)
    is_floating = lease.billing == Billing.SPOT
    in_force = LeasePrice.objects.in_force(at).filter(lease=lease, component=PriceComponent.COMPUTE).first()
    if machine.price_per_hour is not None and (in_force is None or is_floating):
        start = lease.requested_at if in_force is None else at
        price_set(lease, machine.price_per_hour, at=start, source="provider")
        in_force = None
    if machine.price_stopped_per_hour is not None:
        price_set(lease, machine.price_stopped_per_hour, at=at, source="provider", component=PriceComponent.STOPPED)
    found: dict[DriftKind, tuple[dict[str, Any], dict[str, Any]]] = {}
    # Of a machine that is being ended nobody has to decide what it should be.
    if lease.wanted != Wanted.ENDED and (differences := spec_differences(lease, machine)):
        found[DriftKind.SPEC_DIFFERS] = (
            {name: pair[1] for name, pair in differences.items()},
            {name: pair[0] for name, pair in differences.items()},
        )
    if (told := price_difference(machine, in_force)) is not None and in_force is not None:
        found[DriftKind.PRICE_DIFFERS] = (
            {"price_per_hour": str(told.amount), "currency": told.currency},
            {"price_per_hour": str(in_force.amount), "currency": in_force.currency},
        )
    for kind, (seen, expected) in found.items():
        drift_note(
            account=lease.account,
            kind=kind,
            external_id=lease.external_id,
            at=at,
            lease=lease,
            name=lease.name,
            found=seen,
            expected=expected,
            price=machine.price_per_hour,
        )
    gone = [kind for kind in DriftKind.values if kind != DriftKind.UNKNOWN_AT_PROVIDER and kind not in found]
    stale = Drift.objects.filter(lease=lease, external_id=lease.external_id, kind__in=gone, resolved_at=None)
    drift_settle(list(stale), DriftResolution.GONE, at)


def lease_adopt(
    account: ProviderAccount, machine: Machine, *, at: datetime, wanted: Wanted = Wanted.RUNNING, by: str
) -> Lease:
    """Take on a machine that was found in an account, in the caller's transaction.

    It is billed since it was made, as far as the provider tells when that was, and in full: what it did before is not told.
    """
    is_ending, made_at = wanted == Wanted.ENDED, min(machine.created_at or at, at)
    life = Life(state=LeaseState.REQUESTED, wanted=wanted, ending_since=at if is_ending else None)
    state, reason = state_after_status(life, machine.status, at)
    facts = observed_facts(machine)
    lease = Lease(
        account=account,
        name=machine.name or machine.external_id,
        external_id=machine.external_id,
        origin=LeaseOrigin.FOUND,
        wanted=wanted,
        state=state,
        state_reason=reason or Reason.ADOPTED,
        state_changed_at=at,
        status=machine.status,
        raw_status=clean_text(machine.raw_status, 100),
        observed=facts,
        observed_at=at,
        is_stop_saving=machine.is_stop_saving,
        spec={name: facts[name] for name in ("gpu_model", "gpu_count", "region") if facts.get(name)},
        region=machine.region[:64],
        billing=machine.billing,
        renews_at=machine.renews_at,
        requested_at=made_at,
        create_settled_at=at,
        started_at=made_at if machine.status == MachineStatus.RUNNING else None,
        termination_requested_at=at if is_ending else None,
        next_step_at=at if is_ending else None,
    )
    lease.save()
    BilledInterval.objects.create(lease=lease, mode=BilledMode.FULL, started_at=made_at)
    if state != LeaseState.ACTIVE:
        bill(lease, at, is_confirmed=True)
    for price, component in (
        (machine.price_per_hour, PriceComponent.COMPUTE),
        (machine.price_stopped_per_hour, PriceComponent.STOPPED),
    ):
        if price is not None:
            price_new(lease, price, at=made_at, source="provider", component=component)
    event_write(
        kind="lease.adopted",
        subject_kind="lease",
        subject_id=lease.pk,
        subject_name=lease.title,
        data={"external_id": machine.external_id, "account": account.name, "state": str(state), "by": by},
    )
    tell_lease(lease)
    return lease
