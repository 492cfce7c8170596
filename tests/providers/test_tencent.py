"""What is special about Tencent Cloud CVM: errors inside a 200, offsets, restrictions, stop modes, terms, stepped prices."""

import base64
import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest

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
from fleet.providers.tencent.codes import failure
from fleet.providers.tencent.machines import STATUS, machine_of
from fleet.providers.tencent.offers import offers_of, price_of, stock_of
from fleet.reasons import Reason
from panel.core.money import Money
from tests.fakes.tencent import AWAY, HOME, SPEC, FakeTencent
from tests.fakes.vendor import FakeMachine
from tests.providers.cloud_specs import tencent_problems
from tests.providers.opening import answering, opened, order_for
from tests.providers.spec import needed


@pytest.fixture
def fake():
    return FakeTencent()


def sent(fake, action):
    """Return the bodies of every call of an action so far."""
    return [json.loads(each.content) for each in fake.requests if each.headers["x-tc-action"] == action]


def offer_of(fake, billing):
    """Return the offer of the T4 type in one way of paying."""
    return next(each for each in opened(fake).offers() if (each.billing, each.gpu_model) == (billing, "T4 16GB"))


def shown(fake, **facts):
    """Return an instance as the API shows it."""
    return fake.instance(fake.add("box", **facts))


def page(*instances, total):
    """Return an answer with a page of instances."""
    return (200, {"Response": {"TotalCount": total, "InstanceSet": list(instances), "RequestId": "1"}})


def listing(fake, *answers):
    """Return what an adapter of one region makes of these answers."""
    return answering("tencent", fake.credentials, *answers, options={"regions": HOME}).machines()


# Regions and pages


def test_machines_of_all_regions_are_listed_and_each_is_found_where_it_lies(fake):
    fake.machines[f"{AWAY}:ins-far"] = FakeMachine(f"{AWAY}:ins-far", "far", "running", gpu="GN7.2XLARGE32")
    near = fake.add("near")
    assert {machine.external_id for machine in opened(fake).machines()} == {near.id, f"{AWAY}:ins-far"}
    assert opened(fake, regions=HOME).machine(f"{AWAY}:ins-far").name == "far"
    assert {request.headers["x-tc-region"] for request in fake.requests} == {HOME, AWAY}


def test_pages_go_on_where_the_last_one_ended_even_when_it_was_shorter_than_asked(fake):
    for number in range(23):
        fake.add(f"box-{number}")
    assert len(opened(fake, regions=HOME).machines()) == 23
    assert [(each["Offset"], each["Limit"]) for each in sent(fake, "DescribeInstances")] == [
        (0, 100),
        (10, 100),
        (20, 100),
    ]


def test_a_list_that_changes_while_it_is_read_is_not_believed(fake):
    first, second = shown(fake), shown(fake)
    with pytest.raises(Unavailable):
        listing(fake, page(first, total=3), page(second, total=2))


def test_a_list_that_breaks_off_or_repeats_itself_is_an_error(fake):
    one = shown(fake)
    with pytest.raises(NotUnderstood):
        listing(fake, page(one, total=2), page(total=2))
    with pytest.raises(NotUnderstood):
        listing(fake, page(one, total=2), page(one, total=2))


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"Response": None},
        {"Response": {"RequestId": "1"}},
        {"Response": {"InstanceSet": {}, "TotalCount": 0}},
        "<html>",
    ],
    ids=["empty", "null", "no list", "object", "page"],
)
def test_an_answer_without_a_list_is_not_understood(fake, body):
    with pytest.raises(NotUnderstood):
        listing(fake, (200, body))


def test_null_is_an_empty_list(fake):
    assert listing(fake, (200, {"Response": {"InstanceSet": None, "TotalCount": 0}})) == []


# Permissions


