"""Compshare: quotes and stock, orders, and what is done with machines."""

import json
from datetime import UTC, datetime
from decimal import Decimal

import httpx
import pytest

from fleet.providers.base import Billing, MachineStatus, Stock
from fleet.providers.compshare.adapter import Compshare
from fleet.providers.errors import (
    NotThere,
    OutcomeUnknown,
    Refused,
    Unavailable,
)
from fleet.reasons import Reason
from tests.fakes.compshare import FakeCompshare, failure, local, success
from tests.providers.compshare_account import instead, opened, order, sent, yuan


@pytest.fixture
def vendor():
    fake = FakeCompshare()
    yield fake
    assert fake.complaints() == []


# Offers


def offers(vendor):
    return {offer.key: offer for offer in opened(vendor).offers()}


def test_what_is_quoted_is_on_offer_for_the_whole_machine_and_its_term(vendor):
    found = offers(vendor)
    hourly = found["cn-wlcb-01/4090/2/Postpay"]
    assert (hourly.price_per_hour, hourly.price_per_term) == (yuan("3.84"), None)
    month = found["cn-wlcb-01/4090/2/Month"]
    assert (month.price_per_hour, month.price_per_term) == (yuan("2136.00") / 730, yuan("2136.00"))
    assert found["cn-wlcb-01/4090/1/Day"].price_per_hour == yuan("1.6875")
    assert found["cn-wlcb-01/4090/1/Spot"].price_per_hour == yuan("1.31")
    assert found["cn-wlcb-01/4090/1/Spot"].billing == Billing.SPOT
    assert all(type(offer.price_per_hour.amount) is Decimal for offer in found.values() if offer.price_per_hour)


def test_a_form_has_the_least_cpu_and_memory_that_go_with_its_cards(vendor):
    one = offers(vendor)["cn-wlcb-01/4090/1/Postpay"]
    assert (one.cpu_count, one.memory_bytes, one.region) == (12, 48 * 1024**3, "cn-wlcb-01")
    asked = sent(vendor, "GetCompShareInstancePrice")[0]
    assert (asked["Cpu"], asked["Memory"]) == ("12", "49152")
    assert (asked["Disks.0.IsBoot"], asked["Disks.0.Type"], asked["Disks.0.Size"]) == ("true", "CLOUD_SSD", "100")


def test_stock_comes_from_the_pool_of_the_way_to_pay(vendor):
    found = offers(vendor)
    assert (found["cn-wlcb-01/4090/1/Postpay"].stock, found["cn-wlcb-01/4090/1/Postpay"].stock_count) == (
        Stock.HIGH,
        40,
    )
    assert (found["cn-wlcb-01/4090/1/Spot"].stock, found["cn-wlcb-01/4090/1/Spot"].stock_count) == (Stock.LOW, 3)
    assert (found["cn-wlcb-01/4090/2/Postpay"].stock, found["cn-wlcb-01/4090/2/Postpay"].stock_count) == (
        Stock.HIGH,
        None,  # two free cards may lie in two hosts
    )
    assert found["cn-sh2-01/4090/1/Postpay"].stock == Stock.UNKNOWN
    assert (found["cn-wlcb-01/A800/8/Postpay"].stock, found["cn-wlcb-01/A800/8/Postpay"].stock_count) == (Stock.NONE, 0)


def test_what_is_sold_out_is_shown_without_a_quote_and_what_is_hidden_not_at_all(vendor):
    found = offers(vendor)
    assert found["cn-wlcb-01/4090_48G/1/Postpay"].price_per_hour is None
    assert found["cn-wlcb-01/4090_48G/1/Postpay"].gpu_model == "RTX 4090 48GB"
    assert not any(offer.raw_gpu == "2080" for offer in found.values())
    quoted = {(form["GpuType"], form["Gpu"]) for form in sent(vendor, "GetCompShareInstancePrice")}
    assert quoted == {("4090", "1"), ("4090", "2"), ("A800", "1")}


