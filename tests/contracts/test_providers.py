"""What holds for every provider, each against the stateful fake of its vendor."""

from datetime import UTC, datetime
from decimal import Decimal

import httpx
import pytest

from fleet.providers.base import Billing, MachineOrder, MachineStatus, abilities
from fleet.providers.errors import AccessRefused, OutcomeUnknown, ProviderError, Refused, Throttled, Unavailable
from fleet.providers.registry import PROVIDERS, connect
from fleet.reasons import Reason
from panel.core.money import Money
from tests.fakes.vendors import VENDORS

NAME = "fleetdeck-ab12cd34-7"


def vendors(*wanted):
    """Run a test for every vendor that has these abilities."""
    able = [vendor for vendor in VENDORS if set(wanted) <= abilities(PROVIDERS[vendor.kind])]
    return pytest.mark.parametrize("vendor", able, ids=[vendor.kind for vendor in able], indirect=True)


@pytest.fixture
def vendor(request, monkeypatch):
    """The fake server; adapters reach it through the registry. Every request must be one that the vendor specifies."""
    fake = request.param()
    monkeypatch.setattr("fleet.providers.registry.transport_for", lambda kind: fake.transport)
    monkeypatch.setattr("fleet.providers.http.Spacing.wait_for_turn", lambda *_: None)
    yield fake
    assert fake.complaints() == []


def opened(vendor):
    """Return the adapter of the fake's account."""
    return connect(vendor.kind, credentials=vendor.credentials, options=vendor.options, account="test")


def order_of(provider, vendor, *, billing=None, name=NAME, maximum=None):
    """Return an order for the first offer that has stock (of one billing kind)."""
    offer = next(
        each
        for each in provider.offers()
        if (each.price_per_hour is not None or not vendor.tells_prices)
        and (billing is None or each.billing == billing)
        and each.stock != "none"
    )
    return MachineOrder(
        name=name,
        offer_key=offer.key,
        gpu_model=offer.gpu_model,
        gpu_count=offer.gpu_count,
        region=offer.region,
        billing=offer.billing,
        details=offer.details,
        options=vendor.order_options,
        startup_script="#!/bin/sh\necho joined > /tmp/fleetdeck\n",
        max_price_per_hour=maximum,
    )


def ordered(provider, vendor, **options):
    """Order one machine; return its external id."""
    return provider.create(order_of(provider, vendor, **options))


@vendors()
def test_a_valid_key_is_told_from_one_that_has_expired(vendor):
    provider = opened(vendor)
    assert set(provider.check().permissions) >= {"list"}
    vendor.is_key_valid = False
    with pytest.raises(AccessRefused) as refused:
        provider.check()
    assert refused.value.permanent
    with pytest.raises(AccessRefused):
        provider.machines()


@vendors()
def test_a_machine_of_somebody_elses_making_is_listed_with_its_price(vendor):
    there = vendor.add("box-1")
    [machine] = opened(vendor).machines()
    assert (machine.external_id, machine.name) == (there.id, "box-1")
    assert machine.status == MachineStatus.RUNNING
    assert machine.gpu_model
    assert machine.gpu_count == 1
    assert machine.price_per_hour is None or (
        isinstance(machine.price_per_hour, Money)
        and machine.price_per_hour.currency == PROVIDERS[vendor.kind].currency
        and machine.price_per_hour.amount > 0
    )
    assert opened(vendor).machine(there.id) == machine


@vendors()
def test_every_page_of_a_long_list_is_read(vendor):
    count = 2 * (vendor.page_size or 30) + 3
    names = {vendor.add(f"box-{number}").name for number in range(count)}
    machines = opened(vendor).machines()
    assert {machine.name for machine in machines} == names
    assert len(machines) == count


@vendors()
def test_a_list_that_breaks_off_is_no_list(vendor):
    for number in range(3 * (vendor.page_size or 1)):
        vendor.add(f"box-{number}")
    provider = opened(vendor)
    provider.machines()  # fetches a token too, where the vendor wants one
    calls = len(vendor.requests)
    provider.machines()
    pages = len(vendor.requests) - calls
    assert pages >= (3 if vendor.page_size else 1)
    calls, answer = len(vendor.requests), vendor.answer
    vendor.answer = lambda request: (
        vendor.too_many(request) if len(vendor.requests) - calls >= pages else answer(request)
    )
    with pytest.raises(ProviderError):
        provider.machines()