def test_a_check_tells_what_the_key_may_do_without_doing_it(fake):
    check = opened(fake).check()
    assert check.identity.startswith("qcs::cam::uin/100000000001")
    assert check.balance == Money(Decimal("12345.67"), "CNY")  # told in fen
    assert check.permissions == {"list": True, "order": None, "billing": True}
    assert [each["DryRun"] for each in sent(fake, "RunInstances")] == [True]
    fake.forbidden = {"RunInstances", "DescribeAccountBalance", "DescribeInstances"}
    check = opened(fake).check()
    assert (check.permissions, check.balance) == ({"list": False, "order": False, "billing": False}, None)


@pytest.mark.parametrize(
    ("response", "may"),
    [
        ({"RequestId": "1"}, True),
        ({"Error": {"Code": "DryRunOperation", "Message": "would have been"}}, True),
        ({"Error": {"Code": "MissingParameter", "Message": "ImageId"}}, None),
        ({"Error": {"Code": "UnauthorizedOperation.PermissionDenied", "Message": "no"}}, False),
    ],
    ids=["accepted", "dry run", "stopped before", "denied"],
)
def test_a_dry_run_passes_with_or_without_its_code(fake, response, may):
    answers = [{"Arn": "qcs::cam"}, {"Balance": 0}, {"InstanceSet": [], "TotalCount": 0}, response]
    provider = answering(
        "tencent", fake.credentials, *[(200, {"Response": each}) for each in answers], options={"regions": HOME}
    )
    check = provider.check()
    assert check.permissions["order"] is may
    assert check.balance == Money(Decimal(0), "CNY")


# States


def test_every_documented_state_has_a_word():
    assert {
        "PENDING",
        "LAUNCH_FAILED",
        "RUNNING",
        "STOPPED",
        "STARTING",
        "STOPPING",
        "REBOOTING",
        "SHUTDOWN",
        "TERMINATING",
        "ENTER_RESCUE_MODE",
        "RESCUE_MODE",
        "EXIT_RESCUE_MODE",
        "ENTER_SERVICE_LIVE_MIGRATE",
        "SERVICE_LIVE_MIGRATE",
        "EXIT_SERVICE_LIVE_MIGRATE",
    } == set(STATUS)
    assert STATUS["SHUTDOWN"] != MachineStatus.STOPPED
    assert MachineStatus.UNKNOWN not in STATUS.values()


@pytest.mark.parametrize(
    ("facts", "status", "raw"),
    [
        ({"restrict": "PROTECTIVELY_ISOLATED"}, MachineStatus.LOCKED, "RUNNING (PROTECTIVELY_ISOLATED)"),
        ({"restrict": "EXPIRED", "isolated": "EXPIRE"}, MachineStatus.LOCKED, "RUNNING (EXPIRED, EXPIRE)"),
        ({"isolated": "ARREAR"}, MachineStatus.LOCKED, "RUNNING (ARREAR)"),
        ({"isolated": "MANMADE"}, MachineStatus.TERMINATING, "RUNNING (MANMADE)"),
        ({"restrict": "SOMETHING_NEW"}, MachineStatus.LOCKED, "RUNNING (SOMETHING_NEW)"),
        ({}, MachineStatus.RUNNING, "RUNNING"),
    ],
    ids=["security", "expired", "arrears", "returned", "new", "none"],
)
def test_restrictions_are_told_beside_the_state(fake, facts, status, raw):
    machine = machine_of(shown(fake, facts=facts), HOME)
    assert (machine.status, machine.raw_status) == (status, raw)


def test_a_spot_machine_that_was_ended_here_is_not_preempted(fake):
    provider = opened(fake)
    taken, ended = fake.add("taken", is_spot=True), fake.add("ended", is_spot=True)
    fake.preempt(taken.id)
    provider.terminate(ended.id)
    states = {machine.name: machine.status for machine in provider.machines()}
    assert states == {"taken": MachineStatus.PREEMPTED, "ended": MachineStatus.TERMINATING}


