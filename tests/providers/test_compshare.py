"""What is special about Compshare: signed forms, RetCode inside HTTP 200, one region a call, quotes by charge type."""

import json
from datetime import UTC, datetime
from decimal import Decimal

import httpx
import pytest

from fleet.providers.base import Billing, MachineOrder, MachineStatus, Stock
from fleet.providers.compshare.adapter import Compshare
from fleet.providers.compshare.client import PAGE_SIZE
from fleet.providers.compshare.machines import STATUS
from fleet.providers.compshare.signing import flattened, signature
from fleet.providers.errors import (
    AccessRefused,
    NotThere,
    NotUnderstood,
    OutcomeUnknown,
    Refused,
    Throttled,
    Unavailable,
)
from fleet.reasons import Reason
from panel.core.money import Money
from tests.fakes.compshare import PASSWORD, FakeCompshare, failure, form_of, local, success
from tests.providers import ucloud_spec
from tests.providers.spec import needed


@pytest.fixture
def vendor(monkeypatch):
    monkeypatch.setattr("fleet.providers.http.Spacing.wait_for_turn", lambda *_: None)
    fake = FakeCompshare()
    yield fake
    assert fake.complaints() == []


def opened(vendor, **options):
    return Compshare(credentials=vendor.credentials, options=options, account="test", transport=vendor.transport)


def yuan(text):
    return Money.of(text, "CNY")


def order(**changes):
    facts = {
        "name": "fleetdeck-ab12cd34-7",
        "offer_key": "cn-wlcb-01/A800/8/Month",
        "gpu_model": "A800 80GB",
        "gpu_count": 8,
        "region": "cn-wlcb-01",
        "billing": Billing.MONTHLY,
        "details": {
            "region": "cn-wlcb",
            "zone": "cn-wlcb-01",
            "gpu_type": "A800",
            "cpu": 124,
            "memory_mib": 1843200,
            "boot_disk": "CLOUD_RSSD",
            "charge_type": "Month",
        },
        "options": {"image": "compshareImage-1", "disk_gb": "200"},
        "startup_script": "#!/bin/sh\necho joined\n",
    }
    return MachineOrder(**{**facts, **changes})


def sent(vendor, action):
    """Return the parameters of the requests of an action, without those that all have."""
    forms = [form_of(request) for request in vendor.requests]
    common = {"Action", "PublicKey", "Signature"}
    return [
        {key: value for key, value in form.items() if key not in common} for form in forms if form["Action"] == action
    ]


def instead(vendor, action, response):
    """Answer one action with this."""
    answer = vendor.answer
    vendor.answer = lambda request: response if form_of(request)["Action"] == action else answer(request)


# Signature


def test_the_documentations_example_is_signed_as_it_says():
    # docs.ucloud.cn/api/summary/signature
    form = flattened(
        {
            "Action": "DescribeUHostInstance",
            "Region": "cn-bj2",
            "Limit": 10,
            "PublicKey": "ucloudsomeone@example.com1296235120854146120",
        }
    )
    told = signature(form, "46f09bb9fab4f12dfc160dae12273d5332b5debe")
    assert told == "cba5cf5ec4d4233d206b1b54951e3787350a642f"


@pytest.mark.parametrize(
    ("params", "told"),
    [
        # Doctests of the SDK for Python, ucloud/core/auth: verify_ac and Credential.verify_ac.
        ({"foo": "bar"}, "634edc1bb957c0d65e5ab5494cf3b7784fbc87af"),
        ({"foo": "bar", "PublicKey": "my_public_key"}, "d4411ab30953fb0bbcb1e7313081f05e4e91a394"),
    ],
)
def test_the_sdks_examples_are_signed_as_it_does(params, told):
    assert signature(flattened(params), "my_private_key") == told


