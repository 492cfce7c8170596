"""What is special to RunPod: one status 400 for a broken rule and for no capacity, prices per GPU, a stop that ties to a host."""

import base64
import json
from datetime import UTC, datetime
from decimal import Decimal

import httpx
import pytest

from fleet.providers.base import Billing, MachineStatus, Stock, abilities
from fleet.providers.errors import (
    AccessRefused,
    NotThere,
    NotUnderstood,
    OutcomeUnknown,
    ProviderError,
    Refused,
    Throttled,
    Unavailable,
)
from fleet.providers.runpod.adapter import STATUS, STOCK, RunPod
from fleet.reasons import Reason
from panel.core.money import Money
from tests.fakes.runpod import FakeRunPod, problem
from tests.providers.opening import NAME, SCRIPT, answering, bodies, opened, order_for
from tests.providers.spec import needed, openapi

KEY = FakeRunPod.credentials
DAY = {"start": datetime(2026, 11, 29, tzinfo=UTC), "end": datetime(2026, 11, 30, tzinfo=UTC)}
PAGE = "<!DOCTYPE html><html><body>Attention required</body></html>"


@pytest.fixture
def vendor():
    return FakeRunPod()


def specified():
    """Return the parts of the vendor's specification by name."""
    return json.loads(needed("runpod/openapi-v2.json").read_text())["components"]["schemas"]


def test_every_state_and_stock_level_that_the_specification_names_has_a_meaning():
    assert set(STATUS) == set(specified()["PodStatus"]["enum"])
    assert set(STOCK) == set(specified()["AvailabilityLevel"]["enum"])


def test_every_request_is_as_specified(vendor):
    needed("runpod/openapi-v2.json")
    provider = opened(vendor)
    provider.check()
    provider.charges(**DAY)
    pod_id = provider.create(order_for(provider.offers()[0], vendor))
    vendor.advance()
    for call in (provider.machine, provider.stop, provider.start):
        call(pod_id)
    vendor.advance()
    provider.reboot(pod_id)
    vendor.advance()
    provider.terminate(pod_id)
    assert vendor.complaints() == []
    assert len({(request.method, request.url.path) for request in vendor.requests}) == 7


def test_the_fake_shows_pods_and_types_as_specified(vendor):
    needed("runpod/openapi-v2.json")
    specification = openapi("runpod/openapi-v2.json")
    pods = [vendor.pod(vendor.add("box", status=status)) for status in ("provisioning", "running", "stopped")]
    gpus = gpus_shown(vendor, opened(vendor))
    assert gpus
    assert [problem for pod in pods for problem in specification.part_problems("Pod", pod)] == []
    assert [problem for gpu in gpus for problem in specification.part_problems("GpuType", gpu)] == []


def gpus_shown(vendor, provider):
    provider.offers()
    catalogue = [request for request in vendor.requests if request.url.path == "/v2/catalog/gpus"]
    return [gpu for request in catalogue for gpu in vendor.answer(request).json()["gpus"]]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("There are no longer any instances available with the requested specifications.", Reason.NO_CAPACITY),
        ("There are not enough free GPUs on the host machine to start this pod.", Reason.NO_CAPACITY),
        ("This machine does not have the resources to deploy your pod.", Reason.NO_CAPACITY),
        ("mounts.persistent and mounts.network are mutually exclusive", Reason.REQUEST_REFUSED),
        ("image is required unless templateId is set", Reason.REQUEST_REFUSED),
        ("You have reached your spend limit of $80 per hour", Reason.NO_QUOTA),
        ("Your balance is too low to rent this pod", Reason.NO_BALANCE),
    ],
)
def test_a_400_is_no_capacity_or_a_rule_that_was_broken(words, reason):
    provider = answering("runpod", KEY, problem(400, "Bad Request", words))
    with pytest.raises(Refused) as told:
        provider.start("pod1")
    assert (told.value.reason, told.value.message) == (reason, words)


