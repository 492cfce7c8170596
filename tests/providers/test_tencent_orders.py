"""What Tencent Cloud CVM sells, and what an order says."""

import base64
from decimal import Decimal

import pytest

from fleet.providers.base import Billing, Stock
from fleet.providers.errors import (
    OutcomeUnknown,
    Refused,
)
from fleet.providers.tencent.offers import offers_of, price_of, stock_of
from panel.core.money import Money
from tests.fakes.tencent import HOME, FakeTencent
from tests.providers.opening import answering, opened, order_for


@pytest.fixture
def fake():
    return FakeTencent()


def offer_of(fake, billing):
    """Return the offer of the T4 type in one way of paying."""
    return next(each for each in opened(fake).offers() if (each.billing, each.gpu_model) == (billing, "T4 16GB"))


# Offers


def test_offers_stand_by_way_of_paying_with_exact_prices(fake):
    hourly, spot = offer_of(fake, Billing.HOURLY), offer_of(fake, Billing.SPOT)
    monthly, yearly = offer_of(fake, Billing.MONTHLY), offer_of(fake, Billing.YEARLY)
    assert hourly.price_per_hour == Money(Decimal("7.81"), "CNY")
    assert spot.price_per_hour == Money(Decimal("1.736"), "CNY")
    assert monthly.price_per_term == Money(Decimal(2250), "CNY")
    assert monthly.price_per_hour == monthly.price_per_term / 730
    assert yearly.price_per_term == Money(Decimal(24900), "CNY")
    assert (hourly.details["price_after_96_hours"], hourly.details["price_after_360_hours"]) == ("6.94", "5.21")
    assert (hourly.region, hourly.gpu_count, hourly.gpu_memory_bytes) == (f"{HOME}-6", 1, 16 * 1024**3)


def test_only_types_with_whole_cards_are_offered_and_only_those_that_are_wanted(fake):
    assert {each.gpu_model for each in opened(fake).offers()} == {"T4 16GB", "V100 32GB"}
    assert {each.gpu_model for each in opened(fake, instance_types="GN7, PNV").offers()} == {"T4 16GB"}


@pytest.mark.parametrize(
    ("status", "category", "stock"),
    [
        ("SELL", "EnoughStock", Stock.HIGH),
        ("SELL", "NormalStock", Stock.MEDIUM),
        ("SELL", "UnderStock", Stock.LOW),
        ("SELL", "WithoutStock", Stock.NONE),
        ("SOLD_OUT", "EnoughStock", Stock.NONE),
        ("SELL", "", Stock.UNKNOWN),
        ("SELL", "Heaps", Stock.UNKNOWN),
    ],
)
def test_each_stock_word_has_a_meaning(status, category, stock):
    assert stock_of({"Status": status, "StatusCategory": category}) == stock


def test_nothing_is_no_price_and_another_unit_is_none_either():
    hour = ("UnitPriceDiscount", "UnitPrice")
    assert price_of({"UnitPriceDiscount": 0, "UnitPrice": Decimal("3.2")}, hour, Billing.HOURLY).amount == Decimal(
        "3.2"
    )
    assert price_of({"UnitPriceDiscount": 0, "UnitPrice": 0}, hour, Billing.HOURLY) is None
    assert price_of({"UnitPrice": 3, "ChargeUnit": "GB"}, hour, Billing.HOURLY) is None
    assert price_of(None, hour, Billing.HOURLY) is None


def test_a_type_whose_card_the_api_does_not_name_has_its_familys():
    item = {
        "Zone": "z",
        "InstanceType": "GN8.LARGE56",
        "InstanceChargeType": "POSTPAID_BY_HOUR",
        "Gpu": 1,
        "Price": None,
    }
    [offer] = offers_of([item], [], HOME, [])
    assert (offer.gpu_model, offer.raw_gpu, offer.price_per_hour) == ("P40 24GB", "GN8.LARGE56", None)


# Ordering


