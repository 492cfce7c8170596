"""Acts on a selection of leases: what they end and keep, confirmed once."""

import json

import pytest

from fleet.models import Operation, ProviderAccount
from tests.frontend.leasing import running, simulated

pytestmark = pytest.mark.django_db


def said(answer):
    """The messages that the next page shows."""
    return [str(message) for message in answer.wsgi_request._messages]


def test_a_selection_is_ended_once_its_number_is_typed(ada):
    account = simulated()
    leases = [running(account, name).pk for name in ("one", "two")]
    page = ada.get("/leases/bulk/", {"act": "end", "lease": leases}).content.decode()
    assert "¥35.00 per hour now" in page
    ada.post("/leases/bulk/", {"act": "end", "lease": leases, "typed_name": "3"})
    assert not Operation.objects.filter(kind="terminate").exists()
    ada.post("/leases/bulk/", {"act": "end", "lease": leases, "typed_name": "2"})
    assert Operation.objects.filter(kind="terminate").count() == 2


def test_a_selection_of_nothing_that_can_be_stopped_says_so(ada):
    lease = running(simulated(), state="stopped")
    answer = ada.get("/leases/bulk/", {"act": "stop", "lease": [lease.pk]})
    assert answer["Location"] == "/leases/"
    assert "not possible for any machine" in said(answer)[0]


def test_a_stop_of_a_selection_says_of_which_machine_it_saves_what(ada):
    one, other = running(simulated(), "one"), running(simulated("pods"), "other")
    path, both = "/leases/bulk/", {"act": "stop", "lease": [one.pk, other.pk]}
    assert "one:" not in ada.get(path, both).content.decode()  # the same for both
    ProviderAccount.objects.filter(name="pods").update(kind="runpod", credentials=json.dumps({"api_key": "k"}))
    text = ada.get(path, both).content.decode()
    assert "one: Stopped, only its disk goes on costing." in text
    assert "other: " in text


def test_what_a_selection_costs_is_one_sentence_with_the_marks_of_the_language(ada, people):
    lease = running(simulated())
    people["admin"].language = "zh-hans"
    people["admin"].save()
    assert (
        "1 台机器，目前每小时 ¥17.50" in ada.get("/leases/bulk/", {"act": "end", "lease": [lease.pk]}).content.decode()
    )


def test_the_end_of_a_selection_says_what_goes_on_costing_and_of_which_machine(ada):
    one, other = running(simulated(), "one"), running(simulated("pods"), "other")
    ProviderAccount.objects.filter(name="pods").update(kind="runpod", credentials=json.dumps({"api_key": "k"}))
    text = ada.get("/leases/bulk/", {"act": "end", "lease": [one.pk, other.pk]}).content.decode()
    assert "other: Network volumes are detached and go on costing." in text
    assert "one: " not in text


def test_a_machine_without_a_known_price_is_not_counted_as_free(ada):
    account = simulated()
    one, other = running(account, "one"), running(account, "other")
    path, both = "/leases/bulk/", {"act": "end", "lease": [one.pk, other.pk]}
    assert "price is not known" not in ada.get(path, both).content.decode()
    other.prices.all().delete()
    text = ada.get(path, both).content.decode()
    assert "2 machines, ¥17.50 per hour now" in text
    assert "and 1 whose price is not known" in text
