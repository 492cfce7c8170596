"""What is special to Vast.ai: asks and bids, errors under HTTP 200, 429s in three forms, machines that refused orders leave."""

import json
from datetime import UTC, datetime
from decimal import Decimal

import httpx
import pytest
import time_machine

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
from fleet.providers.vast.adapter import ONSTART_LIMIT, onstart
from fleet.providers.vast.client import SPACING
from fleet.providers.vast.facts import machine_of
from fleet.reasons import Reason
from panel.core.money import Money
from tests.fakes.vast import FakeVast, failed
from tests.providers.opening import NAME, SCRIPT, answering, bodies, opened, order_for
from tests.providers.spec import needed

KEY = FakeVast.credentials
DAY = {"start": datetime(2026, 11, 29, tzinfo=UTC), "end": datetime(2026, 11, 30, tzinfo=UTC)}
USD = "USD"


@pytest.fixture
def vendor():
    return FakeVast()


def offer_of(provider, billing=Billing.HOURLY):
    return next(each for each in provider.offers() if each.billing == billing and each.price_per_hour is not None)


def shown(vendor, **changes):
    """Return a machine whose members in the API's answer are changed."""
    return machine_of({**vendor.instance(vendor.add("box")), **changes})


def test_every_request_is_as_specified_but_for_what_is_known_to_be_wrong_in_it(vendor):
    needed("vast/openapi.yaml")
    provider = opened(vendor, countries="us, se")
    provider.check()
    provider.charges(**DAY)
    machine_id = provider.create(order_for(offer_of(provider, Billing.SPOT), vendor))
    for call in (provider.machine, provider.stop, provider.start, provider.reboot, provider.terminate):
        call(machine_id)
    provider.named(NAME)
    assert vendor.complaints() == []
    assert len({(request.method, request.url.path) for request in vendor.requests}) == 9


@pytest.mark.parametrize(
    ("status", "error", "words", "kind", "reason"),
    [
        (401, "auth_error", "Invalid user key", AccessRefused, Reason.AUTH_FAILED),
        (404, "auth_error", "Invalid user key", AccessRefused, Reason.AUTH_FAILED),
        (403, "auth_error", "This action requires login.", AccessRefused, Reason.AUTH_FAILED),
        (403, "", "Forbidden", AccessRefused, Reason.PERMISSION_MISSING),
        (403, "invalid_args", "error 403/3586: Offer 1 is not your own.", Refused, Reason.REQUEST_REFUSED),
        (400, "no_ssh_key_for_vm", "No SSH key", Refused, Reason.REQUEST_REFUSED),
        (400, "invalid_price", "error 400/3472: invalid_price", Refused, Reason.PRICE_ABOVE_MAX),
        (400, "invalid_args", "error 400/3467: Invalid args", Refused, Reason.REQUEST_REFUSED),
        (400, "insufficient_credit", "Your credit does not allow it", Refused, Reason.NO_BALANCE),
        (
            404,
            "invalid_args",
            "error 404/3603: no_such_ask Instance type by id 1 is not available.",
            Refused,
            Reason.NO_CAPACITY,
        ),
        (410, "no_such_ask", "Instance type 1 is no longer available.", Refused, Reason.NO_CAPACITY),
        (404, "not_found", "Instance not found", NotThere, Reason.PROVIDER_DELETED),
        (400, "invalid_args", "invalid instance_id", NotThere, Reason.PROVIDER_DELETED),
        (500, "", "oops", OutcomeUnknown, Reason.OUTCOME_UNKNOWN),
    ],
)
def test_a_code_becomes_a_reason(status, error, words, kind, reason):
    with pytest.raises(kind) as told:
        answering("vast", KEY, failed(status, error, words)).stop("101")
    assert (told.value.reason, told.value.message) == (reason, words)


@pytest.mark.parametrize(
    ("body", "kind", "reason"),
    [
        ({"success": False, "error": "no_such_ask", "msg": "gone"}, Refused, Reason.NO_CAPACITY),
        ({"success": False, "msg": "gone wrong"}, Refused, Reason.REQUEST_REFUSED),
        ({"success": False, "error": "not_found", "message": "Instance not found"}, NotThere, Reason.PROVIDER_DELETED),
    ],
    ids=["code", "words only", "not there"],
)
def test_a_failure_under_http_200_is_a_failure(body, kind, reason):
    with pytest.raises(kind) as told:
        answering("vast", KEY, (200, body)).start("101")
    assert told.value.reason == reason


