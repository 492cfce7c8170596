"""What is special to Lambda Cloud: typed codes, whole cents, no stop, exactly one SSH key and one machine a launch."""

import json
from decimal import Decimal

import httpx
import pytest

from fleet.providers.base import Billing, MachineStatus, Stock, abilities
from fleet.providers.errors import AccessRefused, NotThere, NotUnderstood, OutcomeUnknown, Refused
from fleet.providers.lambda_cloud.adapter import STATUS, USER_DATA_LIMIT, Lambda
from fleet.providers.lambda_cloud.client import ACCESS, MISSING, REFUSALS, SPACING
from fleet.reasons import Reason
from panel.core.money import Money
from tests.fakes.lambda_cloud import FakeLambda
from tests.providers.opening import NAME, SCRIPT, answering, bodies, opened, order_for
from tests.providers.spec import needed, openapi

KEY = FakeLambda.credentials


@pytest.fixture
def vendor():
    return FakeLambda()


def offer_of(provider, model="A10"):
    return next(each for each in provider.offers() if each.gpu_model.startswith(model) and each.stock != Stock.NONE)


def specified():
    """Return the parts of the vendor's specification by name."""
    return json.loads(needed("lambda/openapi-1.10.0.json").read_text())["components"]["schemas"]


def test_every_state_that_the_specification_names_has_a_meaning():
    assert set(STATUS) == set(specified()["InstanceStatus"]["enum"])


def test_the_fake_shows_instances_and_types_as_specified(vendor):
    specification = needed_openapi()
    shown = [vendor.instance(vendor.add("box", status=status)) for status in ("provisioning", "running", "terminating")]
    assert [problem for one in shown for problem in specification.part_problems("Instance", one)] == []
    types = vendor.answer(httpx.Request("GET", "https://cloud.lambda.ai/api/v1/instance-types")).json()["data"]
    assert specification.part_problems("InstanceTypes", types) == []


def needed_openapi():
    needed("lambda/openapi-1.10.0.json")
    return openapi("lambda/openapi-1.10.0.json")


def test_every_error_code_of_launching_and_ending_has_a_meaning():
    codes = {
        part["properties"]["code"]["const"]
        for name, part in specified().items()
        if name.startswith("ApiError") and not name.startswith(("ApiErrorFirewall", "ApiErrorFilesystemInUse"))
    }
    assert codes - {"global/internal-error"} == set(ACCESS) | set(REFUSALS) | set(MISSING)


def test_every_request_is_as_specified(vendor):
    needed("lambda/openapi-1.10.0.json")
    provider = opened(vendor)
    provider.check()
    for name in ("ssh_key", "image_family"):
        assert provider.order_choices(name)
    machine_id = provider.create(order_for(offer_of(provider), vendor))
    provider.machine(machine_id)
    vendor.advance()
    provider.reboot(machine_id)
    provider.terminate(machine_id)
    assert vendor.complaints() == []
    assert len({(request.method, request.url.path) for request in vendor.requests}) == 8


@pytest.mark.parametrize(
    ("status", "code", "kind", "reason"),
    [
        (401, "global/invalid-api-key", AccessRefused, Reason.AUTH_FAILED),
        (403, "global/account-inactive", AccessRefused, Reason.PERMISSION_MISSING),
        (403, "global/forbidden", AccessRefused, Reason.PERMISSION_MISSING),
        (403, "global/invalid-address", Refused, Reason.REQUEST_REFUSED),
        (400, "global/quota-exceeded", Refused, Reason.NO_QUOTA),
        (400, "global/invalid-parameters", Refused, Reason.REQUEST_REFUSED),
        (400, "instance-operations/launch/insufficient-capacity", Refused, Reason.NO_CAPACITY),
        (400, "instance-operations/launch/file-system-in-wrong-region", Refused, Reason.REQUEST_REFUSED),
        (409, "global/conflict", Refused, Reason.NOT_ALLOWED_NOW),
        (400, "provider/out-of-luck", Refused, Reason.REQUEST_REFUSED),
        (500, "global/internal-error", OutcomeUnknown, Reason.OUTCOME_UNKNOWN),
    ],
)
def test_a_code_becomes_a_reason(status, code, kind, reason):
    body = {"error": {"code": code, "message": "It is so.", "suggestion": "Do this.", "request_id": "r-1"}}
    provider = answering("lambda", KEY, (status, body))
    with pytest.raises(kind) as told:
        provider.reboot("i-1")
    assert (told.value.reason, told.value.raw_code, told.value.message) == (reason, code, "It is so. Do this.")


@pytest.mark.parametrize("status", [400, 404])
def test_a_thing_that_an_order_names_and_nobody_has_is_a_refusal(vendor, status):
    provider = opened(vendor)
    order = order_for(offer_of(provider), vendor, ssh_key="gone")
    vendor.answer = lambda request: (
        answer if (answer := FakeLambda.answer(vendor, request)).status_code == 200 else with_status(answer, status)
    )
    with pytest.raises(Refused) as told:
        provider.create(order)
    assert (told.value.reason, told.value.raw_code) == (Reason.REQUEST_REFUSED, "global/object-does-not-exist")
    assert vendor.machines == {}


def with_status(answer, status):
    answer.status_code = status
    return answer


def test_a_machine_that_is_not_there_cannot_be_rebooted():
    body = {"error": {"code": "global/object-does-not-exist", "message": "Specified instance does not exist."}}
    with pytest.raises(NotThere):
        answering("lambda", KEY, (404, body)).reboot("i-1")


