"""What is special to Verda: tokens, prices per GPU, errors told by words, scripts as objects, a stop that saves nothing."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import httpx
import pytest
import time_machine

from fleet.providers.base import Billing, MachineStatus, Stock, abilities
from fleet.providers.errors import (
    AccessRefused,
    NotThere,
    NotUnderstood,
    OutcomeUnknown,
    Refused,
    Throttled,
    Unavailable,
)
from fleet.providers.verda.adapter import SCRIPT_LIMIT, Verda
from fleet.providers.verda.facts import STATUS, machine_of
from fleet.reasons import Reason
from panel.core.money import Money
from tests.fakes.verda import SSH_KEY, FakeVerda, failed
from tests.providers.opening import NAME, SCRIPT, answering, bodies, opened, order_for
from tests.providers.spec import needed

KEY = FakeVerda.credentials
TOKEN = (200, {"access_token": "t", "refresh_token": "r", "scope": "s", "token_type": "Bearer", "expires_in": 3600})
# Every state that the vendor's SDKs for Python and Go name.
STATES = {
    "ordered",
    "provisioning",
    "running",
    "offline",
    "error",
    "starting_hibernation",
    "hibernating",
    "restoring",
    "new",
    "validating",
    "pending",
    "discontinued",
    "unknown",
    "notfound",
    "deleting",
    "no_capacity",
}


@pytest.fixture
def vendor():
    return FakeVerda()


def offer_of(provider, kind="1H100.80S.30V", billing=Billing.HOURLY):
    return next(each for each in provider.offers() if each.details["instance_type"] == kind and each.billing == billing)


def shown(vendor, currency="USD", **changes):
    """Return a machine whose members in the API's answer are changed."""
    gpu = changes.pop("kind", "2A6000.20V")
    return machine_of({**vendor.instance(vendor.add("box", gpu=gpu)), **changes}, currency)


def test_every_documented_state_has_a_meaning():
    assert set(STATUS) == STATES


@pytest.mark.parametrize(
    ("status", "code", "words", "kind", "reason"),
    [
        (401, "unauthorized_request", "Access token is missing", AccessRefused, Reason.AUTH_FAILED),
        (403, "forbidden_action", "Can't start a provisioning instance", Refused, Reason.NOT_ALLOWED_NOW),
        (400, "insufficient_funds", "Top up", Refused, Reason.NO_BALANCE),
        (402, "invalid_request", "Insufficient funds", Refused, Reason.NO_BALANCE),
        (400, "invalid_request", "size must be positive", Refused, Reason.REQUEST_REFUSED),
        (400, "invalid_request", "Not enough capacity", Refused, Reason.NO_CAPACITY),
        (400, "invalid_request", "The instance type is not available", Refused, Reason.NO_CAPACITY),
        (400, "invalid_request", "Quota exceeded", Refused, Reason.NO_QUOTA),
        (400, "invalid_request", "Invalid instance id", NotThere, Reason.PROVIDER_DELETED),
        (404, "not_found", "Not found", NotThere, Reason.PROVIDER_DELETED),
        (429, "", "Too many", Throttled, Reason.RATE_LIMITED),
        (500, "server_error", "Internal error", OutcomeUnknown, Reason.OUTCOME_UNKNOWN),
        (503, "service_unavailable", "The service is unavailable", OutcomeUnknown, Reason.OUTCOME_UNKNOWN),
    ],
)
def test_a_code_or_its_words_become_a_reason(status, code, words, kind, reason):
    answers = [TOKEN, failed(status, code, words)]
    with pytest.raises(kind) as told:
        answering("verda", KEY, *answers).start("i-1")
    assert (told.value.reason, told.value.message) == (reason, words)


@pytest.mark.parametrize(
    ("result", "kind"),
    [
        ({"status": "error", "error": "Invalid instance id", "statusCode": 404}, NotThere),
        ({"status": "error", "error": "Not found", "statusCode": 404}, NotThere),
        ({"status": "error", "error": "Can't start a running instance", "statusCode": 403}, Refused),
        ({"status": "error"}, Refused),
    ],
    ids=["unknown id", "404", "wrong state", "bare"],
)
def test_a_failure_in_a_list_of_results_is_a_failure(result, kind):
    results = [
        {"action": "start", "instanceId": "other", "status": "success"},
        {"action": "start", "instanceId": "i-1", **result},
    ]
    with pytest.raises(kind):
        answering("verda", KEY, TOKEN, (207, results)).start("i-1")
    answering("verda", KEY, TOKEN, (207, results)).start("other")