@time_machine.travel(datetime(2026, 12, 1, 22, 30, tzinfo=UTC), tick=False)
@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        (httpx.Response(429, text="API requests too frequent: endpoint threshold=5.5"), 5.5),
        (httpx.Response(429, json={"detail": "API requests too frequent endpoint threshold=1.0"}), 1.0),
        (httpx.Response(429, text="threshold=1.0", headers={"Retry-After": "30"}), 30.0),
        (httpx.Response(429, json={"error": "search_quota_exceeded", "msg": "Daily quota"}), 5400.0),
        (httpx.Response(429, text="slow down"), None),
    ],
    ids=["text", "json", "header", "daily quota", "bare"],
)
def test_a_429_tells_when_again_in_each_of_its_forms(answer, seconds):
    with pytest.raises(Throttled) as told:
        answering("vast", KEY, answer).offers()
    assert told.value.retry_after_seconds == seconds


@pytest.mark.parametrize("is_ended", [True, False], ids=["ended", "not ended"])
def test_a_machine_that_a_refused_order_left_is_ended_or_told(vendor, is_ended):
    provider = opened(vendor)
    order = order_for(offer_of(provider), vendor)
    vendor.has_capacity, vendor.leftover = False, True
    real = vendor.answer
    if not is_ended:
        vendor.answer = lambda request: vendor.too_many(request) if request.method == "DELETE" else real(request)
    with pytest.raises(Refused if is_ended else OutcomeUnknown) as told:
        provider.create(order)
    assert (vendor.machines == {}) == is_ended
    if is_ended:
        assert told.value.reason == Reason.NO_CAPACITY
    assert [request.method for request in vendor.requests[-2:]] == ["PUT", "DELETE"]


def test_an_ask_is_offered_at_its_price_and_for_a_bid_with_the_same_disk(vendor):
    offers = {each.key: each for each in opened(vendor).offers()}
    assert offers["7001/hourly"].price_per_hour == Money(Decimal("0.41041666666666665"), USD)
    assert offers["7001/spot"].price_per_hour == Money(Decimal("0.17041666666666665"), USD)
    assert (offers["7001/hourly"].stock, offers["7001/hourly"].stock_count) == (Stock.LOW, 1)
    assert offers["7001/hourly"].memory_bytes == 128576 * 1024**2 // 2
    assert set(offers) == {"7001/hourly", "7001/spot", "7002/hourly", "7003/hourly"}


def test_what_an_ask_does_not_tell_stays_unknown(vendor):
    offers = {each.key: each for each in opened(vendor).offers()}
    assert offers["7002/hourly"].memory_bytes is None  # the host's processors are null
    assert (offers["7002/hourly"].gpu_model, offers["7002/hourly"].gpu_count) == ("H100 SXM 80GB", 8)
    assert offers["7003/hourly"].price_per_hour is None
    assert (offers["7003/hourly"].cpu_count, offers["7003/hourly"].disk_bytes) == (None, None)


def test_offers_are_read_to_the_end_by_id(vendor, monkeypatch):
    whole = [each.key for each in opened(vendor).offers()]
    monkeypatch.setattr("fleet.providers.vast.client.OFFERS_PAGE", 1)
    vendor.requests.clear()
    assert [each.key for each in opened(vendor).offers()] == whole
    assert [body["id"]["gt"] for body in bodies(vendor, "POST", "/bundles/")] == [0, 7001, 7002, 7003]


def test_offers_that_do_not_come_to_an_end_are_no_list(vendor, monkeypatch):
    monkeypatch.setattr("fleet.providers.vast.client.OFFERS_PAGE", 1)
    page = (200, {"offers": [{"id": 7, "gpu_name": "RTX 4090", "num_gpus": 1}]})
    with pytest.raises(NotUnderstood, match="end"):
        answering("vast", KEY, page, page, page, options={"min_reliability": "0.9"}).offers()


def test_options_of_the_account_narrow_the_search(vendor):
    assert {each.key for each in opened(vendor, min_reliability="0.99").offers()} == {
        "7001/hourly",
        "7001/spot",
        "7003/hourly",
    }
    assert {each.key for each in opened(vendor, countries="se").offers()} == {"7003/hourly"}
    for odd in ("most", "2", "-1", "nan"):
        with pytest.raises(Refused):
            opened(vendor, min_reliability=odd).offers()