def test_parameters_are_flattened_as_the_sdk_does():
    assert flattened(
        {"Disks": [{"IsBoot": True, "Size": 100}, {"IsBoot": False}], "UHostIds": ["a", "b"], "Zone": None}
    ) == {
        "Disks.0.IsBoot": "true",
        "Disks.0.Size": "100",
        "Disks.1.IsBoot": "false",
        "UHostIds.0": "a",
        "UHostIds.1": "b",
    }


def test_a_request_that_is_signed_with_another_key_is_refused(vendor):
    other = {**vendor.credentials, "private_key": "another"}
    with pytest.raises(AccessRefused) as refused:
        Compshare(credentials=other, options={}, account="test", transport=vendor.transport).machines()
    assert (refused.value.reason, refused.value.raw_code) == (Reason.AUTH_FAILED, "171")


def test_the_project_goes_with_the_calls_that_know_one(vendor):
    opened(vendor, project_id="org-123").check()
    assert sent(vendor, "DescribeCompShareInstance")[0]["ProjectId"] == "org-123"
    opened(vendor, project_id="org-123").machines()
    assert "ProjectId" not in sent(vendor, "DescribeCompShareSupportZone")[0]


def test_the_requests_of_the_other_tests_are_held_against_the_sdks_trees():
    needed(ucloud_spec.NAME)
    wrong = httpx.Request(
        "POST",
        "https://api.compshare.cn/",
        data={"Action": "StopCompShareInstance", "UHostId": "u", "Zone": "z", "WithGpu": "x", "Force": "Yes"},
    )
    assert sorted(ucloud_spec.problems(wrong)) == [
        "StopCompShareInstance: Force=Yes is no Bool",
        "StopCompShareInstance: Region is missing",
        "StopCompShareInstance: WithGpu is not known",
    ]


# Machines


def test_machines_of_all_regions_are_listed_once(vendor):
    vendor.add("north")
    vendor.add("south", facts={"zone": "cn-sh2-01"})
    machines = opened(vendor, regions="cn-wlcb, cn-sh2").machines()
    assert [(machine.name, machine.region) for machine in machines] == [
        ("north", "cn-wlcb-01"),
        ("south", "cn-sh2-01"),
    ]
    asked = [form["Region"] for form in sent(vendor, "DescribeCompShareInstance")]
    assert asked == ["cn-wlcb", "cn-sh2", "cn-bj2", "cn-gd", "us-den"]


def test_a_machine_in_a_region_that_is_sold_no_more_is_still_there(vendor):
    machine = vendor.add("old", facts={"zone": "cn-bj2-03"})
    provider = opened(vendor)
    assert [each.external_id for each in provider.machines()] == [machine.id]
    assert provider.machine(machine.id).name == "old"
    provider.stop(machine.id)
    assert sent(vendor, "StopCompShareInstance")[0]["Region"] == "cn-bj2"


def test_a_call_that_ignores_the_region_changes_no_id_and_shows_no_machine_twice(vendor):
    machine = vendor.add("south", facts={"zone": "cn-sh2-01"})
    instead(vendor, "DescribeCompShareInstance", success(TotalCount=1, UHostSet=[vendor.host(machine)]))
    assert [each.external_id for each in opened(vendor).machines()] == [machine.id]


def test_an_id_without_a_region_never_looks_like_a_machine_that_has_ended(vendor):
    with pytest.raises(Refused):
        opened(vendor).machine("uhost-1")
    with pytest.raises(Refused):
        opened(vendor).terminate("uhost-1")


def test_one_machine_is_looked_for_in_its_region_alone(vendor):
    machine = vendor.add("south", facts={"zone": "cn-sh2-01"})
    opened(vendor).machine(machine.id)
    assert [form["Region"] for form in sent(vendor, "DescribeCompShareInstance")] == ["cn-sh2"]
    assert len(vendor.requests) == 1


def test_a_region_that_a_person_named_and_nobody_knows_is_an_error(vendor):
    with pytest.raises(Refused):
        opened(vendor, regions="cn-atlantis").machines()