def test_the_renewal_date_is_a_subscriptions_alone(fake):
    assert machine_of(shown(fake), HOME).renews_at is None
    machine = machine_of(shown(fake, facts={"charge": "PREPAID"}), HOME)
    assert (machine.billing, machine.details["renewal"]) == (Billing.MONTHLY, "NOTIFY_AND_MANUAL_RENEW")
    assert machine.renews_at == datetime(2026, 12, 31, 8, 0, tzinfo=UTC)


def test_odd_answers_are_read_as_far_as_they_go():
    instance = {
        "InstanceId": "ins-1",
        "InstanceState": " RUNNING ",
        "InstanceType": "GN10Xp.2XLARGE40",
        "GPUInfo": {"GPUCount": "2.0", "GPUType": None},
        "PublicIpAddresses": None,
        "PrivateIpAddresses": ["10.0.0.5 "],
        "Placement": None,
        "Memory": "40",
        "LatestOperationErrorMsg": "secret_key=hunter2 was wrong",
        "LoginSettings": {"Password": "hunter2"},
    }
    machine = machine_of(instance, HOME)
    assert machine.status == MachineStatus.RUNNING
    assert (machine.gpu_model, machine.gpu_count, machine.memory_bytes) == ("V100 32GB", 2, 40 * 1024**3)
    assert (machine.address, machine.region) == ("10.0.0.5", HOME)
    assert "hunter2" not in repr(machine)


def test_a_part_of_a_card_is_no_card_and_a_machine_without_any_has_none(fake):
    part = machine_of(shown(fake, gpu="GN7vi.5XLARGE80", gpu_count=0.5), HOME)
    assert (part.gpu_count, part.details["gpu_share"]) == (None, "0.5")
    plain = machine_of({**shown(fake), "GPUInfo": None, "InstanceType": "S5.LARGE8"}, HOME)
    assert (plain.gpu_count, plain.gpu_model) == (0, "")


# Stopping and ending


@pytest.mark.parametrize(
    ("charge", "mode", "saves"),
    [
        ("POSTPAID_BY_HOUR", "STOP_CHARGING", True),
        ("PREPAID", "KEEP_CHARGING", False),
        ("SPOTPAID", "KEEP_CHARGING", False),
    ],
)
def test_the_stop_mode_is_always_sent_and_what_it_saves_is_read_back(fake, charge, mode, saves):
    machine = fake.add("box", facts={"charge": charge})
    provider = opened(fake)
    assert provider.machine(machine.id).is_stop_saving is None
    provider.stop(machine.id)
    assert [each["StoppedMode"] for each in sent(fake, "StopInstances")] == [mode]
    fake.advance()
    stopped = provider.machine(machine.id)
    assert stopped.is_stop_saving is saves
    assert provider.stop_effect(stopped.billing).saves_compute in {saves, None}


def test_a_type_that_cannot_be_stopped_without_charge_goes_on_running(fake):
    machine = fake.add("box")
    fake.can_stop_free = False
    with pytest.raises(Refused) as refused:
        opened(fake).stop(machine.id)
    assert refused.value.reason == Reason.NOT_SUPPORTED
    assert machine.status == "running"


def test_a_machine_stopped_in_the_console_without_saving_is_told_as_such(fake):
    assert machine_of(shown(fake, status="stopped", facts={"mode": "KEEP_CHARGING"}), HOME).is_stop_saving is False
    assert machine_of(shown(fake, status="stopped"), HOME).is_stop_saving is False


def test_starting_again_may_find_no_stock(fake):
    machine = fake.add("box", status="stopped", facts={"mode": "STOP_CHARGING"})
    fake.has_capacity = False
    with pytest.raises(Refused) as refused:
        opened(fake).start(machine.id)
    assert refused.value.reason == Reason.NO_CAPACITY


