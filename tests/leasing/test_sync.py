"""An account against its provider: found, adopted or flagged; gone only when that is sure; one's trouble stays its own."""

from datetime import timedelta
from decimal import Decimal

import pytest

from fleet.enums import AccountHealth, DriftKind, DriftResolution, LeaseState, OperationKind
from fleet.models import BilledInterval, Drift, Lease, LeasePrice, ProviderAccount, Server
from fleet.providers.errors import NotUnderstood
from fleet.services.accounts import account_remove, account_update
from fleet.services.drift_actions import drift_accept, drift_adopt, drift_end, drift_ignore
from fleet.services.power import lease_act
from fleet.services.sync import account_sync
from panel.accounts.models import AuditEntry
from panel.core.clock import now
from panel.core.errors import Conflict, InvalidInput
from panel.core.models import Event
from tests.leasing.conftest import ACTOR, fresh, only_lease


def test_a_machine_that_is_not_ours_is_flagged_with_what_it_costs(rounds, account, vendor):
    there = vendor.add("somebody's box")
    rounds.sync()
    [drift] = Drift.objects.all()
    assert (drift.kind, drift.external_id) == (DriftKind.UNKNOWN_AT_PROVIDER, there.id)
    assert (drift.cost_per_hour, drift.currency) == (Decimal("0.44"), "USD")
    assert not Lease.objects.exists()
    assert Event.objects.filter(kind="drift.found").count() == 1
    rounds.run(minutes=2)
    assert Drift.objects.count() == 1


def test_it_is_adopted_with_its_bill_since_it_was_made(rounds, account, vendor):
    there = vendor.add("somebody's box")
    rounds.sync()
    lease = drift_adopt(drift_id=Drift.objects.get().pk, actor=ACTOR)
    assert (lease.state, lease.external_id) == (LeaseState.ACTIVE, there.id)
    assert BilledInterval.objects.get().started_at == there.created_at
    assert LeasePrice.objects.get().amount == Decimal("0.44")
    assert Drift.objects.get().resolution == DriftResolution.ADOPTED
    rounds.run(minutes=2)
    assert Drift.objects.filter(resolved_at=None).count() == 0


def test_ending_a_found_machine_keeps_it_in_sight_until_it_is_gone(rounds, account, vendor):
    vendor.add("somebody's box")
    rounds.sync()
    drift_end(drift_id=Drift.objects.get().pk, actor=ACTOR)
    assert only_lease().state == LeaseState.TERMINATING
    rounds.run(minutes=1)
    assert (only_lease().state, vendor.machines) == (LeaseState.TERMINATED, {})


def test_an_account_that_adopts_takes_on_what_it_finds(rounds, vendor):
    rounds.account(is_adopting=True)
    vendor.add("one")
    vendor.add("two")
    rounds.sync()
    assert set(Lease.objects.values_list("name", "state")) == {("one", "active"), ("two", "active")}
    assert not Drift.objects.exists()


def adopted(rounds, vendor):
    """Return the lease of a machine that was found."""
    vendor.add("box")
    rounds.sync()
    return drift_adopt(drift_id=Drift.objects.get().pk, actor=ACTOR)


def test_a_machine_that_vanishes_is_lost_after_two_complete_listings(rounds, account, vendor):
    lease = adopted(rounds, vendor)
    vendor.vanish(lease.external_id)
    rounds.pass_time(61)
    rounds.sync()
    assert fresh(lease).state == LeaseState.ACTIVE
    rounds.pass_time(61)
    rounds.sync()
    lease = fresh(lease)
    assert (lease.state, lease.state_reason) == (LeaseState.LOST, "provider_deleted")
    assert BilledInterval.objects.get().ended_at is not None
    drift = Drift.objects.get(kind=DriftKind.MISSING_AT_PROVIDER)
    drift_accept(drift_id=drift.pk, actor=ACTOR)
    assert fresh(drift).resolution == DriftResolution.ACCEPTED