def test_a_region_that_fails_is_no_empty_region(vendor):
    answer = vendor.answer
    vendor.answer = lambda request: (
        failure(226606, "The account has not been verified.")
        if form_of(request).get("Region") == "us-den"
        else answer(request)
    )
    with pytest.raises(AccessRefused):
        opened(vendor).machines()


def test_a_running_machine_has_its_price_its_memory_and_where_ssh_answers(vendor):
    vendor.add("box", gpu="4090_48G")
    [machine] = opened(vendor).machines()
    assert machine.price_per_hour == yuan("1.97")  # 1.92 and the disk's 0.05, each exact
    assert machine.price_stopped_per_hour == yuan("0.05")
    assert (machine.gpu_model, machine.gpu_memory_bytes) == ("RTX 4090 48GB", 48 * 1024**3)
    assert (machine.cpu_count, machine.memory_bytes) == (16, 64 * 1024**3)
    assert (machine.address, machine.ssh_port) == ("cpod-1tq6-s1.podtcp.compshare.cn", 28870)
    assert machine.created_at == datetime(2026, 11, 30, 8, tzinfo=UTC)
    assert machine.renews_at is None
    assert machine.is_stop_saving is None


def test_a_machine_that_is_off_has_its_public_address_and_what_the_stop_saves(vendor):
    vendor.add("box", status="stopped")
    [machine] = opened(vendor).machines()
    assert (machine.address, machine.ssh_port) == ("203.0.113.9", None)
    assert machine.is_stop_saving is True


@pytest.mark.parametrize(
    ("host", "saving"),
    [
        ({"PostPayShutdown": False}, False),
        ({"PostPayShutdown": None}, None),
        ({"ChargeType": "Dynamic"}, None),
        ({"ChargeType": "Month"}, False),
        ({"ChargeType": ""}, None),
    ],
    ids=["told_no", "not_told", "dynamic", "month", "empty"],
)
def test_what_a_stop_saves_is_what_the_vendor_says_of_it(vendor, host, saving):
    vendor.add("box", status="stopped", facts={"host": host})
    assert opened(vendor).machines()[0].is_stop_saving is saving


@pytest.mark.parametrize(
    ("host", "billing", "price"),
    [
        ({"ChargeType": "Month", "InstancePrice": 1460, "DiskPriceInfo": None}, Billing.MONTHLY, "2"),
        ({"ChargeType": "Day", "InstancePrice": 48, "DiskPriceInfo": []}, Billing.DAILY, "2"),
        ({"ChargeType": "Year", "InstancePrice": "8760", "DiskPriceInfo": []}, Billing.YEARLY, "1"),
        ({"ChargeType": "Dynamic", "DiskPriceInfo": [{"ChargeType": "Day", "Price": 2.4}]}, Billing.HOURLY, "2.02"),
        ({"DiskPriceInfo": {"ChargeType": "Postpay", "Price": 0.08}}, Billing.HOURLY, "2"),
        ({"CompShareImagePrice": 0.08, "DiskPriceInfo": []}, Billing.HOURLY, "2"),
        ({"CompShareImagePrice": 0.08, "GPU": 2}, Billing.HOURLY, None),
        ({"DiskPriceInfo": [{"ChargeType": "Moon", "Price": 1}]}, Billing.HOURLY, None),
        ({"InstancePrice": 0}, Billing.HOURLY, None),
        ({"InstancePrice": None}, Billing.HOURLY, None),
        ({"ChargeType": "Moon"}, Billing.HOURLY, None),
    ],
    ids=[
        "month",
        "day",
        "year_as_text",
        "hour_with_a_disk_by_the_day",
        "one_disk_by_itself",
        "image_for_one_card",
        "image_for_several_cards",
        "odd_disk",
        "nought",
        "null",
        "odd_charge_type",
    ],
)
def test_the_price_of_an_hour_is_exact_or_unknown(vendor, host, billing, price):
    vendor.add("box", facts={"host": host})
    [machine] = opened(vendor).machines()
    assert machine.billing == billing
    assert machine.price_per_hour == (None if price is None else yuan(price))


