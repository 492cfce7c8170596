"""Machines of Lambda Cloud, Vast.ai and Verda from order to end, through the panel's own rounds."""

import json

import pytest

from fleet.enums import LeaseState, OperationKind, OperationState
from fleet.models import BilledInterval, Lease, Offer, Operation
from fleet.reasons import Reason
from fleet.services.offers import offers_fetch
from fleet.services.ordering import order_place
from fleet.services.power import lease_act
from tests.fakes.lambda_cloud import FakeLambda
from tests.fakes.vast import FakeVast
from tests.fakes.verda import FakeVerda
from tests.leasing.conftest import ACTOR, fresh, only_lease

VENDORS = (FakeLambda, FakeVast, FakeVerda)


def of(*vendors):
    """Run a test for these vendors."""
    return pytest.mark.parametrize("vendor", vendors, ids=[each.kind for each in vendors], indirect=True)


@pytest.fixture
def vendor(request, monkeypatch):
    """The fake server behind the registry; every request must be one that the vendor specifies."""
    fake = request.param()
    monkeypatch.setattr("fleet.providers.registry.transport_for", lambda kind: fake.transport)
    monkeypatch.setattr("fleet.providers.http.Spacing.wait_for_turn", lambda *_: None)
    yield fake
    assert fake.complaints() == []


def ordered(account, vendor, *, billing="hourly"):
    """Order the first machine with a price and stock; return its lease."""
    offers_fetch(account_id=account.pk)
    offers = Offer.objects.filter(account=account, billing=billing, price_per_hour__isnull=False).exclude(stock="none")
    order_place(
        account_id=account.pk,
        offer_id=offers.order_by("pk").first().pk,
        server_name="trainer",
        actor=ACTOR,
        options=vendor.order_options,
        url="https://panel.example",
    )
    return only_lease()


def running(rounds, account, vendor, **options):
    """Order a machine and let it come up; return its lease."""
    lease = ordered(account, vendor, **options)
    rounds.run(minutes=0.5)
    vendor.advance()
    rounds.run(minutes=1.5)
    assert fresh(lease).state == LeaseState.BOOTING
    return fresh(lease)


@of(*VENDORS)
def test_a_machine_is_ordered_with_its_join_line_and_ended(rounds, account, vendor):
    lease = running(rounds, account, vendor)
    assert lease.external_id in vendor.machines
    sent = [request.content.decode() for request in vendor.requests if request.method in {"POST", "PUT"}]
    assert any("fdj_" in body for body in sent)
    lease_act(lease_id=lease.pk, kind=OperationKind.TERMINATE, actor=ACTOR)
    rounds.run(minutes=0.5)
    vendor.advance()
    rounds.run(minutes=3)
    assert (fresh(lease).state, vendor.machines) == (LeaseState.TERMINATED, {})
    assert Operation.objects.get(kind=OperationKind.TERMINATE).state == OperationState.SUCCEEDED
    assert vendor.creates == 1


@of(*VENDORS)
def test_an_order_without_capacity_fails_with_the_reason_and_leaves_nothing(rounds, account, vendor):
    lease = ordered(account, vendor)
    vendor.has_capacity = False
    rounds.run(minutes=1)
    operation = Operation.objects.get(kind=OperationKind.ORDER)
    assert (operation.state, operation.reason) == (OperationState.FAILED, Reason.NO_CAPACITY)
    assert fresh(lease).ended_at is not None
    assert vendor.machines == {}
    assert BilledInterval.objects.count() == 0


@of(*VENDORS)
def test_an_order_whose_answer_is_lost_is_found_by_its_name_and_not_sent_again(rounds, account, vendor):
    lease = ordered(account, vendor)
    vendor.lost_replies = 1
    rounds.run(minutes=2)
    assert [fresh(lease).external_id] == list(vendor.machines)
    assert vendor.creates == 1


@of(FakeVast, FakeVerda)
def test_a_stop_is_billed_as_the_vendor_bills_it(rounds, account, vendor):
    lease = running(rounds, account, vendor)
    lease_act(lease_id=lease.pk, kind=OperationKind.STOP, actor=ACTOR)
    rounds.run(minutes=0.5)
    vendor.advance()
    rounds.run(minutes=1.5)
    is_saving = vendor.kind == "vast"
    assert (fresh(lease).state, fresh(lease).is_stop_saving) == (LeaseState.STOPPED, is_saving)
    modes = [interval.mode for interval in BilledInterval.objects.order_by("started_at")]
    assert modes == (["full", "stopped"] if is_saving else ["full"])
    lease_act(lease_id=lease.pk, kind=OperationKind.START, actor=ACTOR)
    rounds.run(minutes=0.5)
    vendor.advance()
    rounds.run(minutes=1.5)
    assert fresh(lease).state in {LeaseState.BOOTING, LeaseState.ACTIVE}


@of(FakeVast, FakeVerda)
def test_a_spot_machine_that_is_taken_back_is_told_and_its_cards_are_no_longer_counted(rounds, account, vendor):
    lease = running(rounds, account, vendor, billing="spot")
    vendor.preempt(lease.external_id)
    rounds.run(minutes=2)
    lease = fresh(lease)
    assert (lease.state, lease.is_stop_saving) == (LeaseState.PREEMPTED, True)
    assert BilledInterval.objects.get(ended_at=None).mode == "stopped"


@of(*VENDORS)
def test_nothing_secret_of_the_vendor_is_stored(rounds, account, vendor):
    running(rounds, account, vendor)
    stored = json.dumps(list(Lease.objects.values()), default=str) + json.dumps(
        list(Offer.objects.values()), default=str
    )
    for secret in ("SECRET", "jupyter", "03b7d30d", "df77e270"):
        assert secret not in stored