def test_a_subscription_is_ended_by_the_second_call_after_the_recycle_bin(fake):
    machine = fake.add("box", facts={"charge": "PREPAID"})
    provider = opened(fake)
    provider.terminate(machine.id)
    assert provider.machine(machine.id).status == MachineStatus.TERMINATING
    provider.terminate(machine.id)
    fake.advance()
    assert provider.machine(machine.id) is None


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
    [body] = sent(fake, "RunInstances")
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
    [body] = sent(fake, "RunInstances")
    assert (body["InstanceChargeType"], body["InstanceChargePrepaid"]) == ("PREPAID", prepaid)


def test_spot_follows_the_market_or_bids_what_was_given(fake):
    offer = offer_of(fake, Billing.SPOT)
    provider = opened(fake)
    provider.create(order_for(offer, fake, name="free"))
    provider.create(order_for(offer, fake, name="bound", maximum=Money(Decimal("2.50"), "CNY")))
    free, bound = sent(fake, "RunInstances")
    assert (free["InstanceChargeType"], "InstanceMarketOptions" in free) == ("SPOTPAID", False)
    options = {"MaxPrice": "2.50", "SpotInstanceType": "one-time"}
    assert bound["InstanceMarketOptions"] == {"MarketType": "spot", "SpotOptions": options}
    assert fake.complaints() == []


def test_what_is_left_empty_is_not_sent(fake):
    empty = dict.fromkeys(("security_group", "vpc", "subnet", "key"), "")
    opened(fake).create(order_for(offer_of(fake, Billing.HOURLY), fake, bandwidth_mbps="0", **empty))
    [body] = sent(fake, "RunInstances")
    assert not {"SecurityGroupIds", "VirtualPrivateCloud", "LoginSettings"} & set(body)
    assert body["InternetAccessible"] == {"InternetMaxBandwidthOut": 0}


@pytest.mark.parametrize("change", [{"subnet": ""}, {"disk_gb": "big"}, {"bandwidth_mbps": "-1"}], ids=str)
def test_an_order_that_cannot_be_meant_is_refused_before_anything_is_sent(fake, change):
    order = order_for(offer_of(fake, Billing.HOURLY), fake, **change)
    with pytest.raises(Refused) as refused:
        opened(fake).create(order)
    assert refused.value.permanent
    assert sent(fake, "RunInstances") == []


def test_a_script_fits_into_16_kb_of_base64_and_not_a_byte_more(fake):
    offer = offer_of(fake, Billing.HOURLY)
    provider = opened(fake)
    provider.create(order_for(offer, fake, name="full", script="#!/bin/sh\n".ljust(12 * 1024, "#")))
    assert len(sent(fake, "RunInstances")[0]["UserData"]) == 16 * 1024
    with pytest.raises(Refused, match="12289"):
        provider.create(order_for(offer, fake, name="over", script="#!/bin/sh\n".ljust(12 * 1024 + 1, "#")))


@pytest.mark.parametrize(
    "response", [{}, {"InstanceIdSet": []}, {"InstanceIdSet": ["a", "b"]}, {"InstanceIdSet": "ins-1"}], ids=str
)
def test_without_one_new_id_the_outcome_is_unknown(fake, response):
    order = order_for(offer_of(fake, Billing.HOURLY), fake)
    with pytest.raises(OutcomeUnknown):
        answering("tencent", fake.credentials, (200, {"Response": response})).create(order)


# Choices and images


def test_what_the_account_has_can_be_chosen_with_its_region_or_zone(fake):
    provider = opened(fake)
    images = provider.order_choices("image")
    assert next(iter(images.items())) == ("img-1", f"trained ({HOME})")
    assert len(images) == 24  # more than one page
    assert provider.order_choices("subnet")[f"subnet-{AWAY}"] == f"main ({AWAY}-6)"
    assert provider.order_choices("vpc")[f"vpc-{HOME}"] == f"vpc-{HOME} ({HOME})"
    assert provider.order_choices("security_group")[f"sg-{HOME}"] == f"sg-{HOME} ({HOME})"
    assert provider.order_choices("key") == {"skey-1": f"ops ({AWAY})"}
    assert provider.order_choices("disk_gb") == {}