def test_a_prepaid_machine_has_the_end_of_its_term(vendor):
    vendor.add("box", facts={"charge_type": "Month"})
    assert opened(vendor).machines()[0].renews_at == datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("told", [True, "true", "Yes", 1])
@pytest.mark.parametrize("charge_type", ["Postpay", "", "Spot"])
def test_a_spot_machine_is_told_by_its_sign_whatever_its_charge_type(vendor, told, charge_type):
    vendor.add("box", facts={"host": {"IsSpot": told, "ChargeType": charge_type}})
    assert opened(vendor).machines()[0].billing == Billing.SPOT


def test_every_documented_state_has_our_word():
    documented = ["Initializing", "Install", "Starting", "Running", "Stopping", "Stopped", "Rebooting", "Resizing"]
    assert {*documented, "Install Fail"} == set(STATUS)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        *(({"State": raw}, status) for raw, status in sorted(STATUS.items())),
        ({"State": ""}, MachineStatus.UNKNOWN),
        ({"State": None}, MachineStatus.UNKNOWN),
        ({"State": " Running "}, MachineStatus.RUNNING),
        ({"State": "Stopped", "IsExpire": "Yes"}, MachineStatus.LOCKED),
        ({"State": "Running", "IsExpire": "Yes"}, MachineStatus.RUNNING),
        ({"State": "Stopped", "IsSpot": True}, MachineStatus.PREEMPTED),
    ],
    ids=str,
)
def test_a_state_is_read_as_its_word(vendor, host, status):
    vendor.add("box", facts={"host": host})
    assert opened(vendor).machines()[0].status == status


def test_passwords_and_notebook_addresses_are_not_kept(vendor):
    vendor.add("box")
    [machine] = opened(vendor).machines()
    assert PASSWORD not in repr(machine)
    assert vendor.host(next(iter(vendor.machines.values())))["Password"] not in repr(machine)
    assert "jupyter" not in repr(machine).lower()


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


# Errors


@pytest.mark.parametrize(
    ("code", "message", "error", "reason"),
    [
        (171, "Signature VerifyAC Error", AccessRefused, Reason.AUTH_FAILED),
        (172, "User Not Exists", AccessRefused, Reason.AUTH_FAILED),
        (299, "IAM permission error", AccessRefused, Reason.PERMISSION_MISSING),
        (226606, "账号未实名认证，请先实名认证", AccessRefused, Reason.PERMISSION_MISSING),
        (161, "Action not exist", Refused, Reason.NOT_SUPPORTED),
        (230, "Params [GpuType] not available", Refused, Reason.REQUEST_REFUSED),
        (520, "Lack of balance", Refused, Reason.NO_BALANCE),
        (8333, "cpu memory ratio not in 2:1 - 1:12", Refused, Reason.NO_OFFER),
        (226601, "实例已欠费，请前往订单管理支付欠费订单", Refused, Reason.NO_BALANCE),
        (226602, "实例已过期，请前往续费管理执行续费操作", Refused, Reason.CONTRACT_ENDED),
        (226603, "所选镜像不支持该卡型", Refused, Reason.REQUEST_REFUSED),
        (226604, "当前资源不足，请稍后再试", Refused, Reason.NO_CAPACITY),
        (226605, "更新镜像使用时长任务已存在", Refused, Reason.NOT_ALLOWED_NOW),
        (90001, "InstanceOperationInProgress", Refused, Reason.NOT_ALLOWED_NOW),
        (90002, "账户存在未支付订单", Refused, Reason.NO_BALANCE),
        (90003, "instance quota exceeded", Refused, Reason.NO_QUOTA),
        (90004, "request too frequently", Throttled, Reason.RATE_LIMITED),
        (90005, "balance not enough", Refused, Reason.NO_BALANCE),
        (90006, "something new", Refused, Reason.REQUEST_REFUSED),
    ],
)
def test_a_code_inside_http_200_has_its_reason(vendor, code, message, error, reason):
    machine = vendor.add("box")
    instead(vendor, "RebootCompShareInstance", failure(code, message))
    with pytest.raises(error) as told:
        opened(vendor).reboot(machine.id)
    assert (told.value.reason, told.value.raw_code, told.value.message) == (reason, str(code), message)
    assert told.value.is_definite


