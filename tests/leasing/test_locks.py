"""Who locks what, in which order, and what is another's is left alone."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.enums import DriftKind, PriceComponent, PriceUnit, ServerState
from fleet.models import Drift, Lease, Server
from fleet.providers.base import Billing
from fleet.services.accounts import account_create, account_remove
from fleet.services.contracts import PricePart, lease_type_in
from fleet.services.drift_actions import drift_accept
from fleet.services.sync import account_sync
from panel.core.clock import now
from panel.core.errors import InvalidInput, NotFound
from panel.core.money import Money
from tests.leasing.conftest import ACTOR, START, only_lease


def locked_tables(work):
    """Return the tables whose rows a piece of work locked one after another."""
    with CaptureQueriesContext(
        connection,
    ) as seen:
        work()
    locking = [query["sql"] for query in seen if "FOR UPDATE" in query["sql"] or "FOR NO KEY UPDATE" in query["sql"]]
    return [sql.partition(' FROM "')[2].partition('"')[0] for sql in locking]


def test_accepting_a_difference_locks_the_lease_first_as_the_sync_does(rounds, account, vendor):
    rounds.order(account)
    rounds.step()
    vendor.advance()
    rounds.sync()
    Lease.objects.update(spec={**only_lease().spec, "gpu_count": 8})
    rounds.pass_time(61)
    synced = locked_tables(lambda: account_sync(account_id=account.pk))
    assert synced[:2] == ["fleet_provideraccount", "fleet_lease"]
    assert "fleet_drift" not in synced[: synced.index("fleet_lease")]
    drift = Drift.objects.get(kind=DriftKind.SPEC_DIFFERS)
    with CaptureQueriesContext(connection) as seen:
        drift_accept(drift_id=drift.pk, actor=ACTOR)
    locking = [query["sql"] for query in seen if "FOR UPDATE" in query["sql"]]
    accepted = [sql.partition(' FROM "')[2].partition('"')[0] for sql in locking]
    # The account, which the sync locks before the lease, is joined and not locked.
    assert all(sql.endswith('OF "fleet_drift"') for sql in locking if "fleet_provideraccount" in sql)
    assert accepted.index("fleet_lease") < accepted.index("fleet_drift")


def test_an_order_that_fails_takes_along_the_server_that_it_made_alone(rounds, account, vendor):
    at = now()
    waiting = Server.objects.create(
        name="waits to be joined", state=ServerState.PENDING, state_changed_at=at, created_at=at
    )
    rounds.order(account, server_id=waiting.pk)
    vendor.has_capacity = False
    rounds.step()
    assert only_lease().ended_at is not None
    assert Server.objects.get() == waiting
    rounds.order(account, name="made for it")
    assert Server.objects.count() == 2
    rounds.step()
    assert Server.objects.get() == waiting


def typed(account):
    part = PricePart(component=PriceComponent.COMPUTE, price=Money(Decimal(1), "CNY"), unit=PriceUnit.HOUR)
    return lease_type_in(
        name="rack",
        billing=Billing.MONTHLY,
        prices=[part],
        started_at=START - timedelta(days=1),
        actor=ACTOR,
        account=account,
    )


def test_a_contract_is_typed_in_for_accounts_without_an_api_alone(rounds, account):
    with pytest.raises(InvalidInput) as refused:
        typed(account)
    assert refused.value.field == "account"
    landlord = account_create(name="landlord", kind="static", credentials={}, actor=ACTOR)
    assert typed(landlord).account == landlord


def test_a_contract_is_not_typed_in_for_an_account_that_was_removed_meanwhile(rounds):
    landlord = account_create(name="landlord", kind="static", credentials={}, actor=ACTOR)
    account_remove(account_id=landlord.pk, actor=ACTOR)
    with pytest.raises(NotFound):
        typed(landlord)
    assert not Lease.objects.exists()
