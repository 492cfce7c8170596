"""What Alibaba Cloud ECS sells, and what an order says."""

import base64
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
import time_machine

from fleet.providers.aliyun import prices
from fleet.providers.aliyun.offers import stock_of
from fleet.providers.aliyun.prices import instance_price
from fleet.providers.base import Billing, Stock
from fleet.providers.errors import (
    OutcomeUnknown,
    Refused,
)
from panel.core.money import Money
from tests.fakes.aliyun import HOME, FakeAliyun
from tests.providers.opening import answering, opened, order_for

SPEC = "alibaba/ecs-2014-05-26.subset.described.json"


@pytest.fixture
def fake():
    prices.forget()
    yield FakeAliyun()
    prices.forget()


def offer_of(fake, billing, zone="cn-hangzhou-h"):
    """Return the offer of the A10 type in one zone and way of paying."""
    return next(
        each
        for each in opened(fake).offers()
        if (each.billing, each.region, each.gpu_model) == (billing, zone, "A10 24GB")
    )


# Offers


def test_offers_stand_by_zone_and_way_of_paying_with_exact_prices(fake):
    hourly, spot = offer_of(fake, Billing.HOURLY), offer_of(fake, Billing.SPOT)
    monthly, yearly = offer_of(fake, Billing.MONTHLY), offer_of(fake, Billing.YEARLY)
    assert hourly.price_per_hour == Money(Decimal("9.6137"), "CNY")
    assert hourly.price_per_term is None
    assert spot.price_per_hour == Money(Decimal("0.96137"), "CNY")
    assert monthly.price_per_term == Money(Decimal("2768.7456"), "CNY")
    assert monthly.price_per_hour == monthly.price_per_term / 730
    assert yearly.price_per_hour == yearly.price_per_term / 8760
    assert (hourly.gpu_count, hourly.gpu_memory_bytes, hourly.cpu_count) == (1, 24 * 1024**3, 8)
    assert {each.get("ZoneId") for each in fake.sent("DescribePrice") if "SpotStrategy" in each} == {
        "cn-hangzhou-h",
        "cn-hangzhou-i",
    }


def test_stock_words_and_what_is_sold_out_costs_no_call(fake):
    offers = opened(fake).offers()
    stocks = {(each.region, each.gpu_model): each.stock for each in offers if each.billing == Billing.HOURLY}
    assert stocks["cn-hangzhou-h", "A10 24GB"] == Stock.HIGH
    assert stocks["cn-hangzhou-i", "A10 24GB"] == Stock.LOW
    assert stocks["cn-hangzhou-i", "V100 32GB"] == Stock.NONE
    assert all(each.price_per_hour is None for each in offers if each.stock == Stock.NONE)
    assert "ecs.gn6e-c12g1.24xlarge" not in {each["InstanceType"] for each in fake.sent("DescribePrice")}
    unpriced = [each for each in offers if each.raw_gpu == "NVIDIA Z9"]
    assert unpriced
    assert all((each.price_per_hour, each.gpu_model) == (None, "") for each in unpriced)


@pytest.mark.parametrize(
    ("status", "category", "stock"),
    [
        ("Available", "WithStock", Stock.HIGH),
        ("Available", "ClosedWithStock", Stock.LOW),
        ("Available", "WithoutStock", Stock.NONE),
        ("Available", "ClosedWithoutStock", Stock.NONE),
        ("SoldOut", "WithStock", Stock.NONE),
        ("Available", "", Stock.UNKNOWN),
        ("Available", "Plentiful", Stock.UNKNOWN),
    ],
)
def test_each_stock_word_has_a_meaning(status, category, stock):
    assert stock_of({"Status": status, "StatusCategory": category}) == stock


def test_prices_are_remembered_spot_for_half_an_hour_and_others_for_six(fake):
    def asked():
        before = len(fake.sent("DescribePrice"))
        found = opened(fake).offers()
        return found, [each.get("SpotStrategy", each["PriceUnit"]) for each in fake.sent("DescribePrice")[before:]]

    with time_machine.travel(datetime(2026, 12, 1, tzinfo=UTC), tick=False) as clock:
        first, _ = asked()
        assert asked() == (first, [])
        clock.shift(timedelta(minutes=31))
        assert set(asked()[1]) == {"SpotAsPriceGo"}
        clock.shift(timedelta(hours=6))
        assert set(asked()[1]) == {"SpotAsPriceGo", "Hour", "Month", "Year"}
        assert asked() == (first, [])


def test_one_fetch_asks_for_so_many_prices_and_the_next_goes_on(fake, monkeypatch):
    monkeypatch.setattr(prices, "CALLS_PER_FETCH", 4)
    counts = []
    for _fetch in range(3):
        known = [each for each in opened(fake, regions=HOME).offers() if each.price_per_hour is not None]
        counts.append((len(fake.sent("DescribePrice")), len(known)))
    assert counts == sorted(counts)
    assert [calls for calls, _ in counts] == [4, 8, 9]
    assert counts[0][1] < counts[2][1]


def test_another_accounts_prices_are_its_own(fake):
    opened(fake).offers()
    calls = len(fake.sent("DescribePrice"))
    other = FakeAliyun()
    other.credentials = {**other.credentials, "access_key_id": "LTAIother"}
    opened(other).offers()
    assert len(other.sent("DescribePrice")) == calls


