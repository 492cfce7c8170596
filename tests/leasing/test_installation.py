"""One panel alone uses an installation's id; a copied database is noticed, orders nothing, and can take an id of its own."""

from io import StringIO

import pytest
from django.core.management import call_command

from fleet.enums import LeaseState
from fleet.models import Lease, ProviderAccount
from panel.core.health import CheckStatus
from panel.core.installation import install_id, is_copied
from panel.core.models import Installation
from panel.health.installation import installation_checks
from tests.leasing.conftest import fresh, only_lease


def told(code):
    [check] = [each for each in installation_checks() if each.code == code]
    return check


def copy_the_database():
    """Let the row say what it says in a copy: it is bound to the database that it was copied from."""
    install_id()
    Installation.objects.update(bound_to="7300000000000000000-5")


@pytest.mark.django_db
def test_an_id_belongs_to_its_database():
    name = install_id()
    assert not is_copied()
    assert Installation.objects.get().bound_to.count("-") == 1
    assert told("installation_copied").status == CheckStatus.OK
    copy_the_database()
    assert is_copied()
    assert install_id() == name


@pytest.mark.django_db
def test_an_id_from_before_is_bound_when_it_is_next_used():
    Installation.objects.create(pk=1, name="abcdefgh")
    assert not is_copied()
    assert install_id() == "abcdefgh"
    assert Installation.objects.get().bound_to != ""


@pytest.mark.django_db
def test_looking_at_self_health_draws_no_id():
    assert [check.status for check in installation_checks()] == [CheckStatus.OK, CheckStatus.OK]
    assert not Installation.objects.exists()


def test_a_copy_orders_nothing_until_somebody_decides(rounds, account, vendor):
    from panel.core.errors import Conflict

    rounds.order(account)
    copy_the_database()
    rounds.run(minutes=1)
    assert vendor.creates == 0
    with pytest.raises(Conflict) as refused:
        rounds.order(account, name="another")
    assert refused.value.code == "installation_copied"
    assert told("installation_copied").status == CheckStatus.WARNING
    assert "--new-id" in told("installation_copied").advice


def test_a_restored_database_keeps_its_id_and_goes_on(rounds, account, vendor):
    rounds.order(account)
    copy_the_database()
    before = install_id()
    call_command("installation", "--keep", stdout=StringIO())
    rounds.run(minutes=1)
    assert (install_id(), vendor.creates) == (before, 1)


def test_a_copy_takes_a_new_id_and_leaves_unsent_orders_to_the_other(rounds, account, vendor):
    rounds.order(account)
    rounds.step()
    sent = only_lease()
    rounds.order(account, name="unsent")
    copy_the_database()
    before, said = install_id(), StringIO()
    call_command("installation", "--new-id", stdout=said)
    assert install_id() != before
    assert before in said.getvalue()
    unsent = Lease.objects.exclude(pk=sent.pk).get()
    assert (unsent.state, unsent.ended_at is None) == (LeaseState.TERMINATED, False)
    assert fresh(sent).name == f"fleetdeck-{before}-{sent.pk}"
    assert ProviderAccount.objects.get().is_paused
    assert not is_copied()
    assert vendor.creates == 1


def test_machines_of_our_id_that_nobody_here_ordered_are_said_by_self_health(rounds, account, vendor):
    assert told("installation_strangers").status == CheckStatus.OK
    vendor.add(name=f"fleetdeck-{install_id()}-{10**6}")
    vendor.add(name="fleetdeck-another1-5")
    rounds.sync()
    check = told("installation_strangers")
    assert (check.status, check.number) == (CheckStatus.WARNING, 1)
    said = StringIO()
    call_command("installation", stdout=said)
    assert install_id() in said.getvalue()
    assert "1 machines" in said.getvalue()