def test_an_order_for_a_bid_says_the_maximum_and_without_one_the_least_bid(vendor):
    provider = opened(vendor)
    spot = offer_of(provider, Billing.SPOT)
    machine_id = provider.create(order_for(spot, vendor, maximum=Money(Decimal("0.25"), USD)))
    provider.create(order_for(spot, vendor))
    provider.create(order_for(offer_of(provider), vendor, maximum=Money(Decimal("0.50"), USD)))
    assert [body.get("price") for body in bodies(vendor, "PUT", "/asks/7001/")] == [0.25, 0.16, None]
    assert provider.machine(machine_id).billing == Billing.SPOT
    with pytest.raises(Refused) as told:
        provider.create(order_for(spot, vendor, maximum=Money(Decimal("0.10"), USD)))
    assert told.value.reason == Reason.PRICE_ABOVE_MAX
    with pytest.raises(Refused, match="dollars"):
        provider.create(order_for(spot, vendor, maximum=Money(Decimal(1), "EUR")))


def test_an_order_that_cannot_start_now_is_not_left_waiting(vendor):
    provider = opened(vendor)
    provider.create(order_for(offer_of(provider), vendor))
    [body] = bodies(vendor, "PUT", "/asks/7001/")
    assert (body["cancel_unavail"], body["target_state"], body["label"]) == (True, "running", NAME)
    assert (body["onstart"], body["disk"], body["env"]) == (SCRIPT, 50, {"-p 8000:8000": "1"})


def test_a_script_longer_than_the_limit_is_packed_and_runs_as_it_was(tmp_path):
    import subprocess

    padding = "# padding\n" * 2000
    script = f"#!/bin/sh\n{padding}echo ünï > {tmp_path}/made\n"
    packed = onstart(script)
    assert len(packed) <= ONSTART_LIMIT < len(script)
    subprocess.run(["bash", "-c", packed], check=True, timeout=20)
    assert (tmp_path / "made").read_text() == "ünï\n"


def test_a_script_that_cannot_be_packed_is_refused_before_anything_is_sent(vendor):
    import random

    script = "#!/bin/sh\n" + "".join(random.Random(1).choices("0123456789abcdefghijklmnopqrstuvwxyz", k=12000))
    provider = opened(vendor)
    order = order_for(offer_of(provider), vendor, script=script)
    calls = len(vendor.requests)
    with pytest.raises(Refused, match="4048"):
        provider.create(order)
    assert len(vendor.requests) == calls


@pytest.mark.parametrize(
    ("facts", "status"),
    [
        ({"actual_status": None}, MachineStatus.PROVISIONING),
        ({"actual_status": "loading"}, MachineStatus.PROVISIONING),
        ({"actual_status": "created"}, MachineStatus.PROVISIONING),
        ({"actual_status": "rebooting"}, MachineStatus.PROVISIONING),
        ({"actual_status": "running"}, MachineStatus.RUNNING),
        ({"actual_status": "running", "intended_status": "stopped"}, MachineStatus.STOPPING),
        ({"actual_status": "stopped", "intended_status": "stopped"}, MachineStatus.STOPPED),
        ({"actual_status": "exited", "intended_status": "stopped"}, MachineStatus.STOPPED),
        ({"actual_status": "frozen", "intended_status": "frozen"}, MachineStatus.STOPPED),
        ({"actual_status": "stopped", "intended_status": "running"}, MachineStatus.PROVISIONING),
        ({"actual_status": "exited"}, MachineStatus.FAILED),
        ({"actual_status": "unknown"}, MachineStatus.FAILED),
        ({"actual_status": "offline"}, MachineStatus.FAILED),
        ({"actual_status": "levitating"}, MachineStatus.UNKNOWN),
    ],
    ids=str,
)
def test_the_state_is_that_of_container_and_contract_together(vendor, facts, status):
    assert shown(vendor, **facts).status == status


def test_only_a_machine_for_a_bid_can_have_been_outbid(vendor):
    stopped = {"actual_status": "exited", "intended_status": "stopped", "cur_state": "stopped", "next_state": "stopped"}
    assert shown(vendor, **stopped, is_bid=True).status == MachineStatus.PREEMPTED
    assert shown(vendor, **stopped, is_bid=False).status == MachineStatus.STOPPED


@pytest.mark.parametrize(
    ("costs", "actual", "saves"),
    [
        ({"gpuCostPerHour": 0}, "exited", True),
        ({"gpuCostPerHour": Decimal("0.4")}, "exited", False),
        (None, "frozen", False),
        (None, "exited", None),
    ],
    ids=["nothing billed", "billed", "frozen", "not told"],
)
def test_what_a_stop_saves_is_read_back(vendor, costs, actual, saves):
    wanted = "frozen" if actual == "frozen" else "stopped"
    assert shown(vendor, instance=costs, actual_status=actual, intended_status=wanted).is_stop_saving is saves