def test_only_the_types_that_are_wanted_are_asked_for(fake):
    offers = opened(fake, instance_types="ecs.gn7i, ecs.gn8").offers()
    assert {each.gpu_model for each in offers} == {"A10 24GB"}


def test_a_price_of_nothing_is_no_price_and_the_currency_is_the_apis():
    assert instance_price({"TradePrice": 0, "Currency": "CNY"}) is None
    assert instance_price({"TradePrice": Decimal("1.5"), "Currency": "USD"}) == Money(Decimal("1.5"), "USD")
    assert instance_price(None) is None


# Ordering


def test_an_hourly_order_says_all_that_matters(fake):
    external_id = opened(fake).create(order_for(offer_of(fake, Billing.HOURLY), fake))
    assert external_id in fake.machines
    [params] = fake.sent("RunInstances")
    assert base64.b64decode(params.pop("UserData")) == b"#!/bin/sh\necho joined\n"
    assert params == {
        "RegionId": HOME,
        "ZoneId": "cn-hangzhou-h",
        "InstanceType": "ecs.gn7i-c8g1.2xlarge",
        "ImageId": "ubuntu_24_04_x64_100G_gpu.vhd",
        "SecurityGroupId": "sg-bp1",
        "VSwitchId": "vsw-bp1",
        "InstanceName": "fleetdeck-ab12cd34-7",
        "ClientToken": "fleetdeck-ab12cd34-7",
        "Amount": "1",
        "SystemDisk.Category": "cloud_essd",
        "SystemDisk.Size": "200",
        "InternetChargeType": "PayByTraffic",
        "InternetMaxBandwidthOut": "20",
        "KeyPairName": "ops",
        "InstanceChargeType": "PostPaid",
        "SpotStrategy": "NoSpot",
    }


@pytest.mark.parametrize(
    ("billing", "auto_renew", "expected"),
    [
        (Billing.MONTHLY, "no", {"Period": "1", "PeriodUnit": "Month", "AutoRenew": "false", "AutoPay": "true"}),
        (Billing.YEARLY, "yes", {"Period": "12", "PeriodUnit": "Month", "AutoRenew": "true", "AutoRenewPeriod": "1"}),
    ],
    ids=["monthly", "yearly"],
)
def test_a_term_is_ordered_as_a_subscription(fake, billing, auto_renew, expected):
    opened(fake).create(order_for(offer_of(fake, billing), fake, auto_renew=auto_renew))
    [params] = fake.sent("RunInstances")
    assert params["InstanceChargeType"] == "PrePaid"
    assert expected.items() <= params.items()
    assert "SpotStrategy" not in params


def test_spot_follows_the_market_or_bids_what_was_given(fake):
    offer = offer_of(fake, Billing.SPOT)
    provider = opened(fake)
    provider.create(order_for(offer, fake, name="free"))
    provider.create(order_for(offer, fake, name="bound", maximum=Money(Decimal("2.34567"), "CNY")))
    free, bound = fake.sent("RunInstances")
    assert (free["SpotStrategy"], free.get("SpotPriceLimit")) == ("SpotAsPriceGo", None)
    assert (bound["SpotStrategy"], bound["SpotPriceLimit"]) == ("SpotWithPriceLimit", "2.345")
    assert bound["SpotInterruptionBehavior"] == "Terminate"


def test_a_script_may_have_32_kib_and_not_a_byte_more(fake):
    offer = offer_of(fake, Billing.HOURLY)
    provider = opened(fake)
    provider.create(order_for(offer, fake, name="full", script="#!/bin/sh\n".ljust(32 * 1024, "#")))
    with pytest.raises(Refused, match="32769"):
        provider.create(order_for(offer, fake, name="over", script="#!/bin/sh\n".ljust(32 * 1024 + 1, "#")))
    assert fake.creates == 1


def test_a_script_without_a_first_line_gets_a_shell(fake):
    opened(fake).create(order_for(offer_of(fake, Billing.HOURLY), fake, script="echo hello"))
    assert base64.b64decode(fake.sent("RunInstances")[0]["UserData"]) == b"#!/bin/sh\necho hello"


def test_a_disk_size_that_is_no_number_is_refused_before_anything_is_sent(fake):
    with pytest.raises(Refused):
        opened(fake).create(order_for(offer_of(fake, Billing.HOURLY), fake, disk_gb="big"))
    assert fake.creates == 0


def test_the_same_token_with_another_order_is_an_unknown_outcome(fake):
    provider, offer = opened(fake), offer_of(fake, Billing.HOURLY)
    provider.create(order_for(offer, fake))
    with pytest.raises(OutcomeUnknown):
        provider.create(order_for(offer, fake, disk_gb="300"))
    assert fake.creates == 1


@pytest.mark.parametrize(
    ("ids", "found"),
    [
        (["i-1"], f"{HOME}:i-1"),
        (['["i-1"]'], f"{HOME}:i-1"),
        ([], None),
        (["i-1", "i-2"], None),
        (["[broken"], None),
    ],
    ids=["plain", "json in text", "none", "two", "broken"],
)
def test_the_new_id_is_read_and_without_one_the_outcome_is_unknown(fake, ids, found):
    order = order_for(offer_of(fake, Billing.HOURLY), fake)
    provider = answering("aliyun", fake.credentials, (200, {"InstanceIdSets": {"InstanceIdSet": ids}}))
    if found is None:
        with pytest.raises(OutcomeUnknown):
            provider.create(order)
    else:
        assert provider.create(order) == found