def test_a_type_without_spot_has_none_even_when_it_is_quoted(vendor):
    answer = httpx.Response(
        200,
        text='{"RetCode":0,"PriceDetails":[{"ChargeType":"Spot","Instance":1},{"ChargeType":"Postpay","Instance":2}]}',
    )
    instead(vendor, "GetCompShareInstancePrice", answer)
    found = offers(vendor)
    assert "cn-wlcb-01/A800/1/Spot" not in found
    assert "cn-wlcb-01/4090/1/Spot" in found


def test_kinds_that_a_quote_without_a_charge_type_leaves_out_are_asked_for_by_name(vendor):
    vendor.quotes_all = False
    found = offers(vendor)
    assert found["cn-wlcb-01/4090/1/Postpay"].price_per_hour == yuan("1.92")
    assert found["cn-wlcb-01/4090/1/Spot"].price_per_hour == yuan("1.31")
    assert found["cn-wlcb-01/4090/1/Month"].price_per_term == yuan("1068")


def test_a_zone_that_refuses_every_quote_still_shows_what_it_sells(vendor):
    instead(vendor, "GetCompShareInstancePrice", failure(230, "Params [ChargeType] not available"))
    found = offers(vendor)
    assert found["cn-wlcb-01/4090/1/Postpay"].price_per_hour is None
    assert found["cn-wlcb-01/4090/1/Postpay"].stock == Stock.HIGH


def test_a_failure_while_quotes_are_asked_is_no_list(vendor):
    instead(vendor, "GetCompShareInstancePrice", httpx.Response(502, text="bad gateway"))
    with pytest.raises(Unavailable):
        opened(vendor).offers()


@pytest.mark.parametrize("key", ["GpuInventory", "GpuInventoryByZone"])
@pytest.mark.parametrize("encode", [lambda cards: cards, json.dumps], ids=["object", "text"])
def test_the_inventory_is_read_under_either_name_and_as_text(vendor, key, encode):
    instead(vendor, "DescribeCompShareGpuInventory", success(**{key: encode(vendor.cards)}))
    assert offers(vendor)["cn-wlcb-01/4090/1/Postpay"].stock_count == 40


@pytest.mark.parametrize("told", [None, [], "nothing", {"Exclusive": None}, {"Exclusive": {"10027": {"4090": "many"}}}])
def test_an_odd_inventory_leaves_the_stock_unknown(vendor, told):
    instead(vendor, "DescribeCompShareGpuInventory", success(GpuInventory=told, SpotUnsupportedGpuTypes=None))
    assert offers(vendor)["cn-wlcb-01/4090/1/Postpay"].stock == Stock.UNKNOWN


# Orders


def test_an_order_says_what_the_documentation_lists(vendor):
    opened(vendor).create(order())
    assert sent(vendor, "CreateCompShareInstance") == [
        {
            "Region": "cn-wlcb",
            "Zone": "cn-wlcb-01",
            "GpuType": "A800",
            "GPU": "8",
            "CPU": "124",
            "Memory": "1843200",
            "MachineType": "G",
            "MinimalCpuPlatform": "Auto",
            "CompShareImageId": "compshareImage-1",
            "Disks.0.IsBoot": "true",
            "Disks.0.Type": "CLOUD_RSSD",
            "Disks.0.Size": "200",
            "ChargeType": "Month",
            "Quantity": "1",
            "Name": "fleetdeck-ab12cd34-7",
        }
    ]


def test_an_hourly_order_names_its_charge_type_because_the_default_is_a_month(vendor):
    details = {**order().details, "charge_type": "Postpay"}
    opened(vendor).create(order(billing=Billing.HOURLY, details=details))
    [form] = sent(vendor, "CreateCompShareInstance")
    assert form["ChargeType"] == "Postpay"
    assert "Quantity" not in form


def test_a_start_up_script_is_not_claimed_to_run():
    assert Compshare.runs_startup_script is False


@pytest.mark.parametrize("size", ["19", "1001", "big"])
def test_a_disk_that_cannot_be_had_is_refused_before_it_is_ordered(vendor, size):
    with pytest.raises(Refused):
        opened(vendor).create(order(options={"image": "compshareImage-1", "disk_gb": size}))
    assert vendor.requests == []


