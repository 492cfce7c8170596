"""A key of another login never replaces one while leases are open: all of them would be taken for gone."""

import pytest

from fleet.enums import LeaseState
from fleet.models import Lease
from fleet.providers.aliyun.adapter import Aliyun
from fleet.providers.base import AccountCheck
from fleet.providers.tencent.adapter import Tencent
from fleet.services.accounts import account_update
from panel.core.errors import Conflict
from tests.fakes.runpod import FakeRunPod
from tests.leasing.conftest import ACTOR, fresh, only_lease


@pytest.fixture
def other(monkeypatch):
    """Another login at the same vendor, which answers to its own key."""
    fake = FakeRunPod()
    fake.credentials = {"api_key": "rpa_9876543210OTHER"}
    return fake


@pytest.fixture
def switch(monkeypatch, vendor, other):
    """Let each key reach its own login."""
    import httpx

    def answer(request):
        token = request.headers.get("authorization", "")
        return (other if "OTHER" in token else vendor)._handle(request)

    monkeypatch.setattr("fleet.providers.registry.transport_for", lambda kind: httpx.MockTransport(answer))


def named(monkeypatch, identity):
    """Let the provider say whose key it is."""
    monkeypatch.setattr("fleet.providers.runpod.adapter.RunPod.check", lambda self: AccountCheck(identity=identity))


def leased(rounds, account):
    rounds.order(account)
    rounds.step()
    rounds.vendor.advance()
    rounds.sync()
    return only_lease()


def test_a_key_of_another_login_is_refused_while_leases_are_open(rounds, account, switch, other):
    lease = leased(rounds, account)
    before = fresh(account).credentials
    with pytest.raises(Conflict) as refused:
        account_update(account_id=account.pk, actor=ACTOR, credentials=other.credentials)
    assert refused.value.code == "login_not_shown"
    assert "another account" in refused.value.message
    assert fresh(account).credentials == before
    rounds.run(minutes=4)
    assert fresh(lease).state != LeaseState.LOST


def test_a_person_may_confirm_where_the_provider_names_nobody(rounds, account, switch, other):
    leased(rounds, account)
    account_update(account_id=account.pk, actor=ACTOR, credentials=other.credentials, is_same_login=True)
    assert "OTHER" in fresh(account).credentials


def test_another_key_that_shows_the_same_machines_is_taken(rounds, account, switch, other, vendor):
    leased(rounds, account)
    other.machines = vendor.machines
    account_update(account_id=account.pk, actor=ACTOR, credentials=other.credentials)
    assert "OTHER" in fresh(account).credentials


def test_another_login_that_the_provider_names_cannot_be_confirmed_away(rounds, monkeypatch, vendor):
    named(monkeypatch, "ada@example.org")
    account = rounds.account()
    leased(rounds, account)
    named(monkeypatch, "bob@example.org")
    with pytest.raises(Conflict) as refused:
        account_update(account_id=account.pk, actor=ACTOR, credentials=vendor.credentials, is_same_login=True)
    assert refused.value.code == "another_login"
    assert "bob@example.org" in refused.value.message
    assert "ada@example.org" in refused.value.message


def test_without_open_leases_any_key_is_taken(rounds, account, switch, other):
    leased(rounds, account)
    Lease.objects.update(ended_at=only_lease().requested_at, state=LeaseState.TERMINATED)
    account_update(account_id=account.pk, actor=ACTOR, credentials=other.credentials)
    assert "OTHER" in fresh(account).credentials


@pytest.mark.parametrize(
    ("provider", "first", "second", "stranger"),
    [
        (
            Aliyun,
            "acs:ram::1234567890123456:user/panel",
            "acs:sts::1234567890123456:assumed-role/fleet/x",
            "acs:ram::6543210987654321:user/panel",
        ),
        (
            Tencent,
            "qcs::cam::uin/100000000001:uin/100000000002",
            "qcs::cam::uin/100000000001:uin/100000000003",
            "qcs::cam::uin/100000000009:uin/100000000002",
        ),
    ],
)
def test_two_users_of_one_cloud_account_are_one_login(provider, first, second, stranger):
    assert provider.login_of(first) == provider.login_of(second)
    assert provider.login_of(first) != provider.login_of(stranger)
