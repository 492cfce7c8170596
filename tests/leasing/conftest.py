"""An account at a fake provider, and the panel's rounds driven by hand."""

from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from fleet.models import Lease, Offer, ProviderAccount
from fleet.services.accounts import account_create
from fleet.services.driving import lease_step, leases_due
from fleet.services.offers import offers_fetch
from fleet.services.ordering import order_place
from fleet.services.sync import account_sync, accounts_due
from panel.accounts.audit import Actor
from panel.core.clock import now
from tests.fakes.runpod import FakeRunPod

START = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
ACTOR = Actor.system("test")


class Rounds:
    """The panel against one fake provider; time moves only here."""

    def __init__(self, vendor, traveller):
        self.vendor = vendor
        self._traveller = traveller

    def account(self, **options):
        """Add the fake's account."""
        return account_create(
            name=options.pop("name", "rented"),
            kind=self.vendor.kind,
            credentials=self.vendor.credentials,
            actor=ACTOR,
            **options,
        )

    def order(self, account, name="trainer", **options):
        """Fetch the offers and order the first one that has a price."""
        offers_fetch(account_id=account.pk)
        offer = Offer.objects.filter(account=account, price_per_hour__isnull=False).order_by("pk").first()
        placed = order_place(
            account_id=account.pk,
            offer_id=offer.pk,
            server_name=name,
            actor=ACTOR,
            options=self.vendor.order_options,
            url="https://panel.example",
            **options,
        )
        return placed.operation

    def pass_time(self, seconds):
        """Move the clock."""
        self._traveller.shift(timedelta(seconds=seconds))

    def step(self):
        """Do what is due about leases."""
        for lease_id in leases_due(at=now()):
            lease_step(lease_id=lease_id)

    def sync(self):
        """Do what is due about accounts."""
        for account_id in accounts_due(at=now()):
            account_sync(account_id=account_id)

    def run(self, minutes=1.0, every=10):
        """Let the panel work for so long: steps every ten seconds, syncs when due."""
        for _ in range(int(minutes * 60 / every)):
            self.step()
            self.sync()
            self.pass_time(every)
        self.step()


@pytest.fixture
def vendor(monkeypatch):
    """The fake provider behind the registry."""
    fake = FakeRunPod()
    monkeypatch.setattr("fleet.providers.registry.transport_for", lambda kind: fake.transport)
    monkeypatch.setattr("fleet.providers.http.Spacing.wait_for_turn", lambda *_: None)
    return fake


@pytest.fixture
def rounds(vendor, db):
    """The panel's rounds against it."""
    with time_machine.travel(START, tick=False) as traveller:
        yield Rounds(vendor, traveller)


@pytest.fixture
def account(rounds):
    """The fake's account."""
    return rounds.account()


def only_lease():
    """Return the one lease that there is."""
    return Lease.objects.get()


def fresh(row):
    """Return a row as it is now."""
    return type(row).objects.get(pk=row.pk)


__all__ = ["ACTOR", "ProviderAccount", "Rounds", "fresh", "only_lease"]