def test_prices_are_whole_cents_of_the_whole_machine(vendor):
    provider = opened(vendor)
    assert offer_of(provider, "H100").price_per_hour == Money(Decimal("23.92"), "USD")
    assert offer_of(provider, "H100").gpu_count == 8
    vendor.add("box", gpu="gpu_8x_v100")
    [machine] = provider.machines()
    assert machine.price_per_hour == Money(Decimal("4.40"), "USD")
    assert (machine.gpu_model, machine.gpu_count, machine.raw_gpu) == ("V100 16GB", 8, "Tesla V100 (16 GB)")


def test_a_price_that_is_missing_or_nought_is_none(vendor):
    there = vendor.add("box")
    for price in (None, 0, "free"):
        instance = vendor.instance(there)
        instance["instance_type"] = {**instance["instance_type"], "price_cents_per_hour": price}
        provider = answering("lambda", KEY, (200, {"data": [instance]}))
        assert provider.machines()[0].price_per_hour is None


def test_offers_name_regions_with_capacity_and_types_without_any(vendor):
    offers = opened(vendor).offers()
    assert {(offer.raw_gpu, offer.region, offer.stock) for offer in offers} == {
        ("Tesla V100 (16 GB)", "", Stock.NONE),
        ("A10 (24 GB PCIe)", "us-east-1", Stock.MEDIUM),
        ("A10 (24 GB PCIe)", "us-west-1", Stock.MEDIUM),
        ("H100 (80 GB SXM5)", "us-west-3", Stock.MEDIUM),
    }
    assert all(offer.billing == Billing.HOURLY for offer in offers)


def test_a_type_without_capacity_is_refused_before_anything_is_sent(vendor):
    provider = opened(vendor)
    sold_out = next(each for each in provider.offers() if each.stock == Stock.NONE)
    calls = len(vendor.requests)
    with pytest.raises(Refused) as told:
        provider.create(order_for(sold_out, vendor))
    assert told.value.reason == Reason.NO_CAPACITY
    assert len(vendor.requests) == calls


def test_a_launch_names_one_key_and_carries_the_script_in_plain_text(vendor):
    provider = opened(vendor)
    provider.create(order_for(offer_of(provider), vendor))
    assert bodies(vendor, "POST", "/launch") == [
        {
            "region_name": "us-east-1",
            "instance_type_name": "gpu_1x_a10",
            "ssh_key_names": ["deploy"],
            "name": NAME,
            "user_data": SCRIPT,
            "image": {"family": "lambda-stack-24-04"},
        }
    ]
    provider.create(order_for(offer_of(provider), vendor, image_family=""))
    assert "image" not in bodies(vendor, "POST", "/launch")[1]


def test_a_script_longer_than_a_megabyte_is_refused_before_anything_is_sent(vendor):
    provider = opened(vendor)
    order = order_for(offer_of(provider), vendor, script="#!/bin/sh\n" + "x" * USER_DATA_LIMIT)
    calls = len(vendor.requests)
    with pytest.raises(Refused, match="1000000"):
        provider.create(order)
    assert len(vendor.requests) == calls


@pytest.mark.parametrize("ids", [None, [], ["a", "b"], [7]], ids=str)
def test_a_launch_whose_answer_names_not_one_machine_is_unknown(vendor, ids):
    order = order_for(offer_of(opened(vendor)), vendor)
    provider = answering("lambda", KEY, (200, {"data": {"instance_ids": ids}}))
    with pytest.raises(OutcomeUnknown):
        provider.create(order)


def test_nothing_secret_is_kept(vendor):
    vendor.add("box")
    shown = repr(opened(vendor).machines())
    assert "jupyter" not in shown
    assert "03b7d30d" not in shown


def test_what_can_be_done_now_is_what_lambda_says(vendor):
    there = vendor.add("box", status="provisioning")
    provider = opened(vendor)
    assert provider.machine(there.id).actions == frozenset()
    vendor.advance()
    assert provider.machine(there.id).actions >= {"restart", "terminate"}
    assert provider.machine(there.id).ssh_port == 22


def test_lambda_has_no_stop_and_says_so():
    assert abilities(Lambda) == {"offers", "order", "reboot"}
    effect = Lambda(credentials=KEY, options={}).stop_effect(Billing.HOURLY)
    assert (effect.saves_compute, list(effect.keeps_billing)) == (False, ["everything"])


def test_a_machine_that_was_ended_is_shown_until_it_is_gone(vendor):
    there = vendor.add("box")
    provider = opened(vendor)
    provider.terminate(there.id)
    assert provider.machine(there.id).status == MachineStatus.TERMINATING
    there.raw = "terminated"
    assert provider.machine(there.id) is None


@pytest.mark.parametrize("body", [{}, {"data": None}, {"data": {"id": 7}}, [], "<html>"], ids=str)
def test_an_odd_answer_is_not_understood(body):
    with pytest.raises(NotUnderstood):
        answering("lambda", KEY, (200, body)).machines()
    with pytest.raises(NotUnderstood):
        answering("lambda", KEY, (200, body)).machine("i-1")


def test_odd_members_of_a_machine_become_nothing():
    instance = {"id": " i-1 ", "status": "active", "instance_type": None, "region": None, "actions": None}
    [machine] = answering("lambda", KEY, (200, {"data": [instance, None, 3]})).machines()
    assert (machine.external_id, machine.status, machine.region, machine.actions) == ("i-1", "running", "", None)
    assert (machine.gpu_count, machine.memory_bytes, machine.price_per_hour, machine.ssh_port) == (None,) * 4


def test_launches_are_spaced_by_twelve_seconds():
    assert SPACING._seconds == {"": 1.0, "launch": 12.0}