def test_a_listing_that_fails_says_nothing_about_any_machine(rounds, account, vendor):
    lease = adopted(rounds, vendor)
    vendor.vanish(lease.external_id)
    vendor.down = 100
    rounds.run(minutes=10)
    assert fresh(lease).state == LeaseState.ACTIVE
    account = fresh(account)
    assert (account.health, account.health_reason) == (AccountHealth.FAILING, "provider_down")
    assert account.last_sync_at < account.last_attempt_at
    assert Event.objects.filter(kind="account.health_changed").count() == 1


def test_a_machine_that_comes_back_is_billed_again(rounds, account, vendor):
    lease = adopted(rounds, vendor)
    machine = vendor.machines.pop(lease.external_id)
    rounds.run(minutes=3)
    assert fresh(lease).ended_at is not None
    vendor.machines[machine.id] = machine
    rounds.run(minutes=2)
    lease = fresh(lease)
    assert (lease.state, lease.ended_at) == (LeaseState.ACTIVE, None)
    assert BilledInterval.objects.filter(lease=lease, ended_at=None).count() == 1
    assert Drift.objects.filter(resolved_at=None).count() == 0


def test_a_key_that_expires_is_told_with_the_next_step_and_replaced(rounds, account, vendor):
    vendor.is_key_valid = False
    rounds.sync()
    rounds.pass_time(61)
    account_sync(account_id=account.pk)
    assert fresh(account).health == AccountHealth.REFUSED
    with pytest.raises(InvalidInput) as refused:
        account_update(account_id=account.pk, actor=ACTOR, credentials={"api_key": "wrong"})
    assert refused.value.code == "auth_failed"
    vendor.is_key_valid = True
    account_update(account_id=account.pk, actor=ACTOR, credentials=vendor.credentials)
    rounds.sync()
    assert fresh(account).health == AccountHealth.OK


def test_a_secret_is_encrypted_and_in_no_record(rounds, account, vendor):
    from django.db import connection

    secret = vendor.credentials["api_key"]
    account_update(account_id=account.pk, actor=ACTOR, credentials=vendor.credentials)
    with connection.cursor() as cursor:
        cursor.execute("select credentials from fleet_provideraccount")
        assert secret not in cursor.fetchone()[0]
    shown = [f"{entry.before} {entry.after}" for entry in AuditEntry.objects.all()]
    assert shown
    assert not any(secret in text for text in shown)
    assert fresh(account).credential_hint == f"…{secret[-4:]}"


def test_an_account_with_open_leases_stays(rounds, account, vendor):
    lease = adopted(rounds, vendor)
    with pytest.raises(Conflict) as refused:
        account_remove(account_id=account.pk, actor=ACTOR)
    assert refused.value.code == "leases_open"
    lease_act(lease_id=lease.pk, kind=OperationKind.TERMINATE, actor=ACTOR)
    rounds.run(minutes=1)
    account_remove(account_id=account.pk, actor=ACTOR)
    account = fresh(account)
    assert (account.credentials, account.removed_at is not None) == ("", True)


def test_one_accounts_trouble_does_not_delay_another(rounds, account, vendor, monkeypatch):
    other = rounds.account(name="other")
    list_machines = type(vendor)._list

    def breaks_for_the_first(self):
        if ProviderAccount.objects.get(pk=account.pk).claim is not None:
            raise NotUnderstood("not today")
        return list_machines(self)

    monkeypatch.setattr(type(vendor), "_list", breaks_for_the_first)
    rounds.sync()
    assert fresh(account).health == AccountHealth.FAILING
    assert fresh(other).last_sync_at is not None


def test_a_price_that_moved_is_shown_and_accepted_from_when_it_was_seen(rounds, account, vendor):
    lease = adopted(rounds, vendor)
    vendor.machines[lease.external_id].gpu_count = 2
    rounds.pass_time(61)
    rounds.sync()
    kinds = set(Drift.objects.filter(resolved_at=None).values_list("kind", flat=True))
    assert kinds == {DriftKind.PRICE_DIFFERS, DriftKind.SPEC_DIFFERS}
    drift = Drift.objects.get(kind=DriftKind.PRICE_DIFFERS)
    assert drift.found["price_per_hour"] == "0.88"
    seen_at = drift.first_seen_at
    rounds.pass_time(3600)
    drift_accept(drift_id=drift.pk, actor=ACTOR)
    prices = list(LeasePrice.objects.order_by("effective_from").values_list("amount", "effective_from"))
    assert prices[1] == (Decimal("0.88"), seen_at)


