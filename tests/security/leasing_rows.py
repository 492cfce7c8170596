"""One row of everything that is billed, at the simulated provider, so that no request of a test leaves the machine."""

from datetime import timedelta
from decimal import Decimal

from fleet.models import (
    Drift,
    ExchangeRate,
    Lease,
    LeasePrice,
    Offer,
    Operation,
    ProviderAccount,
    SimulatedMachine,
)
from panel.core.clock import now

DRIFTED = 1  # added to the row's id: the machine of the difference


def leasing_rows(row):
    """Make the rows, each with the id `row`."""
    at = now()
    account = ProviderAccount.objects.create(
        pk=row, name="rented", kind="simulated", currency="CNY", next_sync_at=at, created_at=at, health="ok"
    )
    Offer.objects.create(
        pk=row,
        account=account,
        key="4090-1-north",
        gpu_model="RTX 4090 24GB",
        gpu_count=1,
        billing="hourly",
        currency="CNY",
        price_per_hour=Decimal("1.98"),
        fetched_at=at,
    )
    lease = Lease.objects.create(
        pk=row,
        account=account,
        name=f"fleetdeck-test-{row}",
        external_id=f"sim-{row}",
        origin="ordered",
        state="active",
        state_changed_at=at,
        billing="hourly",
        requested_at=at - timedelta(hours=3),
    )
    LeasePrice.objects.create(
        lease=lease,
        amount=Decimal("1.98"),
        currency="CNY",
        unit="hour",
        effective_from=at - timedelta(hours=3),
        source="offer",
        noted_at=at,
    )
    for pk in (row, row + DRIFTED):
        SimulatedMachine.objects.create(
            pk=pk,
            world=f"account-{row}",
            name=f"box-{pk}",
            client_token=f"box-{pk}",
            offer_key="4090-1-north",
            created_at=at,
            running_from=at,
        )
    Operation.objects.create(
        pk=row, kind="reboot", account=account, lease=lease, actor_kind="system", actor_name="test", created_at=at,
        ended_at=at, state="succeeded",
    )  # fmt: skip
    Drift.objects.create(
        pk=row,
        account=account,
        kind="unknown_at_provider",
        external_id=f"sim-{row + DRIFTED}",
        first_seen_at=at,
        last_seen_at=at,
    )
    ExchangeRate.objects.create(
        pk=row, base="USD", quote="CNY", rate=Decimal("7.1"), effective_on=at.date(), entered_at=at
    )


LEASING_WRITES = {
    "post account-list": ({"name": "trial", "kind": "simulated"}, "account.create"),
    "patch account-detail": ({"is_adopting": True}, "account.update"),
    "delete account-detail": ({}, "account.remove"),
    "post account-sync": ({}, "account.sync"),
    "post order-list": ({"account": "ROW", "offer": "ROW", "name": "box"}, "lease.order"),
    "post lease-list": (
        {
            "name": "rack 7",
            "billing": "monthly",
            "started_at": "2026-01-01T00:00:00Z",
            "prices": [{"amount": "9000", "currency": "CNY", "unit": "month"}],
        },
        "lease.type_in",
    ),
    "patch lease-detail": ({"notes": "by the window"}, "lease.update"),
    "post lease-start": ({}, "lease.start"),
    "post lease-stop": ({}, "lease.stop"),
    "post lease-reboot": ({}, "lease.reboot"),
    "post lease-snapshot": ({}, "lease.snapshot"),
    "post lease-terminate": ({}, "lease.terminate"),
    "post lease-close": ({}, "lease.close"),
    "post lease-attach": ({"server": "ROW"}, "lease.attach"),
    "post drift-adopt": ({}, "drift.adopt"),
    "post drift-end": ({}, "drift.end"),
    "post drift-accept": ({}, "drift.accept"),
    "post drift-ignore": ({}, "drift.ignore"),
    "post exchange-rate-list": (
        {"base": "USD", "quote": "CNY", "rate": "7.2", "effective_on": "2026-11-01"},
        "rate.enter",
    ),
    "delete exchange-rate-detail": ({}, "rate.remove"),
}


def prepare_leasing(write, row):
    """Bring about what the write needs; return what its body needs beside."""
    lease = Lease.objects.filter(pk=row)
    if write == "delete account-detail":
        lease.update(ended_at=now(), state="terminated")
    if write == "post lease-snapshot":
        ProviderAccount.objects.filter(pk=row).update(kind="autodl")  # nothing is sent: the next step would do that
    if write == "post lease-close":
        lease.update(origin="typed")
        return {"ended_at": now().isoformat()}
    if write == "post drift-accept":
        Drift.objects.filter(pk=row).update(
            kind="price_differs", lease=row, found={"price_per_hour": "2.5", "currency": "CNY"}
        )
    if write == "post drift-ignore":
        return {"until": (now() + timedelta(days=7)).isoformat()}
    return {}