def test_a_failure_of_the_service_leaves_the_outcome_of_a_write_open(vendor):
    instead(vendor, "CreateCompShareInstance", failure(8433, "服务异常，请联系技术支持"))
    with pytest.raises(OutcomeUnknown):
        opened(vendor).create(order())
    instead(vendor, "DescribeCompShareInstance", failure(8433, "服务异常，请联系技术支持"))
    with pytest.raises(Unavailable):
        opened(vendor).machines()


@pytest.mark.parametrize("body", ["<html>maintenance</html>", "[]", "{}", '{"RetCode": "odd"}'])
def test_an_answer_without_a_code_is_not_understood_and_after_a_write_unknown(vendor, body):
    instead(vendor, "DescribeCompShareInstance", httpx.Response(200, text=body))
    with pytest.raises(NotUnderstood):
        opened(vendor).machines()
    instead(vendor, "CreateCompShareInstance", httpx.Response(200, text=body))
    with pytest.raises(OutcomeUnknown):
        opened(vendor).create(order())


# Odd lists


@pytest.mark.parametrize("total", [1, "1"], ids=["number", "text"])
def test_one_machine_by_itself_under_the_plural_key_is_one(vendor, total):
    machine = vendor.add("box")
    instead(vendor, "DescribeCompShareInstance", success(TotalCount=total, UHostSet=vendor.host(machine)))
    assert [each.name for each in opened(vendor).machines()] == ["box"]


@pytest.mark.parametrize(
    "members",
    [{"TotalCount": 0, "UHostSet": None}, {"TotalCount": 0}, {}],
    ids=["null", "absent", "nothing"],
)
def test_an_empty_account_has_no_machines(vendor, members):
    instead(vendor, "DescribeCompShareInstance", success(**members))
    assert opened(vendor).machines() == []


@pytest.mark.parametrize(
    "members",
    [
        {"TotalCount": 1, "UHostSet": "one"},
        {"TotalCount": 1, "UHostSet": [None]},
        {"TotalCount": 1, "UHostSet": [{"UHostId": "u"}, {"UHostId": "u"}]},
        {"TotalCount": 1, "UHostSet": [{"UHostId": "u"}, {"UHostId": "v"}]},
        {"TotalCount": 3, "UHostSet": [{"UHostId": "u"}]},
        {"TotalCount": 3, "UHostSet": []},
        {"UHostSet": [{"UHostId": f"u{number}"} for number in range(PAGE_SIZE)]},
    ],
    ids=["text", "null_entry", "twice", "more_than_told", "same_page_again", "breaks_off", "full_page_without_a_count"],
)
def test_a_list_of_another_form_is_no_list(vendor, members):
    instead(vendor, "DescribeCompShareInstance", success(**members))
    with pytest.raises(NotUnderstood):
        opened(vendor).machines()


def test_no_zones_would_mean_no_machines_and_is_therefore_an_error(vendor):
    vendor.add("box")
    instead(vendor, "DescribeCompShareSupportZone", success(ZoneInfo=[]))
    with pytest.raises(NotUnderstood):
        opened(vendor).machines()


def test_what_a_key_may_not_list_is_told_by_the_check(vendor):
    instead(vendor, "DescribeCompShareInstance", failure(299, "IAM permission error"))
    assert opened(vendor).check().permissions == {"list": False, "order": None}
