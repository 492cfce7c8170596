"""What is rented, for tests of its pages: an account of the simulated provider, offers, leases in several states."""

from datetime import timedelta
from decimal import Decimal

from fleet.models import BilledInterval, Drift, Lease, LeasePrice, Offer, ProviderAccount, Server
from fleet.services.accounts import account_create
from fleet.services.driving import lease_step, leases_due
from fleet.services.offers import offers_fetch
from fleet.services.ordering import order_place
from fleet.services.sync import account_sync, accounts_due
from panel.accounts.audit import Actor
from panel.core.clock import now

ACTOR = Actor.system("test")


def simulated(name="trial", **options):
    """An account at the simulated provider with its offers."""
    account = account_create(name=name, kind="simulated", credentials={}, actor=ACTOR, **options)
    offers_fetch(account_id=account.pk)
    return account


def ordered(account, name="trainer", key="h100-1-east"):
    """The operation of an order."""
    offer = Offer.objects.get(account=account, key=key)
    return order_place(account_id=account.pk, offer_id=offer.pk, server_name=name, actor=ACTOR).operation


def work():
    """Do what is due about leases and accounts, once."""
    for lease_id in leases_due(at=now()):
        lease_step(lease_id=lease_id)
    for account_id in accounts_due(at=now()):
        account_sync(account_id=account_id)


def running(account, name="trainer", **changes):
    """A lease that runs and is billed since ten hours ago, with its server."""
    lease = ordered(account, name).lease
    at = now() - timedelta(hours=10)
    values = {"state": "active", "external_id": f"sim-{lease.pk}", "requested_at": at, "started_at": at, **changes}
    Lease.objects.filter(pk=lease.pk).update(**values)
    LeasePrice.objects.filter(lease=lease).update(effective_from=at)
    BilledInterval.objects.create(lease=lease, mode="full", started_at=at)
    return Lease.objects.get(pk=lease.pk)


def unknown(account, **changes):
    """A machine in the account that the panel does not know."""
    at = now()
    values = {
        "kind": "unknown_at_provider",
        "external_id": "sim-900",
        "name": "forgotten-box",
        "found": {"gpu_model": "H100 SXM 80GB", "gpu_count": 8, "price_per_hour": "136.0", "currency": "CNY"},
        "cost_per_hour": Decimal(136),
        "currency": "CNY",
        "first_seen_at": at,
        "last_seen_at": at,
    }
    return Drift.objects.create(account=account, **{**values, **changes})


def everything():
    """One of each: account, offers, a running lease, one whose end is not confirmed, an operation, a difference."""
    account = simulated(monthly_budget=Decimal(1000))
    lease = running(account)
    asked = now() - timedelta(hours=1)
    stuck = running(account, "stuck", state="termination_unconfirmed", wanted="ended", termination_requested_at=asked)
    ProviderAccount.objects.filter(pk=account.pk).update(last_sync_at=now(), health="ok")
    drift = unknown(account)
    price = unknown(
        account, kind="price_differs", external_id=lease.external_id, name=lease.name, lease=lease,
        found={"price_per_hour": "18.5", "currency": "CNY"}, expected={"price_per_hour": "17.5", "currency": "CNY"},
    )  # fmt: skip
    return {
        "account": account,
        "lease": lease,
        "stuck": stuck,
        "drift": drift,
        "price": price,
        "offer": Offer.objects.get(account=account, key="h100-1-east"),
        "operation": lease.operations.get(),
        "server": Server.objects.get(name="trainer"),
    }