@pytest.mark.parametrize("body", ["", "[]", '[{"instanceId": "i-1", "status": "success"}]', "{}"])
def test_an_action_that_was_taken_says_nothing_or_success(body):
    answering("verda", KEY, TOKEN, (202, body)).start("i-1")


def test_one_token_serves_all_calls_until_its_time_is_over(vendor):
    start = datetime(2026, 12, 1, tzinfo=UTC)
    provider = opened(vendor)
    with time_machine.travel(start, tick=False) as clock:
        provider.machines()
        provider.offers()
        assert next(vendor.tokens) == 2
        clock.move_to(start + timedelta(seconds=3575))
        provider.machines()
        assert vendor.token == "token-3-SECRET"


def test_a_token_that_is_refused_before_its_time_is_replaced_once(vendor):
    provider = opened(vendor)
    provider.machines()
    vendor.token = "another"
    real = vendor.is_authorised
    assert provider.machines() == []
    vendor.is_authorised = lambda request: request.url.path.endswith("token") and real(request)
    vendor.requests.clear()
    with pytest.raises(AccessRefused):
        provider.machines()
    assert [request.url.path for request in vendor.requests] == ["/v1/instances", "/v1/oauth2/token", "/v1/instances"]


@pytest.mark.parametrize("status", [400, 401])
def test_credentials_that_give_no_token_are_refused(status):
    with pytest.raises(AccessRefused):
        answering("verda", KEY, failed(status, "invalid_request", "Invalid client")).machines()
    with pytest.raises(NotUnderstood):
        answering("verda", KEY, (200, {"token": "x"})).machines()


def test_a_token_that_cannot_be_had_means_that_nothing_was_ordered(vendor):
    order = order_for(offer_of(opened(vendor)), vendor)
    with pytest.raises(Unavailable):
        answering("verda", KEY, (502, "<html>")).create(order)


def test_a_price_of_one_gpu_becomes_that_of_the_machine_and_agrees_with_the_catalogue(vendor):
    offer = offer_of(opened(vendor), "2A6000.20V")
    assert offer.price_per_hour == Money(Decimal("1.98"), "USD")
    machine = shown(vendor, price_per_hour=Decimal("0.99"))
    assert (machine.gpu_count, machine.price_per_hour) == (2, offer.price_per_hour)
    assert shown(vendor, price_per_hour="0.99").price_per_hour == offer.price_per_hour
    assert shown(vendor, price_per_hour=0).price_per_hour is None


def test_a_price_of_one_processor_becomes_that_of_the_machine_without_a_gpu(vendor):
    machine = shown(vendor, kind="CPU.120V.480G", price_per_hour=Decimal("0.1"))
    assert machine.price_per_hour == Money(Decimal("3.0"), "USD")


def test_memory_is_told_for_all_cards_together(vendor):
    machine = shown(vendor)
    assert (machine.gpu_model, machine.gpu_memory_bytes) == ("A6000 48GB", 48 * 1024**3)


def test_offers_follow_stock_by_location_apart_for_spot(vendor):
    offers = {(each.details["instance_type"], each.region, each.billing): each for each in opened(vendor).offers()}
    assert {key: offer.stock for key, offer in offers.items()} == {
        ("1H100.80S.30V", "FIN-01", "hourly"): Stock.MEDIUM,
        ("1H100.80S.30V", "ICE-01", "hourly"): Stock.MEDIUM,
        ("2A6000.20V", "ICE-01", "hourly"): Stock.MEDIUM,
        ("1V100.6V", "", "hourly"): Stock.NONE,
        ("1H100.80S.30V", "", "spot"): Stock.NONE,
        ("2A6000.20V", "FIN-01", "spot"): Stock.MEDIUM,
        ("1V100.6V", "", "spot"): Stock.NONE,
    }
    assert offers["2A6000.20V", "FIN-01", "spot"].price_per_hour == Money(Decimal("0.70"), "USD")
    assert offers["1V100.6V", "", "spot"].price_per_hour is None


def test_the_catalogue_as_recorded_is_read():
    types = json.loads(needed("verda/gpuhunt_raw_instance_types.json").read_text())
    provider = answering("verda", KEY, TOKEN, (200, types), (200, []), (200, []))
    offers = {offer.details["instance_type"]: offer for offer in provider.offers() if offer.billing == Billing.HOURLY}
    assert {name: (each.gpu_model, each.gpu_count, str(each.price_per_hour)) for name, each in offers.items()} == {
        "1H100.80S.30V": ("H100 SXM 80GB", 1, "3.95 USD"),
        "2A6000.20V": ("A6000 48GB", 2, "1.98 USD"),
        "1V100.6V": ("V100 16GB", 1, "0.89 USD"),
    }