def test_an_hourly_order_says_all_that_matters(fake):
    external_id = opened(fake).create(order_for(offer_of(fake, Billing.HOURLY), fake))
    assert external_id in fake.machines
    [body] = fake.sent("RunInstances")
    assert base64.b64decode(body.pop("UserData")) == b"#!/bin/sh\necho joined\n"
    assert body == {
        "Placement": {"Zone": f"{HOME}-6"},
        "InstanceType": "GN7.2XLARGE32",
        "ImageId": "img-pmqg1cw7",
        "InstanceName": "fleetdeck-ab12cd34-7",
        "ClientToken": "fleetdeck-ab12cd34-7",
        "InstanceCount": 1,
        "SystemDisk": {"DiskType": "CLOUD_BSSD", "DiskSize": 200},
        "InternetAccessible": {
            "InternetChargeType": "TRAFFIC_POSTPAID_BY_HOUR",
            "InternetMaxBandwidthOut": 20,
            "PublicIpAssigned": True,
        },
        "InstanceChargeType": "POSTPAID_BY_HOUR",
        "SecurityGroupIds": ["sg-1"],
        "LoginSettings": {"KeyIds": ["skey-1"]},
        "VirtualPrivateCloud": {"VpcId": "vpc-1", "SubnetId": "subnet-1"},
    }


@pytest.mark.parametrize(
    ("billing", "auto_renew", "prepaid"),
    [
        (Billing.MONTHLY, "no", {"Period": 1, "RenewFlag": "NOTIFY_AND_MANUAL_RENEW"}),
        (Billing.YEARLY, "yes", {"Period": 12, "RenewFlag": "NOTIFY_AND_AUTO_RENEW"}),
    ],
    ids=["monthly", "yearly"],
)
def test_a_term_is_ordered_as_a_subscription(fake, billing, auto_renew, prepaid):
    opened(fake).create(order_for(offer_of(fake, billing), fake, auto_renew=auto_renew))
    [body] = fake.sent("RunInstances")
    assert (body["InstanceChargeType"], body["InstanceChargePrepaid"]) == ("PREPAID", prepaid)


def test_spot_follows_the_market_or_bids_what_was_given(fake):
    offer = offer_of(fake, Billing.SPOT)
    provider = opened(fake)
    provider.create(order_for(offer, fake, name="free"))
    provider.create(order_for(offer, fake, name="bound", maximum=Money(Decimal("2.50"), "CNY")))
    free, bound = fake.sent("RunInstances")
    assert (free["InstanceChargeType"], "InstanceMarketOptions" in free) == ("SPOTPAID", False)
    options = {"MaxPrice": "2.50", "SpotInstanceType": "one-time"}
    assert bound["InstanceMarketOptions"] == {"MarketType": "spot", "SpotOptions": options}
    assert fake.complaints() == []


def test_what_is_left_empty_is_not_sent(fake):
    empty = dict.fromkeys(("security_group", "vpc", "subnet", "key"), "")
    opened(fake).create(order_for(offer_of(fake, Billing.HOURLY), fake, bandwidth_mbps="0", **empty))
    [body] = fake.sent("RunInstances")
    assert not {"SecurityGroupIds", "VirtualPrivateCloud", "LoginSettings"} & set(body)
    assert body["InternetAccessible"] == {"InternetMaxBandwidthOut": 0}


@pytest.mark.parametrize("change", [{"subnet": ""}, {"disk_gb": "big"}, {"bandwidth_mbps": "-1"}], ids=str)
def test_an_order_that_cannot_be_meant_is_refused_before_anything_is_sent(fake, change):
    order = order_for(offer_of(fake, Billing.HOURLY), fake, **change)
    with pytest.raises(Refused) as refused:
        opened(fake).create(order)
    assert refused.value.permanent
    assert fake.sent("RunInstances") == []


def test_a_script_fits_into_16_kb_of_base64_and_not_a_byte_more(fake):
    offer = offer_of(fake, Billing.HOURLY)
    provider = opened(fake)
    provider.create(order_for(offer, fake, name="full", script="#!/bin/sh\n".ljust(12 * 1024, "#")))
    assert len(fake.sent("RunInstances")[0]["UserData"]) == 16 * 1024
    with pytest.raises(Refused, match="12289"):
        provider.create(order_for(offer, fake, name="over", script="#!/bin/sh\n".ljust(12 * 1024 + 1, "#")))


@pytest.mark.parametrize(
    "response", [{}, {"InstanceIdSet": []}, {"InstanceIdSet": ["a", "b"]}, {"InstanceIdSet": "ins-1"}], ids=str
)
def test_without_one_new_id_the_outcome_is_unknown(fake, response):
    order = order_for(offer_of(fake, Billing.HOURLY), fake)
    with pytest.raises(OutcomeUnknown):
        answering("tencent", fake.credentials, (200, {"Response": response})).create(order)
