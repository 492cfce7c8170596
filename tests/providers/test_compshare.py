"""What is special about Compshare: signed forms, one region a call, prices by charge type."""

from datetime import UTC, datetime

import httpx
import pytest

from fleet.providers.base import Billing, MachineStatus
from fleet.providers.compshare.adapter import Compshare
from fleet.providers.compshare.machines import STATUS
from fleet.providers.compshare.signing import flattened, signature
from fleet.providers.errors import (
    AccessRefused,
    Refused,
)
from fleet.reasons import Reason
from tests.fakes.compshare import PASSWORD, FakeCompshare, failure, form_of, success
from tests.providers import ucloud_spec
from tests.providers.compshare_account import instead, opened, sent, yuan
from tests.providers.spec import needed


@pytest.fixture
def vendor():
    fake = FakeCompshare()
    yield fake
    assert fake.complaints() == []


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
