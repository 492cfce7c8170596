"""What is special about Alibaba Cloud ECS: regions, locks, stop modes, dry runs, bills."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from fleet.providers.aliyun import prices
from fleet.providers.aliyun.bills import charge_of, days_of
from fleet.providers.aliyun.client import host_of
from fleet.providers.aliyun.machines import STATUS, machine_of
from fleet.providers.aliyun.prices import instance_price
from fleet.providers.base import Billing, MachineStatus
from fleet.providers.errors import (
    AccessRefused,
    NotThere,
    NotUnderstood,
    Refused,
)
from fleet.reasons import Reason
from panel.core.money import Money
from tests.fakes.aliyun import AWAY, HOME, FakeAliyun
from tests.fakes.vendor import FakeMachine
from tests.providers.cloud_specs import aliyun_problems
from tests.providers.opening import answering, opened
from tests.providers.spec import needed

SPEC = "alibaba/ecs-2014-05-26.subset.described.json"


@pytest.fixture
def fake():
    prices.forget()
    yield FakeAliyun()
    prices.forget()


def shown(fake, **facts):
    """Return an instance as the API shows it."""
    return fake.instance(fake.add("box", **facts))


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
    assert [each["StoppedMode"] for each in fake.sent("StopInstance")] == [mode]
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
    assert {each["BillingDate"] for each in fake.sent("DescribeInstanceBill")} == {"2026-11-29"}


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