def test_an_image_of_a_machine_is_ready_once_the_provider_has_saved_it(fake):
    provider, machine = opened(fake), fake.add("box")
    image = provider.snapshot(machine.id, "b" * 70)
    states = {each.external_id: (each.name, each.is_ready) for each in provider.snapshots()}
    assert states == {"img-1": ("trained", True), image: ("b" * 60, False)}
    with pytest.raises(NotThere):
        provider.snapshot(f"{HOME}:ins-gone", "x")


# Errors


@pytest.mark.parametrize(
    ("code", "kind", "reason"),
    [
        ("ResourceInsufficient.SpecifiedInstanceType", Refused, Reason.NO_CAPACITY),
        ("ResourceInsufficient.ZoneSoldOutForSpecifiedInstance", Refused, Reason.NO_CAPACITY),
        ("ResourcesSoldOut.SpecifiedInstanceType", Refused, Reason.NO_CAPACITY),
        ("ResourcesSoldOut.AvailableZone", Refused, Reason.NO_CAPACITY),
        ("ResourceUnavailable.InstanceType", Refused, Reason.NO_CAPACITY),
        ("InvalidParameterValue.InsufficientOffering", Refused, Reason.NO_CAPACITY),
        ("ResourceInsufficient.CidrBlock", Refused, Reason.REQUEST_REFUSED),
        ("InvalidAccount.InsufficientBalance", Refused, Reason.NO_BALANCE),
        ("InvalidAccount.UnpaidOrder", Refused, Reason.NO_BALANCE),
        ("InvalidParameterValue.InsufficientPrice", Refused, Reason.PRICE_ABOVE_MAX),
        ("LimitExceeded.InstanceQuota", Refused, Reason.NO_QUOTA),
        ("LimitExceeded.SpotQuota", Refused, Reason.NO_QUOTA),
        ("LimitExceeded.UserSpotQuota", Refused, Reason.NO_QUOTA),
        ("InstancesQuotaLimitExceeded", Refused, Reason.NO_QUOTA),
        ("OverQuota", Refused, Reason.NO_QUOTA),
        ("LimitExceeded.UserReturnQuota", Refused, Reason.NOT_SUPPORTED),
        ("FailedOperation.Unreturnable", Refused, Reason.NOT_SUPPORTED),
        ("UnsupportedOperation.StoppedModeStopCharging", Refused, Reason.NOT_SUPPORTED),
        ("UnsupportedOperation.InstanceStateStopped", Refused, Reason.NOT_ALLOWED_NOW),
        ("UnsupportedOperation.InstanceStateTerminating", Refused, Reason.NOT_ALLOWED_NOW),
        ("OperationDenied.InstanceOperationInProgress", Refused, Reason.NOT_ALLOWED_NOW),
        ("MutexOperation.TaskRunning", Refused, Reason.NOT_ALLOWED_NOW),
        ("UnsupportedOperation.InstancesProtected", Refused, Reason.NOT_ALLOWED_NOW),
        ("ResourceNotFound.InvalidZoneInstanceType", Refused, Reason.NO_OFFER),
        ("UnsupportedOperation.NoInstanceTypeSupportSpot", Refused, Reason.NO_OFFER),
        ("InvalidImageId.NotFound", Refused, Reason.REQUEST_REFUSED),
        ("InvalidParameterValue.LimitExceeded", Refused, Reason.REQUEST_REFUSED),
        ("AuthFailure.SignatureExpire", Refused, Reason.REQUEST_REFUSED),
        ("InvalidInstanceId.NotFound", NotThere, Reason.PROVIDER_DELETED),
        ("ResourceNotFound.InvalidInstanceIdNotFound", NotThere, Reason.PROVIDER_DELETED),
        ("RequestLimitExceeded", Throttled, Reason.RATE_LIMITED),
        ("RequestLimitExceeded.UinLimitExceeded", Throttled, Reason.RATE_LIMITED),
        ("AuthFailure.SecretIdNotFound", AccessRefused, Reason.AUTH_FAILED),
        ("AuthFailure.SignatureFailure", AccessRefused, Reason.AUTH_FAILED),
        ("AuthFailure.UnauthorizedOperation", AccessRefused, Reason.PERMISSION_MISSING),
        ("UnauthorizedOperation.CamNoAuth", AccessRefused, Reason.PERMISSION_MISSING),
        ("InternalError", OutcomeUnknown, Reason.OUTCOME_UNKNOWN),
        ("InternalError.TradeUnknownError", OutcomeUnknown, Reason.OUTCOME_UNKNOWN),
        ("InternalServerError", OutcomeUnknown, Reason.OUTCOME_UNKNOWN),
    ],
)
def test_each_error_code_has_its_reason(code, kind, reason):
    found = failure(code, "words", is_write=True)
    assert (type(found), found.reason, found.raw_code) == (kind, reason, code)


