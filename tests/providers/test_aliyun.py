"""What is special about Alibaba Cloud ECS: regions, locks, stop modes, terms, dry runs, error codes, bills."""

import base64
import json
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
import time_machine

from fleet.providers.aliyun import prices
from fleet.providers.aliyun.bills import charge_of, days_of
from fleet.providers.aliyun.client import host_of
from fleet.providers.aliyun.codes import failure
from fleet.providers.aliyun.machines import STATUS, machine_of
from fleet.providers.aliyun.offers import stock_of
from fleet.providers.aliyun.prices import instance_price
from fleet.providers.base import Billing, MachineStatus, Stock
from fleet.providers.errors import (
    AccessRefused,
    NotThere,
    NotUnderstood,
    OutcomeUnknown,
    Refused,
    Throttled,
    Unavailable,
)
from fleet.providers.http import Answer
from fleet.reasons import Reason
from panel.core.money import Money
from tests.fakes.aliyun import AWAY, HOME, FakeAliyun, query_of
from tests.fakes.vendor import FakeMachine
from tests.providers.cloud_specs import aliyun_problems
from tests.providers.opening import answering, opened, order_for
from tests.providers.spec import needed

SPEC = "alibaba/ecs-2014-05-26.subset.described.json"


@pytest.fixture
def fake():
    prices.forget()
    yield FakeAliyun()
    prices.forget()


def sent(fake, action):
    """Return the parameters of every call of an action so far."""
    return [query_of(request) for request in fake.requests if request.headers["x-acs-action"] == action]


def offer_of(fake, billing, zone="cn-hangzhou-h"):
    """Return the offer of the A10 type in one zone and way of paying."""
    return next(
        each
        for each in opened(fake).offers()
        if (each.billing, each.region, each.gpu_model) == (billing, zone, "A10 24GB")
    )


def shown(fake, **facts):
    """Return an instance as the API shows it."""
    return fake.instance(fake.add("box", **facts))


def answer_of(status):
    return Answer(status, {}, "")


# Regions


def test_machines_of_all_regions_are_listed_and_each_is_found_where_it_lies(fake):
    fake.machines[f"{AWAY}:i-far"] = FakeMachine(f"{AWAY}:i-far", "far", "running", gpu="ecs.gn7i-c8g1.2xlarge")
    near = fake.add("near")
    assert {machine.external_id for machine in opened(fake).machines()} == {near.id, f"{AWAY}:i-far"}
    only_home = opened(fake, regions=HOME)
    assert only_home.machine(f"{AWAY}:i-far").name == "far"
    assert {request.url.host for request in fake.requests} == {host_of(HOME), f"ecs.{AWAY}.aliyuncs.com"}


def test_every_region_is_asked_at_the_server_that_the_api_names():
    endpoints = json.loads(needed(SPEC).read_text(encoding="utf-8"))["endpoints"]
    assert len(endpoints) > 30
    assert {each["regionId"]: host_of(each["regionId"]) for each in endpoints} == {
        each["regionId"]: each["endpoint"] for each in endpoints
    }


@pytest.mark.parametrize("regions", ["evil.example/#", "cn-hangzhou, x", "CN_HANGZHOU"])
def test_what_is_no_region_never_becomes_part_of_a_host(fake, regions):
    with pytest.raises(Refused) as refused:
        opened(fake, regions=regions).machines()
    assert refused.value.permanent
    assert fake.requests == []


@pytest.mark.parametrize("external_id", ["i-bp101", "cn-hangzhou:", "evil.example/#:i-bp101", ""])
def test_an_id_without_a_region_is_refused_and_never_taken_for_ended(fake, external_id):
    for call in (opened(fake).machine, opened(fake).terminate, opened(fake).stop):
        with pytest.raises(Refused):
            call(external_id)
    assert fake.requests == []


# Permissions and dry runs