def test_both_names_of_the_parameter_for_spot_are_sent(vendor):
    opened(vendor).offers()
    asked = [dict(each.url.params) for each in vendor.requests if each.url.path.endswith("/instance-availability")]
    assert asked == [{"is_spot": "false", "isSpot": "false"}, {"is_spot": "true", "isSpot": "true"}]


@pytest.mark.parametrize(
    ("billing", "contract", "fate"), [(Billing.HOURLY, "PAY_AS_YOU_GO", None), (Billing.SPOT, "SPOT", "move_to_trash")]
)
def test_an_order_names_a_script_of_its_own(vendor, billing, contract, fate):
    provider = opened(vendor)
    machine_id = provider.create(order_for(offer_of(provider, "2A6000.20V", billing), vendor))
    [body] = bodies(vendor, "POST", "/v1/instances")
    assert (body["hostname"], body["contract"], body["is_spot"]) == (NAME, contract, billing == Billing.SPOT)
    assert (body["ssh_key_ids"], body["os_volume"]["size"]) == ([SSH_KEY], 50)
    assert body["os_volume"].get("on_spot_discontinue") == fate
    assert vendor.scripts == {body["startup_script_id"]: {"name": NAME, "script": SCRIPT}}
    assert provider.machine(machine_id).billing == billing


def test_a_refused_order_leaves_no_script(vendor):
    provider = opened(vendor)
    order = order_for(offer_of(provider), vendor)
    for code, words in (("invalid_request", "Not enough capacity"), ("not_found", "Image not found")):
        real = vendor.answer
        vendor.answer = lambda request, code=code, words=words, real=real: (
            failed(400, code, words) if vendor.is_create(request) else real(request)
        )
        with pytest.raises(Refused):
            provider.create(order)
        vendor.answer = real
        assert vendor.scripts == {}


def test_a_script_that_cannot_be_taken_away_hides_no_refusal(vendor):
    provider = opened(vendor)
    order = order_for(offer_of(provider), vendor)
    vendor.has_capacity = False
    real = vendor.answer
    vendor.answer = lambda request: vendor.too_many(request) if request.method == "DELETE" else real(request)
    with pytest.raises(Refused) as told:
        provider.create(order)
    assert told.value.reason == Reason.NO_CAPACITY


def test_an_order_whose_outcome_is_unknown_keeps_its_script(vendor):
    provider = opened(vendor)
    order = order_for(offer_of(provider), vendor)
    vendor.lost_replies = 1
    with pytest.raises(OutcomeUnknown):
        provider.create(order)
    assert len(vendor.scripts) == len(vendor.machines) == 1


@pytest.mark.parametrize("answer", [(502, "<html>"), (201, ""), (201, "<p>made</p>")], ids=str)
def test_a_script_whose_answer_is_lost_means_that_no_machine_was_ordered(vendor, answer):
    order = order_for(offer_of(opened(vendor)), vendor)
    with pytest.raises(Unavailable):
        answering("verda", KEY, TOKEN, answer).create(order)


@pytest.mark.parametrize("body", ["", "{}", "<html></html>", "two words"])
def test_an_order_whose_answer_is_no_id_is_unknown(vendor, body):
    order = order_for(offer_of(opened(vendor)), vendor)
    with pytest.raises(OutcomeUnknown):
        answering("verda", KEY, TOKEN, (201, "5c17-1"), (202, body)).create(order)


@pytest.mark.parametrize("body", ["deadc0de-a5d2", '"deadc0de-a5d2"', '{"id": "deadc0de-a5d2"}', " deadc0de-a5d2\n"])
def test_an_id_comes_as_text_or_as_json(vendor, body):
    order = order_for(offer_of(opened(vendor)), vendor)
    assert answering("verda", KEY, TOKEN, (201, "5c17-1"), (202, body)).create(order) == "deadc0de-a5d2"


def test_a_type_without_capacity_and_a_script_that_is_too_long_are_refused_before_anything_is_sent(vendor):
    provider = opened(vendor)
    sold_out = order_for(offer_of(provider, "1V100.6V"), vendor)
    too_long = order_for(offer_of(provider), vendor, script="#!/bin/sh\n" + "x" * SCRIPT_LIMIT)
    calls = len(vendor.requests)
    with pytest.raises(Refused) as told:
        provider.create(sold_out)
    assert told.value.reason == Reason.NO_CAPACITY
    with pytest.raises(Refused):
        provider.create(too_long)
    assert len(vendor.requests) == calls


