"""What pages hear of leases, operations and differences after a commit. Topics: `leases` (all), `operation.<id>`, `drift`."""

from typing import Any

from fleet.models import Drift, Lease, Operation
from fleet.selectors.live import iso
from panel.core.live import publish_later


def lease_live(lease: Lease) -> dict[str, Any]:
    """Return a lease as it stands in live frames."""
    return {
        "id": lease.pk,
        "name": lease.name,
        "account_id": lease.account_id,
        "server_id": lease.server_id,
        "state": str(lease.state),
        "state_reason": str(lease.state_reason),
        "state_detail": lease.state_detail,
        "wanted": str(lease.wanted),
        "raw_status": lease.raw_status,
        "observed_at": iso(lease.observed_at),
        "ended_at": iso(lease.ended_at),
    }


def operation_live(operation: Operation) -> dict[str, Any]:
    """Return an operation as it stands in live frames."""
    return {
        "id": operation.pk,
        "kind": str(operation.kind),
        "state": str(operation.state),
        "reason": str(operation.reason),
        "detail": operation.detail,
        "steps": operation.steps,
        "lease_id": operation.lease_id,
        "created_at": iso(operation.created_at),
        "ended_at": iso(operation.ended_at),
    }


def tell_lease(lease: Lease) -> None:
    """Publish the lease as it is now, once the transaction commits; a later word of the same transaction replaces it."""
    publish_later("leases", {"leases": {str(lease.pk): lease_live(lease)}})


def tell_operation(operation: Operation) -> None:
    """Publish the operation as it is now, once the transaction commits, to its own page and to the list."""
    entry = {"operations": {str(operation.pk): operation_live(operation)}}
    publish_later(f"operation.{operation.pk}", entry)
    publish_later("leases", entry)


def drift_live(drift: Drift) -> dict[str, Any]:
    """Return a difference as it stands in live frames; amounts as text, since they are decimal."""
    return {
        "id": drift.pk,
        "kind": str(drift.kind),
        "account_id": drift.account_id,
        "lease_id": drift.lease_id,
        "external_id": drift.external_id,
        "name": drift.name,
        "cost_per_hour": str(drift.cost_per_hour) if drift.cost_per_hour is not None else None,
        "currency": drift.currency,
        "first_seen_at": iso(drift.first_seen_at),
        "ignored_until": iso(drift.ignored_until),
        "resolved_at": iso(drift.resolved_at),
        "resolution": str(drift.resolution),
    }


def tell_drift(drift: Drift) -> None:
    """Publish a difference that is new, changed or settled, once the transaction commits."""
    publish_later("drift", {"drifts": {str(drift.pk): drift_live(drift)}})