def test_an_empty_list_for_a_key_without_the_permission_is_no_empty_account(fake):
    fake.add("box")
    fake.forbidden = {"DescribeInstances"}
    provider = opened(fake)
    for call in (provider.machines, lambda: provider.machine(f"{HOME}:i-bp101"), lambda: provider.named("box")):
        with pytest.raises(AccessRefused) as refused:
            call()
        assert refused.value.reason == Reason.PERMISSION_MISSING


def test_a_check_tells_what_the_key_may_do_without_doing_it(fake):
    check = opened(fake).check()
    assert check.identity == "acs:ram::123456:user/fleetdeck"
    assert check.balance == Money(Decimal("10000.50"), "CNY")
    # A dry run that stops at a missing parameter proves nothing about the permission.
    assert check.permissions == {"list": True, "order": None, "billing": True}
    assert fake.creates == 0
    fake.forbidden = {"RunInstances", "QueryAccountBalance"}
    check = opened(fake).check()
    assert check.permissions == {"list": True, "order": False, "billing": False}
    assert check.balance is None


# States


def test_every_documented_status_has_a_word_and_keeps_the_providers():
    assert set(STATUS) == {"Pending", "Starting", "Running", "Stopping", "Stopped"}


@pytest.mark.parametrize("reason", ["financial", "security", "dedicatedhostfinancial", "refunded", "something-new"])
def test_a_lock_is_told_beside_the_status(fake, reason):
    machine = machine_of(shown(fake, status="stopped", facts={"lock": reason}), HOME)
    assert machine.status == MachineStatus.LOCKED
    assert machine.raw_status == f"Stopped ({reason})"
    assert machine.details["locks"] == reason


def test_an_instance_that_is_being_recycled_is_preempted(fake):
    machine = machine_of(shown(fake, is_spot=True, is_preempted=True), HOME)
    assert (machine.status, machine.billing) == (MachineStatus.PREEMPTED, Billing.SPOT)


def test_a_locked_machine_refuses_and_says_so(fake):
    machine = fake.add("box", facts={"lock": "security"})
    with pytest.raises(Refused) as refused:
        opened(fake).stop(machine.id)
    assert (refused.value.reason, refused.value.raw_code) == (Reason.NOT_ALLOWED_NOW, "InstanceLockedForSecurity")


def test_the_renewal_date_is_a_subscriptions_alone(fake):
    hourly, prepaid = shown(fake), shown(fake, facts={"charge": "PrePaid"})
    assert machine_of(hourly, HOME).renews_at is None
    machine = machine_of(prepaid, HOME)
    assert machine.billing == Billing.MONTHLY
    assert machine.renews_at == datetime(2026, 12, 31, 8, 0, tzinfo=UTC)


def test_odd_answers_are_read_as_far_as_they_go():
    instance = {
        "InstanceId": "i-1",
        "Status": "Running ",
        "GPUAmount": "2",
        "GPUSpec": "NVIDIA V100",
        "InstanceType": "ecs.gn6e-c12g1.3xlarge",
        "OperationLocks": {"LockReason": None},
        "PublicIpAddress": None,
        "EipAddress": {"IpAddress": "198.51.100.4"},
        "VpcAttributes": {"PrivateIpAddress": {"IpAddress": "10.0.0.5"}},
        "Memory": None,
    }
    machine = machine_of(instance, HOME)
    assert machine.status == MachineStatus.RUNNING
    assert (machine.gpu_model, machine.gpu_count, machine.memory_bytes) == ("V100 32GB", 2, None)
    assert (machine.address, machine.ssh_port, machine.region) == ("198.51.100.4", 22, HOME)


def test_a_single_entry_under_a_plural_key_is_a_list_of_one_and_none_is_none(fake):
    one = shown(fake)
    single = answering("aliyun", fake.credentials, (200, {"Instances": {"Instance": one}}), options={"regions": HOME})
    assert [machine.name for machine in single.machines()] == ["box"]
    dry = (400, {"Code": "DryRunOperation", "Message": "passed"})
    none = answering("aliyun", fake.credentials, (200, {"Instances": {}}), dry, options={"regions": HOME})
    assert none.machines() == []


