"""An order on its pages: reviewed, guarded by prices and budget, placed once, and what a failed one says."""

import re
from datetime import UTC, datetime

import pytest
from django.urls import reverse

from fleet.models import Lease, Offer, Operation, ProviderAccount, Server
from panel.core.models import Event
from tests.frontend.leasing import ordered, running, simulated, work

pytestmark = pytest.mark.django_db


def review(client, offer, **body):
    return client.post(reverse("order", args=[offer.pk]), {"name": "box", "key": "k1", **body})


def test_an_order_is_reviewed_with_its_cost_and_then_placed_once(ada):
    account = simulated()
    offer = Offer.objects.get(account=account, key="h100-1-east")
    shown = review(ada, offer, max_price_per_hour="20").content.decode()
    assert "Order for ¥17.50 per hour" in shown
    assert "¥12,775.00 for a month" in shown
    assert not Operation.objects.exists()
    first = review(ada, offer, step="order", max_price_per_hour="20")
    again = review(ada, offer, step="order", max_price_per_hour="20")
    assert first["Location"] == again["Location"] == reverse("operation", args=[Operation.objects.get().pk])
    assert Server.objects.get().name == "box"


def test_an_order_above_its_highest_price_is_refused_at_the_form(ada):
    offer = Offer.objects.get(account=simulated(), key="h100-1-east")
    answer = review(ada, offer, max_price_per_hour="10")
    assert answer.status_code == 400
    assert "The offer&#x27;s price is above it." in answer.content.decode()
    assert review(ada, offer, step="order", max_price_per_hour="10").status_code == 400
    assert not Lease.objects.exists()


def test_a_used_up_budget_needs_a_reason(ada):
    account = simulated(monthly_budget="1")
    running(account)
    offer = Offer.objects.get(account=account, key="h100-1-east")
    assert "budget for this month is used up" in ada.get(reverse("order", args=[offer.pk])).content.decode()
    assert review(ada, offer).status_code == 400
    assert review(ada, offer, override_reason="a demo", step="order").status_code == 302


def test_an_order_that_uses_the_budget_up_within_the_month_is_warned_of(ada, time_machine):
    time_machine.move_to(datetime(2026, 3, 10, 12, tzinfo=UTC), tick=False)
    account = simulated(monthly_budget="500")
    offer = Offer.objects.get(account=account, key="h100-1-east")  # ¥17.50 an hour
    text = ada.get(reverse("order", args=[offer.pk])).content.decode()
    assert "used up in 28 h" in text
    assert (
        'class="bar" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label="Budget: 0% used" data-tone="warning"'
        in text
    )
    ProviderAccount.objects.update(monthly_budget=100_000)
    assert "used up in" not in ada.get(reverse("order", args=[offer.pk])).content.decode()


def test_a_sold_out_offer_cannot_be_clicked_and_says_why(ada):
    offer = Offer.objects.get(account=simulated(), key="b200-8-east")
    text = ada.get("/offers/").content.decode()
    assert reverse("order", args=[offer.pk]) not in text
    assert "Sold out: the provider has no such machine free." in text
    assert reverse("order", args=[offer.pk]) not in ada.get("/offers/compare/", {"offer": [offer.pk]}).content.decode()
    page = ada.get(reverse("order", args=[offer.pk])).content.decode()
    assert re.search(r"<button[^>]* disabled[^>]*>Review the order", page)


def test_a_sold_out_offer_says_what_stands_against_it(ada):
    offer = Offer.objects.get(account=simulated(), key="b200-8-east")
    assert "no such machine free" in ada.get(reverse("order", args=[offer.pk])).content.decode()
    assert review(ada, offer).status_code == 400


def test_a_name_that_is_taken_is_said_at_its_field(ada):
    account = simulated()
    ordered(account, "box")
    answer = review(ada, Offer.objects.get(account=account, key="h100-1-east"), step="order")
    assert answer.status_code == 400
    assert "There is a server of that name already." in answer.content.decode()


def test_a_name_that_another_order_takes_at_this_moment_is_said_at_its_field(ada, monkeypatch):
    account = simulated()
    ordered(account, "box")
    monkeypatch.setattr(
        "django.db.models.query.QuerySet.exists", lambda self: False
    )  # looked before the other was there
    answer = review(ada, Offer.objects.get(account=account, key="h100-1-east"), step="order", key="another")
    assert answer.status_code == 400
    assert "There is a server of that name already." in answer.content.decode()


def test_a_failed_order_says_that_nothing_is_left(ada):
    account = simulated(options={"capacity": "no"})
    operation = ordered(account)
    work()
    text = ada.get(reverse("operation", args=[operation.pk])).content.decode()
    assert "The provider has no such machine free at the moment." in text
    assert "Nothing: no machine was made." in text
    assert 'data-step="create" data-state="failed"' in text
    assert Event.objects.get(kind="operation.ended").data["asked_by"] == operation.actor_name


def test_a_failed_order_stands_in_the_list_by_the_name_that_was_ordered(ada, people):
    operation = ordered(simulated(options={"capacity": "no"}))
    work()
    people["admin"].language = "zh-hans"
    people["admin"].save()
    text = ada.get("/operations/").content.decode()
    assert ">trainer</a>" in text
    assert operation.lease.name not in text
    assert '<span class="word">失败</span>' in text  # and not 故障, the word for a broken card