@pytest.mark.parametrize("ids", [None, [], ["uhost-1", "uhost-2"], [7], [""]], ids=str)
def test_an_order_that_was_taken_and_names_no_one_machine_is_looked_for(vendor, ids):
    instead(vendor, "CreateCompShareInstance", success(UHostIds=ids))
    with pytest.raises(OutcomeUnknown):
        opened(vendor).create(order())


def test_images_to_choose_from_are_all_pages_of_the_platforms_and_the_accounts_own(vendor):
    provider = opened(vendor)
    machine = vendor.add("box")
    making = provider.snapshot(machine.id, "half")
    done = provider.snapshot(machine.id, "whole")
    vendor.images[done]["Status"] = "Available"
    choices = provider.order_choices("image")
    assert len(choices) == 26
    assert choices[done] == "whole"
    assert making not in choices
    assert all("Limit" not in form for form in sent(vendor, "DescribeCompShareImages"))
    assert provider.order_choices("disk_gb") == {}


# Acting


def test_a_running_machine_is_stopped_before_it_is_deleted_with_its_disks(vendor):
    machine = vendor.add("box", facts={"zone": "cn-sh2-01"})
    provider = opened(vendor)
    provider.terminate(machine.id)
    assert sent(vendor, "TerminateCompShareInstance") == []
    provider.terminate(machine.id)  # still stopping: nothing more is sent
    place = {"Region": "cn-sh2", "Zone": "cn-sh2-01", "UHostId": local(machine)}
    assert sent(vendor, "StopCompShareInstance") == [place]
    vendor.advance()
    provider.terminate(machine.id)
    assert sent(vendor, "TerminateCompShareInstance") == [{**place, "ReleaseUDisk": "true"}]
    assert provider.machine(machine.id) is None


def test_a_spot_machine_is_stopped_by_force_to_be_ended_and_never_otherwise(vendor):
    machine = vendor.add("box", is_spot=True)
    provider = opened(vendor)
    with pytest.raises(Refused) as refused:
        provider.stop(machine.id)
    assert refused.value.reason == Reason.NOT_SUPPORTED
    assert sent(vendor, "StopCompShareInstance") == []
    provider.terminate(machine.id)
    assert sent(vendor, "StopCompShareInstance")[0]["Force"] == "true"


def test_a_spot_machine_that_was_taken_back_can_be_started_where_there_are_cards(vendor):
    machine = vendor.add("box", is_spot=True)
    vendor.preempt(machine.id)
    assert opened(vendor).machine(machine.id).is_stop_saving is True
    vendor.has_capacity = False
    with pytest.raises(Refused) as refused:
        opened(vendor).start(machine.id)
    assert refused.value.reason == Reason.NO_CAPACITY
    vendor.has_capacity = True
    opened(vendor).start(machine.id)
    vendor.advance()
    assert opened(vendor).machine(machine.id).status == MachineStatus.RUNNING


@pytest.mark.parametrize("action", ["start", "stop", "reboot"])
def test_acting_on_a_machine_that_is_not_there_says_so(vendor, action):
    with pytest.raises(NotThere):
        getattr(opened(vendor), action)("cn-wlcb:uhost-nobody")


def test_an_image_is_made_and_listed(vendor):
    machine = vendor.add("box")
    image_id = opened(vendor).snapshot(machine.id, "before")
    [image] = opened(vendor).snapshots()
    assert (image.external_id, image.name, image.is_ready) == (image_id, "before", False)
    assert image.size_bytes == 30 * 1024**3
    assert image.created_at == datetime(2025, 11, 30, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    ("billing", "saves"),
    [(Billing.HOURLY, None), (Billing.SPOT, False), (Billing.DAILY, False), (Billing.MONTHLY, False)],
)
def test_what_a_stop_promises_is_no_more_than_is_known(vendor, billing, saves):
    assert opened(vendor).stop_effect(billing).saves_compute is saves