@pytest.mark.parametrize("body", [{}, {"Instances": None}, [], "<html>"], ids=["empty", "null", "list", "page"])
def test_an_answer_without_a_list_is_not_understood(fake, body):
    with pytest.raises(NotUnderstood):
        answering("aliyun", fake.credentials, (200, body), options={"regions": HOME}).machines()


def test_pages_that_go_round_in_a_circle_are_an_error(fake):
    page = (200, {"Instances": {"Instance": [shown(fake)]}, "NextToken": "again"})
    with pytest.raises(NotUnderstood):
        answering("aliyun", fake.credentials, *[page] * 5, options={"regions": HOME}).machines()


# Stopping


@pytest.mark.parametrize(
    ("charge", "mode", "saves"), [("PostPaid", "StopCharging", True), ("PrePaid", "KeepCharging", False)]
)
def test_the_stop_mode_is_always_sent_and_what_it_saves_is_read_back(fake, charge, mode, saves):
    machine = fake.add("box", facts={"charge": charge})
    provider = opened(fake)
    assert provider.machine(machine.id).is_stop_saving is None
    provider.stop(machine.id)
    assert [each["StoppedMode"] for each in sent(fake, "StopInstance")] == [mode]
    fake.advance()
    stopped = provider.machine(machine.id)
    assert stopped.is_stop_saving is saves
    assert provider.stop_effect(stopped.billing).saves_compute is saves


def test_a_stop_that_kept_charging_is_told_as_such(fake):
    machine = machine_of(shown(fake, status="stopped", facts={"mode": "KeepCharging"}), HOME)
    assert machine.is_stop_saving is False


def test_starting_again_may_find_no_stock(fake):
    machine = fake.add("box", status="stopped", facts={"mode": "StopCharging"})
    fake.has_capacity = False
    with pytest.raises(Refused) as refused:
        opened(fake).start(machine.id)
    assert refused.value.reason == Reason.NO_CAPACITY