def test_a_difference_is_ignored_until_its_time(rounds, account, vendor):
    vendor.add("box")
    rounds.sync()
    drift = Drift.objects.get()
    drift_ignore(drift_id=drift.pk, until=now() + timedelta(days=7), actor=ACTOR, reason="it is Ann's")
    assert fresh(drift).ignored_until is not None
    with pytest.raises(InvalidInput):
        drift_ignore(drift_id=drift.pk, until=now() - timedelta(days=1), actor=ACTOR)


def test_a_quiet_round_of_many_machines_costs_the_same_as_one_of_few(rounds, vendor, django_assert_max_num_queries):
    account = rounds.account(is_adopting=True)
    for number in range(50):
        vendor.add(f"box-{number}")
    rounds.sync()
    rounds.pass_time(61)
    with django_assert_max_num_queries(20):
        account_sync(account_id=account.pk)
    assert Lease.objects.filter(observed_at=now()).count() == 50


def test_guards_of_an_account_are_changed_and_recorded_as_text(rounds, account):
    account_update(account_id=account.pk, actor=ACTOR, monthly_budget=Decimal("1000.5"), is_paused=True)
    entry = AuditEntry.objects.filter(action="account.update").latest("pk")
    assert (entry.before["monthly_budget"], entry.after["monthly_budget"]) == (None, "1000.5")
    account = fresh(account)
    assert account.health == AccountHealth.PAUSED
    rounds.pass_time(120)
    rounds.sync()
    assert fresh(account).last_attempt_at == account.last_attempt_at
    account_update(account_id=account.pk, actor=ACTOR, is_paused=False)
    rounds.sync()
    assert fresh(account).health == AccountHealth.OK


def test_a_machine_that_is_not_what_was_ordered_is_ended_from_its_difference(rounds, account, vendor):
    lease = adopted(rounds, vendor)
    vendor.machines[lease.external_id].gpu_count = 2
    rounds.pass_time(61)
    rounds.sync()
    drift = Drift.objects.get(kind=DriftKind.SPEC_DIFFERS)
    ended = drift_end(drift_id=drift.pk, actor=ACTOR)
    assert (ended.pk, ended.wanted) == (lease.pk, "ended")
    assert fresh(drift).resolution == DriftResolution.ENDED
    rounds.run(minutes=3)
    assert (only_lease().state, vendor.machines) == (LeaseState.TERMINATED, {})
    assert not Drift.objects.filter(kind=DriftKind.SPEC_DIFFERS, resolved_at=None).exists()
    with pytest.raises(Conflict):
        drift_end(drift_id=drift.pk, actor=ACTOR)


def test_a_difference_of_a_known_machine_is_told_by_the_name_that_people_see(rounds, account, vendor):
    lease = adopted(rounds, vendor)
    Lease.objects.filter(pk=lease.pk).update(
        server=Server.objects.create(name="trainer", state="ready", state_changed_at=now(), created_at=now())
    )
    vendor.machines[lease.external_id].gpu_count = 2
    rounds.pass_time(61)
    rounds.sync()
    told = Event.objects.filter(kind="drift.found", data__kind="spec_differs").get()
    assert told.data["name"] == "trainer"


@pytest.mark.parametrize("how", ["ended", "vanished"])
def test_what_differed_on_a_machine_that_is_gone_waits_for_nobody(rounds, account, vendor, how):
    lease = adopted(rounds, vendor)
    vendor.machines[lease.external_id].gpu_count = 2
    rounds.pass_time(61)
    rounds.sync()
    assert Drift.objects.filter(resolved_at=None).count() == 2
    if how == "ended":
        lease_act(lease_id=lease.pk, kind=OperationKind.TERMINATE, actor=ACTOR)
    else:
        vendor.vanish(lease.external_id)
    rounds.run(minutes=8)
    assert only_lease().ended_at is not None
    waiting = set(Drift.objects.filter(resolved_at=None).values_list("kind", flat=True))
    assert waiting == (set() if how == "ended" else {DriftKind.MISSING_AT_PROVIDER})