def test_a_stopped_machine_costs_its_disk(vendor):
    there = vendor.add("box")
    provider = opened(vendor)
    provider.stop(there.id)
    vendor.advance()
    machine = provider.machine(there.id)
    assert (machine.status, machine.is_stop_saving) == (MachineStatus.STOPPED, True)
    assert machine.price_per_hour == Money(Decimal("0.4104"), USD)
    assert machine.price_stopped_per_hour == Money(Decimal("0.0104"), USD)
    assert bodies(vendor, "PUT", f"/instances/{there.id}/") == [{"state": "stopped"}]


def test_the_way_in_is_the_mapped_port_or_the_proxy(vendor):
    assert (shown(vendor).address, shown(vendor).ssh_port) == ("203.0.113.45", 20000)
    for ports in ({}, None, [8080, 8081], {"22/tcp": None}, {"22/tcp": [{"HostPort": "none"}]}):
        machine = shown(vendor, ports=ports)
        assert (machine.address, machine.ssh_port) == ("ssh6.vast.ai", 10600)


def test_nothing_secret_is_kept(vendor):
    text = repr(shown(vendor))
    for secret in ("SECRET", "df77e270", "joined"):
        assert secret not in text


def test_a_label_is_looked_for_by_the_vendor(vendor):
    vendor.add("other")
    there = vendor.add(NAME)
    assert [machine.external_id for machine in opened(vendor).named(NAME)] == [there.id]
    [request] = vendor.requests
    assert json.loads(request.url.params["select_filters"]) == {"label": {"eq": NAME}}


@pytest.mark.parametrize("instances", [None, [], {}], ids=str)
def test_an_instance_that_is_null_is_not_there(instances):
    assert answering("vast", KEY, (200, {"instances": instances})).machine("101") is None


def test_an_id_that_never_was_one_is_not_there_and_nothing_is_sent(vendor):
    provider = opened(vendor)
    assert provider.machine("../users") is None
    provider.terminate("../users")
    assert vendor.requests == []


def test_null_for_the_list_of_an_empty_account_is_an_empty_list():
    body = {"success": True, "instances": None, "total_instances": 0, "next_token": None}
    assert answering("vast", KEY, (200, body)).machines() == []
    with pytest.raises(NotUnderstood):
        answering("vast", KEY, (200, {**body, "total_instances": 3})).machines()


@pytest.mark.parametrize("body", ["{}", "[]", '{"success": true}', "<p>"])
def test_an_odd_answer_is_not_understood(body):
    for call in ("machines", "offers"):
        with pytest.raises(NotUnderstood):
            getattr(answering("vast", KEY, (200, body), options={}), call)()


def test_a_page_token_that_comes_again_is_no_list():
    page = (200, {"instances": [], "next_token": "abc", "total_instances": 9})
    with pytest.raises(NotUnderstood, match="end"):
        answering("vast", KEY, page, page, page).machines()


def test_charges_are_exact_and_come_from_all_pages(vendor):
    charges = opened(vendor).charges(**DAY)
    assert [(each.external_id, each.amount, each.kind) for each in charges] == [
        ("101", Money(Decimal("9.850"), USD), "instance"),
        ("", Money(Decimal("0.1"), USD), "volume"),
    ]
    day = json.loads(vendor.requests[0].url.params["select_filters"])["day"]
    assert day["lte"] - day["gte"] == 86399


def test_the_account_is_named_by_its_number_with_its_balance(vendor):
    found = opened(vendor).check()
    assert (found.identity, found.balance) == ("4711", Money(Decimal("41.070000000000001"), USD))
    assert found.permissions == {"list": True, "billing": True, "order": None}


def test_a_page_of_a_proxy_does_not_end_a_machine():
    page = "<html><body>404</body></html>"
    with pytest.raises(Unavailable):
        answering("vast", KEY, (404, page)).machine("101")
    with pytest.raises(OutcomeUnknown):
        answering("vast", KEY, (404, page)).terminate("101")


def test_calls_keep_the_intervals_that_the_vendor_names():
    assert SPACING._seconds == {"": 1.0, "one": 2.0, "search": 2.0, "end": 3.0, "order": 4.5}