@pytest.mark.parametrize(
    ("status", "kind", "reason"),
    [
        (401, AccessRefused, Reason.AUTH_FAILED),
        (402, Refused, Reason.NO_BALANCE),
        (403, AccessRefused, Reason.PERMISSION_MISSING),
        (404, NotThere, Reason.PROVIDER_DELETED),
        (409, Refused, Reason.NOT_ALLOWED_NOW),
        (422, Refused, Reason.REQUEST_REFUSED),
        (429, Throttled, Reason.RATE_LIMITED),
        (500, OutcomeUnknown, Reason.OUTCOME_UNKNOWN),
    ],
)
def test_a_status_becomes_a_reason(status, kind, reason):
    provider = answering("runpod", KEY, problem(status, "Title", "In detail."))
    with pytest.raises(kind) as told:
        provider.stop("pod1")
    assert (told.value.reason, told.value.message, told.value.raw_code) == (reason, "In detail.", str(status))


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422])
def test_a_page_of_a_proxy_is_neither_a_refused_key_nor_a_pod_that_is_gone(status):
    with pytest.raises(Unavailable) as told:
        answering("runpod", KEY, (status, PAGE)).machine("pod1")
    assert "<" not in told.value.message
    with pytest.raises(OutcomeUnknown):
        answering("runpod", KEY, (status, PAGE)).terminate("pod1")


def test_a_429_in_the_form_of_rate_headers_tells_when_again():
    headers = {"RateLimit": '"minute";r=0;t=12, "hour";r=2800;t=1812'}
    with pytest.raises(Throttled) as told:
        answering("runpod", KEY, httpx.Response(429, text=PAGE, headers=headers)).machines()
    assert told.value.retry_after_seconds == 12


def test_a_key_without_a_permission_is_told_by_permission(vendor):
    real = vendor.answer
    vendor.answer = lambda request: (
        problem(403, "Forbidden", "missing scope") if "billing" in request.url.path else real(request)
    )
    assert opened(vendor).check().permissions == {"list": True, "billing": False, "order": None}


def test_the_cost_of_a_stopped_pod_is_not_known_rather_than_nought(vendor):
    there = vendor.add("box", gpu_count=2)
    provider = opened(vendor)
    assert provider.machine(there.id).price_per_hour == Money(Decimal("0.88"), "USD")
    provider.stop(there.id)
    stopped = provider.machine(there.id)
    assert (stopped.status, stopped.price_per_hour, stopped.is_stop_saving) == (MachineStatus.STOPPED, None, True)


def test_offers_are_counts_up_to_the_largest_machine_of_a_cloud_at_prices_for_the_whole(vendor):
    offers = {
        (each.details["cloud"], each.gpu_count): each for each in opened(vendor).offers() if "4090" in each.raw_gpu
    }
    assert set(offers) == {("SECURE", count) for count in (1, 2, 4, 8)} | {("COMMUNITY", count) for count in (1, 2, 4)}
    assert offers["SECURE", 8].price_per_hour == Money(Decimal("3.52"), "USD")
    assert offers["COMMUNITY", 4].price_per_hour == Money(Decimal("1.24"), "USD")


def test_stock_is_asked_for_by_cloud_and_count(vendor):
    offers = {
        (each.details["cloud"], each.gpu_count): each.stock
        for each in opened(vendor).offers()
        if "4090" in each.raw_gpu
    }
    assert offers["SECURE", 1] == Stock.HIGH
    assert offers["SECURE", 4] == Stock.LOW
    assert offers["SECURE", 8] == Stock.NONE
    assert offers["COMMUNITY", 1] == Stock.LOW
    assert offers["COMMUNITY", 2] == Stock.NONE


def test_a_pod_is_ordered_with_its_script_in_a_variable(vendor):
    provider = opened(vendor)
    provider.create(order_for(provider.offers()[0], vendor, disk_gb=" 60 ", volume_gb="0"))
    [body] = bodies(vendor, "POST", "/v2/pods")
    assert base64.b64decode(body["env"]["STARTUP_SCRIPT"]).decode() == SCRIPT
    assert "STARTUP_SCRIPT" in body["args"]
    assert (body["name"], body["disk"], body["cloud"], body["gpu"]["count"]) == (NAME, 60, "SECURE", 1)
    assert "mounts" not in body