@vendors()
def test_a_word_for_a_state_that_is_not_known_is_kept_and_harmless(vendor):
    vendor.add("box-1", raw="levitating")
    [machine] = opened(vendor).machines()
    assert (machine.status, machine.raw_status) == (MachineStatus.UNKNOWN, "levitating")


@vendors()
def test_a_machine_that_vanished_is_none_and_no_error(vendor):
    there = vendor.add("box-1")
    vendor.vanish(there.id)
    assert opened(vendor).machine(there.id) is None
    assert opened(vendor).machines() == []


@vendors()
def test_a_provider_that_is_down_says_so_and_nothing_is_unknown(vendor):
    vendor.down = 1
    with pytest.raises(Unavailable) as down:
        opened(vendor).machines()
    assert down.value.is_definite


@vendors()
def test_a_page_of_a_proxy_says_neither_that_a_machine_is_gone_nor_that_the_key_is_wrong(vendor):
    vendor.add("box-1")
    provider = opened(vendor)
    [machine] = provider.machines()
    for status in (403, 404):
        page = httpx.Response(status, text="<!DOCTYPE html><html><body>Attention</body></html>")
        vendor.answer = lambda request, page=page: page
        with pytest.raises(ProviderError) as told:
            provider.machine(machine.external_id)
        assert told.value.reason == Reason.PROVIDER_DOWN
        assert "<" not in told.value.message


@vendors()
def test_too_many_calls_come_with_the_time_to_wait(vendor):
    vendor.throttled = 1
    provider = opened(vendor)
    with pytest.raises(Throttled) as told:
        provider.machines()
    assert (told.value.retry_after_seconds is not None) == vendor.has_retry_after
    assert provider.machines() == []


@vendors("offers")
def test_offers_have_a_model_and_exact_prices_and_none_where_there_is_none(vendor):
    offers = opened(vendor).offers()
    assert len({offer.key for offer in offers}) == len(offers)
    assert any(offer.gpu_model and (offer.price_per_hour is not None) == vendor.tells_prices for offer in offers)
    for offer in offers:
        assert offer.gpu_count >= 1
        assert offer.raw_gpu
        for price in (offer.price_per_hour, offer.price_per_term, offer.price_stopped_per_hour):
            assert price is None or (type(price.amount) is Decimal and price.amount > 0)


@vendors("order")
def test_an_order_becomes_a_running_machine_of_our_name(vendor):
    provider = opened(vendor)
    external_id = ordered(provider, vendor)
    machine = provider.machine(external_id)
    assert machine.name == NAME
    assert machine.status == MachineStatus.PROVISIONING
    vendor.advance()
    assert provider.machine(external_id).status == MachineStatus.RUNNING
    assert [each.external_id for each in provider.named(NAME)] == [external_id]
    assert vendor.creates == 1


@vendors("order")
def test_no_capacity_is_a_definite_no_in_the_vendors_own_way(vendor):
    provider = opened(vendor)
    order = order_of(provider, vendor)
    vendor.has_capacity = False
    with pytest.raises(Refused) as refused:
        provider.create(order)
    assert refused.value.reason == Reason.NO_CAPACITY
    assert refused.value.is_definite
    assert vendor.machines == {}


@vendors("order")
def test_an_order_that_is_put_off_was_not_made(vendor):
    provider = opened(vendor)
    order = order_of(provider, vendor)
    vendor.throttled = 1
    with pytest.raises(Throttled):
        provider.create(order)
    assert vendor.machines == {}
    provider.create(order)
    assert vendor.creates == 1


@vendors("order")
@pytest.mark.parametrize("mishap", ["broken_after_write", "lost_replies"])
def test_a_machine_whose_answer_was_lost_is_found_by_its_name(vendor, mishap):
    provider = opened(vendor)
    order = order_of(provider, vendor)
    setattr(vendor, mishap, 1)
    with pytest.raises(OutcomeUnknown) as unknown:
        provider.create(order)
    assert not unknown.value.is_definite
    [found] = provider.named(NAME)
    assert found.external_id in vendor.machines