def test_ending_takes_the_script_with_it_and_says_delete_once(vendor):
    provider = opened(vendor)
    machine_id = provider.create(order_for(offer_of(provider), vendor))
    provider.terminate(machine_id)
    assert vendor.scripts == {}
    assert bodies(vendor, "PUT", "/v1/instances") == [{"action": "delete", "id": [machine_id]}]


def test_ending_leaves_the_script_of_somebody_elses_machine(vendor):
    vendor.scripts["theirs"] = {}
    there = vendor.add("their-box", facts={"startup_script_id": "theirs"})
    opened(vendor).terminate(there.id)
    assert vendor.scripts == {"theirs": {}}


def test_ending_what_is_discontinued_already_is_a_success(vendor):
    there = vendor.add("box")
    provider = opened(vendor)
    vendor._act = lambda body: failed(403, "forbidden_action", "Can't discontinue a discontinued instance")
    provider.terminate(there.id)
    vendor._act = lambda body: failed(403, "forbidden_action", "Can't discontinue a provisioning instance")
    with pytest.raises(Refused) as told:
        provider.terminate(there.id)
    assert told.value.reason == Reason.NOT_ALLOWED_NOW


def test_a_machine_that_is_shut_down_costs_the_same(vendor):
    there = vendor.add("box")
    provider = opened(vendor)
    provider.stop(there.id)
    vendor.advance()
    machine = provider.machine(there.id)
    assert (machine.status, machine.is_stop_saving) == (MachineStatus.STOPPED, False)
    assert machine.price_per_hour == Money(Decimal("3.95"), "USD")
    effect = provider.stop_effect(machine.billing)
    assert (effect.saves_compute, list(effect.keeps_billing)) == (False, ["everything"])
    assert [body["action"] for body in bodies(vendor, "PUT", "/v1/instances")] == ["shutdown"]


def test_discontinued_is_taken_back_for_spot_and_gone_for_others(vendor):
    taken = shown(vendor, status="discontinued", is_spot=True)
    assert (taken.status, taken.is_stop_saving) == (MachineStatus.PREEMPTED, True)
    assert shown(vendor, status="discontinued").status == MachineStatus.GONE
    assert shown(vendor, status="no_capacity", is_spot=True).status == MachineStatus.FAILED


def test_prices_are_in_the_currency_of_the_account(vendor):
    vendor.currency = "eur"
    provider = opened(vendor, currency="EUR")
    assert provider.check().balance == Money(Decimal("120.5"), "EUR")
    assert {offer.price_per_hour.currency for offer in provider.offers() if offer.price_per_hour} == {"EUR"}
    assert [each.url.params["currency"] for each in vendor.requests if each.url.path.endswith("types")] == ["eur"]
    with pytest.raises(Refused, match="EUR"):
        opened(vendor).check()


def test_choices_are_the_projects_keys_and_images(vendor):
    provider = opened(vendor)
    assert provider.order_choices("ssh_key") == {SSH_KEY: "deploy"}
    assert provider.order_choices("image") == {"ubuntu-24.04-cuda-12.8-open-docker": "Ubuntu 24.04 + CUDA 12.8"}


def test_nothing_secret_is_kept(vendor):
    assert "SECRET" not in repr(shown(vendor))


def test_a_page_of_a_proxy_does_not_end_a_machine():
    page = "<!doctype html><html><body>404</body></html>"
    with pytest.raises(Unavailable):
        answering("verda", KEY, TOKEN, (404, page)).machine("i-1")


@pytest.mark.parametrize("body", ["{}", '"text"', "7", "<p>"])
def test_an_odd_answer_is_not_understood(body):
    with pytest.raises(NotUnderstood):
        answering("verda", KEY, TOKEN, (200, body)).machines()


def test_odd_members_of_a_machine_become_nothing():
    odd = {
        "id": "i-1",
        "status": "running",
        "gpu": None,
        "cpu": None,
        "gpu_memory": 80,
        "created_at": "soon",
        "ip": None,
    }
    [machine] = answering("verda", KEY, TOKEN, httpx.Response(200, json=[odd, None])).machines()
    assert (machine.status, machine.gpu_model, machine.address) == (MachineStatus.RUNNING, "", "")
    assert (machine.gpu_count, machine.price_per_hour, machine.created_at, machine.ssh_port) == (None,) * 4


def test_verda_reboots_nothing_by_api():
    assert abilities(Verda) == {"offers", "order", "stop", "spot"}