@pytest.mark.parametrize("size", ["", "fifty", "-1", "1.5"])
def test_a_disk_that_is_no_number_is_refused_before_anything_is_sent(vendor, size):
    provider = opened(vendor)
    order = order_for(provider.offers()[0], vendor, disk_gb=size)
    calls = len(vendor.requests)
    with pytest.raises(Refused):
        provider.create(order)
    assert len(vendor.requests) == calls


@pytest.mark.parametrize("answer", [(201, "{}"), (201, ""), (200, '{"id": null}')], ids=str)
def test_a_creation_whose_answer_names_no_pod_is_unknown(vendor, answer):
    order = order_for(opened(vendor).offers()[0], vendor)
    with pytest.raises(OutcomeUnknown):
        answering("runpod", KEY, answer).create(order)


def test_a_thing_that_an_order_names_and_nobody_has_is_a_refusal(vendor):
    order = order_for(opened(vendor).offers()[0], vendor)
    with pytest.raises(Refused):
        answering("runpod", KEY, problem(404, "Not Found", "template not found")).create(order)


def test_a_stopped_pod_whose_cards_were_taken_does_not_start(vendor):
    there = vendor.add("box", status="stopped")
    vendor.has_capacity = False
    with pytest.raises(Refused) as told:
        opened(vendor).start(there.id)
    assert told.value.reason == Reason.NO_CAPACITY
    assert vendor.machines[there.id].status == "stopped"


def test_a_pod_in_the_wrong_state_is_not_rebooted(vendor):
    there = vendor.add("box", status="stopped")
    with pytest.raises(Refused) as told:
        opened(vendor).reboot(there.id)
    assert told.value.reason == Reason.NOT_ALLOWED_NOW


def test_variables_and_ways_in_are_not_kept(vendor):
    there = vendor.add("box")
    pod = {**vendor.pod(there), "env": {"TOKEN": "hf_SECRETSECRET"}, "args": "--key hf_SECRETSECRET"}
    [machine] = answering("runpod", KEY, (200, {"pods": [pod]})).machines()
    assert "SECRET" not in repr(machine)
    assert (machine.address, machine.ssh_port) == ("203.0.113.7", 43210)


def test_a_terminated_pod_is_gone(vendor):
    there = vendor.add("box", raw="TERMINATED")
    assert opened(vendor).machine(there.id) is None


def test_charges_are_exact_and_belong_to_pods(vendor):
    [charge] = opened(vendor).charges(**DAY)
    assert charge.amount == Money(Decimal("10.560000000000001"), "USD")
    assert (charge.external_id, charge.start, charge.end) == ("pod101", DAY["start"], DAY["end"])


@pytest.mark.parametrize("body", ["{}", "[]", '{"pods": null}', "pods"])
def test_an_answer_without_a_list_is_no_empty_list(body):
    with pytest.raises(NotUnderstood):
        answering("runpod", KEY, (200, body)).machines()


def test_odd_members_of_a_pod_become_nothing():
    pod = {"id": "pod1", "status": "RUNNING", "gpu": None, "ssh": None, "cost": "free", "actions": None, "createdAt": 0}
    [machine] = answering("runpod", KEY, (200, {"pods": [pod]})).machines()
    assert (machine.status, machine.gpu_model, machine.address) == (MachineStatus.RUNNING, "", "")
    assert (machine.gpu_count, machine.price_per_hour, machine.actions, machine.created_at) == (None,) * 4


def test_runpod_has_no_spot_and_a_stop_saves_all_but_the_volume():
    assert abilities(RunPod) == {"offers", "order", "reboot", "stop", "billing"}
    effect = RunPod(credentials=KEY, options={}).stop_effect(Billing.HOURLY)
    assert (effect.saves_compute, list(effect.keeps_billing)) == (True, ["disk"])


def test_a_lost_answer_to_an_action_is_unknown(vendor):
    there = vendor.add("box")
    vendor.lost_replies = 1
    with pytest.raises(ProviderError) as told:
        opened(vendor).stop(there.id)
    assert isinstance(told.value, OutcomeUnknown)
    assert vendor.machines[there.id].status == "stopped"