@vendors("order")
def test_an_order_with_a_client_token_may_be_sent_twice(vendor):
    provider = opened(vendor)
    order = order_of(provider, vendor)
    vendor.lost_replies = 1
    with pytest.raises(OutcomeUnknown):
        provider.create(order)
    if provider.has_client_token:
        assert provider.create(order) in vendor.machines
    assert vendor.creates == 1


@vendors("order")
def test_ending_twice_is_no_error(vendor):
    provider = opened(vendor)
    external_id = ordered(provider, vendor)
    vendor.advance()
    while provider.machine(external_id) is not None:
        provider.terminate(external_id)
        vendor.advance()
    provider.terminate(external_id)
    assert provider.machine(external_id) is None


@vendors("order")
def test_ending_whose_answer_is_lost_is_told_as_unknown(vendor):
    provider = opened(vendor)
    external_id = ordered(provider, vendor)
    vendor.advance()
    vendor.lost_replies = 1
    with pytest.raises(OutcomeUnknown):
        provider.terminate(external_id)


@vendors("stop")
def test_stop_and_start_and_what_a_stop_saves(vendor):
    provider = opened(vendor)
    machine_id = vendor.add("box-1").id
    provider.stop(machine_id)
    vendor.advance()
    stopped = provider.machine(machine_id)
    assert stopped.status == MachineStatus.STOPPED
    effect = provider.stop_effect(stopped.billing)
    assert str(effect.note)
    if effect.saves_compute is not None and stopped.is_stop_saving is not None:
        assert stopped.is_stop_saving == effect.saves_compute
    provider.start(machine_id)
    vendor.advance()
    assert provider.machine(machine_id).status == MachineStatus.RUNNING


@vendors("reboot")
def test_a_reboot_keeps_the_machine(vendor):
    provider = opened(vendor)
    machine_id = vendor.add("box-1").id
    provider.reboot(machine_id)
    vendor.advance()
    assert provider.machine(machine_id).status == MachineStatus.RUNNING


@vendors("spot", "order")
def test_a_spot_machine_that_was_taken_back_is_preempted(vendor):
    provider = opened(vendor)
    external_id = ordered(provider, vendor, billing=Billing.SPOT)
    vendor.advance()
    assert provider.machine(external_id).billing == Billing.SPOT
    vendor.preempt(external_id)
    assert provider.machine(external_id).status == MachineStatus.PREEMPTED


@vendors("billing")
def test_what_was_billed_is_exact(vendor):
    charges = opened(vendor).charges(start=datetime(2026, 11, 29, tzinfo=UTC), end=datetime(2026, 11, 30, tzinfo=UTC))
    assert charges
    for charge in charges:
        assert charge.amount.currency == PROVIDERS[vendor.kind].currency
        assert charge.start < charge.end


@vendors()
def test_no_error_shows_a_secret(vendor):
    provider = opened(vendor)
    for switch in ("down", "throttled"):
        setattr(vendor, switch, 1)
        with pytest.raises(ProviderError) as told:
            provider.machines()
        assert not any(secret in str(told.value) for secret in vendor.credentials.values())
    vendor.is_key_valid = False
    with pytest.raises(AccessRefused) as refused:
        provider.check()
    shown = f"{refused.value} {refused.value.facts()} {provider!r}"
    assert not any(secret in shown for secret in vendor.credentials.values())


@pytest.mark.parametrize("kind", sorted(PROVIDERS))
def test_what_a_provider_can_do_is_among_its_abilities(kind):
    provider = PROVIDERS[kind]
    for method, ability in (("reboot", "reboot"), ("stop", "stop"), ("start", "stop"), ("create", "order")):
        assert hasattr(provider, method) == (ability in abilities(provider)), method


def test_every_provider_that_is_synced_has_a_fake_server():
    assert {vendor.kind for vendor in VENDORS} == {
        kind for kind, provider in PROVIDERS.items() if provider.is_synced and kind != "simulated"
    }
