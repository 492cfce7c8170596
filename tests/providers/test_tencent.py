"""What is special about Tencent Cloud CVM: regions and offsets, restrictions, stop modes, choices."""

import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from fleet.providers.base import Billing, MachineStatus
from fleet.providers.errors import (
    NotThere,
    NotUnderstood,
    Refused,
    Unavailable,
)
from fleet.providers.tencent.machines import STATUS, machine_of
from fleet.providers.tencent.offers import offers_of, price_of
from fleet.reasons import Reason
from panel.core.money import Money
from tests.fakes.tencent import AWAY, HOME, SPEC, FakeTencent
from tests.fakes.vendor import FakeMachine
from tests.providers.cloud_specs import tencent_problems
from tests.providers.opening import answering, opened
from tests.providers.spec import needed


@pytest.fixture
def fake():
    return FakeTencent()


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
    assert [(each["Offset"], each["Limit"]) for each in fake.sent("DescribeInstances")] == [
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
    assert [each["DryRun"] for each in fake.sent("RunInstances")] == [True]
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
    assert [each["StoppedMode"] for each in fake.sent("StopInstances")] == [mode]
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


def test_asking_again_while_a_machine_is_ending_is_no_error(fake):
    machine, provider = fake.add("box"), opened(fake)
    provider.terminate(machine.id)
    provider.terminate(machine.id)
    assert provider.machine(machine.id).status == MachineStatus.TERMINATING
    fake.advance()
    provider.terminate(machine.id)
    assert provider.machine(machine.id) is None


def test_a_machine_that_may_not_be_returned_says_so(fake):
    answer = (200, {"Response": {"Error": {"Code": "FailedOperation.Unreturnable", "Message": "not returnable"}}})
    with pytest.raises(Refused) as refused:
        answering("tencent", fake.credentials, answer).terminate(f"{HOME}:ins-1")
    assert refused.value.reason == Reason.NOT_SUPPORTED


def test_a_subscription_is_ended_by_the_second_call_after_the_recycle_bin(fake):
    machine = fake.add("box", facts={"charge": "PREPAID"})
    provider = opened(fake)
    provider.terminate(machine.id)
    assert provider.machine(machine.id).status == MachineStatus.TERMINATING
    provider.terminate(machine.id)
    fake.advance()
    assert provider.machine(machine.id) is None


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


# The provider's own examples, and requests


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