def test_a_subscription_that_runs_cannot_be_ended_here(fake):
    machine = fake.add("box", facts={"charge": "PrePaid"})
    with pytest.raises(Refused) as refused:
        opened(fake).terminate(machine.id)
    assert refused.value.reason == Reason.NOT_SUPPORTED
    assert machine.id in fake.machines


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
    assert {each.get("ZoneId") for each in sent(fake, "DescribePrice") if "SpotStrategy" in each} == {
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
    assert "ecs.gn6e-c12g1.24xlarge" not in {each["InstanceType"] for each in sent(fake, "DescribePrice")}
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
        before = len(sent(fake, "DescribePrice"))
        found = opened(fake).offers()
        return found, [each.get("SpotStrategy", each["PriceUnit"]) for each in sent(fake, "DescribePrice")[before:]]

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
        counts.append((len(sent(fake, "DescribePrice")), len(known)))
    assert counts == sorted(counts)
    assert [calls for calls, _ in counts] == [4, 8, 9]
    assert counts[0][1] < counts[2][1]


def test_another_accounts_prices_are_its_own(fake):
    opened(fake).offers()
    calls = len(sent(fake, "DescribePrice"))
    other = FakeAliyun()
    other.credentials = {**other.credentials, "access_key_id": "LTAIother"}
    opened(other).offers()
    assert len(sent(other, "DescribePrice")) == calls


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
    [params] = sent(fake, "RunInstances")
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
    [params] = sent(fake, "RunInstances")
    assert params["InstanceChargeType"] == "PrePaid"
    assert expected.items() <= params.items()
    assert "SpotStrategy" not in params


def test_spot_follows_the_market_or_bids_what_was_given(fake):
    offer = offer_of(fake, Billing.SPOT)
    provider = opened(fake)
    provider.create(order_for(offer, fake, name="free"))
    provider.create(order_for(offer, fake, name="bound", maximum=Money(Decimal("2.34567"), "CNY")))
    free, bound = sent(fake, "RunInstances")
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
    assert base64.b64decode(sent(fake, "RunInstances")[0]["UserData"]) == b"#!/bin/sh\necho hello"


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


# Choices and images


def test_what_the_account_has_can_be_chosen_with_its_region_or_zone(fake):
    provider = opened(fake)
    images = provider.order_choices("image")
    assert next(iter(images.items())) == ("m-bp1", f"trained ({HOME})")
    assert len(images) == 104  # more than one page of the provider's own
    assert provider.order_choices("vswitch") == {
        f"vsw-{HOME}": f"main ({HOME}-h)",
        f"vsw-{AWAY}": f"main ({AWAY}-h)",
    }
    assert provider.order_choices("security_group")[f"sg-{HOME}"] == f"sg-{HOME} ({HOME})"
    assert provider.order_choices("key_pair") == {"ops": f"ops ({HOME})"}
    assert provider.order_choices("disk_gb") == {}


def test_an_image_of_a_machine_is_ready_once_the_provider_has_saved_it(fake):
    provider, machine = opened(fake), fake.add("box")
    image = provider.snapshot(machine.id, "before-upgrade")
    states = {each.external_id: (each.name, each.is_ready) for each in provider.snapshots()}
    assert states == {"m-bp1": ("trained", True), image: ("before-upgrade", False)}
    assert provider.snapshots()[0].size_bytes == 100 * 1024**3
    with pytest.raises(NotThere):
        provider.snapshot(f"{HOME}:i-gone", "x")


# Errors


@pytest.mark.parametrize(
    ("status", "code", "kind", "reason"),
    [
        (403, "OperationDenied.NoStock", Refused, Reason.NO_CAPACITY),
        (403, "Zone.NotOnSale", Refused, Reason.NO_CAPACITY),
        (400, "ResourceNotAvailable", Refused, Reason.NO_CAPACITY),
        (400, "LackResource", Refused, Reason.NO_CAPACITY),
        (403, "InsufficientBalance", Refused, Reason.NO_BALANCE),
        (400, "InsufficientBalance.AgentCredit", Refused, Reason.NO_BALANCE),
        (403, "InvalidAccountStatus.NotEnoughBalance", Refused, Reason.NO_BALANCE),
        (403, "InvalidPayMethod", Refused, Reason.NO_BALANCE),
        (404, "PaymentMethodNotFound", Refused, Reason.NO_BALANCE),
        (400, "Account.Arrearage", Refused, Reason.NO_BALANCE),
        (403, "InstanceExpiredOrInArrears", Refused, Reason.NO_BALANCE),
        (403, "InstanceExpired", Refused, Reason.CONTRACT_ENDED),
        (400, "QuotaExceed.AfterpayInstance", Refused, Reason.NO_QUOTA),
        (403, "QuotaExceed.ElasticQuota", Refused, Reason.NO_QUOTA),
        (400, "OperationDenied.QuotaExceed", Refused, Reason.NO_QUOTA),
        (400, "AccountForbidden.ProductCreationLimited", Refused, Reason.NO_QUOTA),
        (400, "InvalidSpotPriceLimit.LowerThanPublicPrice", Refused, Reason.PRICE_ABOVE_MAX),
        (403, "OperationDenied.SpotPriceLowerThanPublicPrice", Refused, Reason.PRICE_ABOVE_MAX),
        (403, "InstanceType.Offline", Refused, Reason.NO_OFFER),
        (400, "InvalidInstanceType.ValueNotSupported", Refused, Reason.NO_OFFER),
        (403, "IncorrectInstanceStatus", Refused, Reason.NOT_ALLOWED_NOW),
        (403, "IncorrectInstanceStatus.Initializing", Refused, Reason.NOT_ALLOWED_NOW),
        (403, "InstanceLockedForSecurity", Refused, Reason.NOT_ALLOWED_NOW),
        (403, "InvalidOperation.DeletionProtection", Refused, Reason.NOT_ALLOWED_NOW),
        (403, "ChargeTypeViolation", Refused, Reason.NOT_SUPPORTED),
        (404, "InvalidImageId.NotFound", Refused, Reason.REQUEST_REFUSED),
        (404, "InvalidVSwitchId.NotFound", Refused, Reason.REQUEST_REFUSED),
        (403, "InvalidUserData.Forbidden", Refused, Reason.REQUEST_REFUSED),
        (404, "InvalidInstanceId.NotFound", NotThere, Reason.PROVIDER_DELETED),
        (400, "Throttling", Throttled, Reason.RATE_LIMITED),
        (400, "Throttling.User", Throttled, Reason.RATE_LIMITED),
        (429, "Throttling.Resource", Throttled, Reason.RATE_LIMITED),
        (404, "InvalidAccessKeyId.NotFound", AccessRefused, Reason.AUTH_FAILED),
        (403, "InvalidAccessKeyId.Inactive", AccessRefused, Reason.AUTH_FAILED),
        (400, "SignatureDoesNotMatch", AccessRefused, Reason.AUTH_FAILED),
        (400, "IncompleteSignature", AccessRefused, Reason.AUTH_FAILED),
        (403, "Forbidden.RAM", AccessRefused, Reason.PERMISSION_MISSING),
        (403, "Forbbiden", AccessRefused, Reason.PERMISSION_MISSING),
        (400, "NotAuthorized", AccessRefused, Reason.PERMISSION_MISSING),
        (500, "InternalError", OutcomeUnknown, Reason.OUTCOME_UNKNOWN),
        (403, "Mayi.InternalError", OutcomeUnknown, Reason.OUTCOME_UNKNOWN),
        (503, "ServiceUnavailable", OutcomeUnknown, Reason.OUTCOME_UNKNOWN),
        (400, "IdempotenceParamNotMatch", OutcomeUnknown, Reason.OUTCOME_UNKNOWN),
        (400, "Idempotence.Processing", OutcomeUnknown, Reason.OUTCOME_UNKNOWN),
    ],
)
def test_each_error_code_has_its_reason(status, code, kind, reason):
    found = failure(answer_of(status), code, "words", is_write=True)
    assert (type(found), found.reason, found.raw_code) == (kind, reason, code)


def test_an_internal_error_of_a_read_is_the_provider_being_down():
    assert type(failure(answer_of(400), "InternalError", "words", is_write=False)) is Unavailable


def test_every_documented_code_of_the_calls_in_use_is_a_definite_no_or_an_unknown_outcome():
    apis = json.loads(needed(SPEC).read_text(encoding="utf-8"))["apis"]
    codes = {
        (int(status), each["errorCode"])
        for action in ("RunInstances", "StartInstance", "StopInstance", "RebootInstance", "DeleteInstance")
        for status, errors in apis[action]["errorCodes"].items()
        for each in errors
    }
    assert len(codes) > 300
    for status, code in codes:
        found = failure(answer_of(status), code, "words", is_write=True)
        assert found.is_definite != (
            "InternalError" in code or (status >= 500 and found.reason == Reason.OUTCOME_UNKNOWN)
        )
        if re.search(r"NoStock|NotOnSale", code):
            assert found.reason == Reason.NO_CAPACITY
        if re.search(r"^Quota|Balance", code):
            assert found.reason in {Reason.NO_QUOTA, Reason.NO_BALANCE}


def test_bss_says_no_inside_a_200(fake):
    answers = [
        (200, {"Arn": "acs:ram::1:user/x"}),
        (400, {"Code": "DryRunOperation", "Message": "passed"}),
        (200, {"Code": "NotAuthorized", "Message": "no", "Success": False}),
        (400, {"Code": "MissingParameter", "Message": "ImageId"}),
    ]
    check = answering("aliyun", fake.credentials, *answers, options={"regions": HOME}).check()
    assert (check.permissions["billing"], check.balance) == (False, None)


@pytest.mark.parametrize("status", [403, 404, 410])
@pytest.mark.parametrize("body", ["<html>blocked</html>", "not found", "{}"], ids=["page", "text", "object"])
def test_somebody_in_between_never_makes_a_machine_vanish(fake, status, body):
    provider = answering("aliyun", fake.credentials, *[(status, body)] * 2)
    with pytest.raises(Unavailable):
        provider.machine(f"{HOME}:i-1")
    with pytest.raises(OutcomeUnknown):
        provider.terminate(f"{HOME}:i-1")


# Bills


def test_bills_are_days_of_china_that_begin_in_the_span():
    start, end = datetime(2026, 11, 28, 15, 0, tzinfo=UTC), datetime(2026, 11, 30, 16, 0, tzinfo=UTC)
    assert [day.isoformat() for day in days_of(start, end)] == ["2026-11-29", "2026-11-30"]
    assert days_of(end, end) == []
    assert [day.isoformat() for day in days_of(end, end.replace(hour=17))] == ["2026-12-01"]


def test_charges_name_the_machines_that_are_still_there_and_are_exact(fake):
    there = fake.add("box")
    start = datetime(2026, 11, 28, 16, 0, tzinfo=UTC)
    charges = opened(fake).charges(start=start, end=start.replace(day=29))
    assert [(each.external_id, each.amount) for each in charges] == [
        (there.id, Money(Decimal("230.7288"), "CNY")),
        ("i-bpgone", Money(Decimal("0.1"), "CNY")),
    ]
    assert {(each.start, each.end) for each in charges} == {(start, start.replace(day=29))}
    assert {each["BillingDate"] for each in sent(fake, "DescribeInstanceBill")} == {"2026-11-29"}


# The provider's own examples


def example(name):
    """Return an example answer of the provider's documentation; skips the test when it is not at hand."""
    return (200, needed(f"alibaba/fixtures/{name}.json").read_text(encoding="utf-8"))


def test_the_documentations_instance_is_read(fake):
    last = (200, {"Instances": {"Instance": []}, "NextToken": ""})
    answers = [example("ecs.DescribeInstances"), last]
    [machine] = answering("aliyun", fake.credentials, *answers, options={"regions": HOME}).machines()
    assert (machine.gpu_model, machine.gpu_count, machine.region) == ("V100 16GB", 4, "cn-hangzhou-g")
    assert (machine.status, machine.raw_status) == (MachineStatus.PREEMPTED, "Running (Recycling)")
    assert machine.address == "42.112.**.**"
    assert machine.created_at == datetime(2017, 12, 10, 4, 4, tzinfo=UTC)


def test_the_documentations_balance_and_bill_are_read(fake):
    dry = (400, {"Code": "DryRunOperation", "Message": "passed"})
    answers = [(200, {"Arn": "x"}), dry, example("bss.QueryAccountBalance"), dry]
    check = answering("aliyun", fake.credentials, *answers, options={"regions": HOME}).check()
    assert check.balance == Money(Decimal("10000.00"), "CNY")
    assert check.permissions == {"list": True, "order": True, "billing": True}
    item = json.loads(example("bss.DescribeInstanceBill")[1], parse_float=Decimal)["Data"]["Items"][0]
    charge = charge_of(item, date(2020, 3, 20), {}, "CNY")
    assert (charge.external_id, charge.amount) == ("i-dadada", Money(Decimal("0.1"), "CNY"))


def test_the_documentations_price_is_the_trade_price():
    price = json.loads(example("ecs.DescribePrice")[1], parse_float=Decimal)["PriceInfo"]["Price"]
    assert instance_price(price) == Money(Decimal("3712.8"), "CNY")


# Requests


def test_what_holds_requests_against_the_metadata_finds_misspellings():
    needed(SPEC)
    assert aliyun_problems(SPEC, "StopInstance", {"InstanceId": "i-1", "StoppedMode": "StopCharging"}) == []
    assert len(aliyun_problems(SPEC, "StopInstance", {"InstanceID": "i-1", "StopMode": "x"})) == 3
    assert len(aliyun_problems(SPEC, "RunInstances", {"RegionId": "x", "Amount": "many", "DryRun": "yes"})) == 2


def test_nothing_secret_is_kept_of_a_machine(fake):
    machine = machine_of({**shown(fake), "Password": "hunter2", "VncPassword": "hunter2"}, HOME)
    assert "hunter2" not in repr(machine)