@pytest.mark.parametrize("status", [403, 404, 410])
@pytest.mark.parametrize("body", ["<html>blocked</html>", "not found", "{}"], ids=["page", "text", "object"])
def test_somebody_in_between_never_makes_a_machine_vanish(fake, status, body):
    provider = answering("tencent", fake.credentials, *[(status, body)] * 2)
    with pytest.raises(Unavailable):
        provider.machine(f"{HOME}:ins-1")
    with pytest.raises(OutcomeUnknown):
        provider.terminate(f"{HOME}:ins-1")


def test_an_internal_error_of_a_read_is_the_provider_being_down():
    assert type(failure("InternalError", "words", is_write=False)) is Unavailable


def example(name):
    """Return an example answer of the provider's documentation; skips the test when it is not at hand."""
    text = needed(f"tencent/fixtures/{name}.json").read_text(encoding="utf-8")
    return json.loads(text, parse_float=Decimal)["response"]


def test_the_documentations_instance_is_read():
    [instance] = example("cvm.DescribeInstances.0")["Response"]["InstanceSet"]
    machine = machine_of(instance, HOME)
    assert (machine.status, machine.raw_status) == (MachineStatus.LOCKED, "RUNNING (PROTECTIVELY_ISOLATED)")
    assert (machine.gpu_count, machine.memory_bytes, machine.region) == (0, 1024**3, "ap-guangzhou-3")
    assert (machine.address, machine.renews_at) == ("123.207.11.190", None)


def test_the_documentations_prices_are_read():
    [item] = example("cvm.DescribeZoneInstanceConfigInfos.0")["Response"]["InstanceTypeQuotaSet"]
    assert list(offers_of([item], [], HOME, [])) == []  # a type without a card
    as_gpu = {**item, "Gpu": 1, "InstanceType": "GN7.X", "InstanceChargeType": "PREPAID"}
    month, year = offers_of([as_gpu], [], HOME, [])
    assert (month.price_per_term, year.price_per_term) == (Money(Decimal(59), "CNY"), Money(Decimal("587.64"), "CNY"))
    hourly = example("cvm.InquiryPriceRunInstances.1")["Response"]["Price"]["InstancePrice"]
    assert price_of(hourly, ("UnitPriceDiscount", "UnitPrice"), Billing.HOURLY) == Money(Decimal("3.33"), "CNY")


def test_what_holds_requests_against_the_metadata_finds_misspellings():
    needed(SPEC)
    assert tencent_problems(SPEC, "StopInstances", {"InstanceIds": ["ins-1"], "StoppedMode": "STOP_CHARGING"}) == []
    assert len(tencent_problems(SPEC, "StopInstances", {"InstanceId": "ins-1", "ForceStop": True})) == 3
    order = {
        "Placement": {"zone": "z"},
        "InstanceCount": "1",
        "SystemDisk": {"DiskSize": 1.5},
        "SecurityGroupIds": "sg",
    }
    assert len(tencent_problems(SPEC, "RunInstances", order)) == 5
