"""Offers on their pages: filters, waiting, what is not told, several currencies, side by side."""

import pytest

from fleet.models import Offer
from fleet.services.accounts import account_create
from fleet.services.offers import offers_fetch
from frontend.leasing.offers import filtered, read_filter
from tests.frontend.leasing import ACTOR, simulated

pytestmark = pytest.mark.django_db


def test_offers_pass_the_filters_of_the_address(ada):
    simulated()

    def models(query):
        return [offer.gpu_model for offer in filtered(read_filter(query))]

    assert set(models({"model": "h100"})) == {"H100 SXM 80GB"}
    assert set(models({"memory": "141"})) == {"H200 SXM 141GB", "B200 180GB"}
    assert models({"price": "2"}) == ["RTX 4090 24GB"] * 3
    assert models({"stock": "no"}) == ["B200 180GB"]
    assert len(models({"billing": "spot"})) == 2
    assert set(models({"region": "south-1"})) == {"A100 SXM 80GB", "L40S 48GB"}
    assert models({"currency": "USD"}) == []
    assert models({"sort": "-gpu_price"})[0] == "B200 180GB"


def test_the_plan_of_an_offer_tells_the_price_of_one_gpu_as_the_list_does(ada):
    simulated()
    [offer] = [each for each in ada.get("/api/v1/offers/").json()["results"] if each["gpu_model"] == "A100 SXM 80GB"]
    plan = ada.get(f"/api/v1/offers/{offer['id']}/plan/").json()
    assert plan["offer"]["price_per_gpu"] == offer["price_per_gpu"] == "7.000000"


def test_offers_of_a_new_account_are_waited_for(ada):
    account = account_create(name="new", kind="simulated", credentials={}, actor=ACTOR)
    page = f"/offers/?account={account.pk}"
    assert "No offers yet" in ada.get(page).content.decode()
    offers_fetch(account_id=account.pk)
    assert "10 offers" in ada.get(page).content.decode()
    assert "Nothing matches" in ada.get(f"{page}&model=abacus").content.decode()


def test_an_offer_without_a_price_says_so_and_comes_last(ada):
    simulated()
    Offer.objects.filter(key="4090-1-north-spot").update(price_per_hour=None)
    assert list(filtered(read_filter({"sort": "-gpu_price"})))[-1].key == "4090-1-north-spot"
    assert "not told" in ada.get("/offers/?billing=spot").content.decode()


def test_prices_of_several_currencies_are_never_mixed_in_one_order_without_saying_so(ada):
    simulated()
    assert "several currencies" not in ada.get("/offers/").content.decode()
    Offer.objects.filter(key="h100-8-east").update(currency="USD")
    assert "several currencies (CNY, USD)" in ada.get("/offers/").content.decode()
    order = [offer.currency for offer in filtered(read_filter({}))]
    assert order == sorted(order)
    assert "several currencies" not in ada.get("/offers/?currency=USD").content.decode()
    assert "several currencies" not in ada.get("/offers/?sort=model").content.decode()


def test_four_offers_stand_side_by_side_and_the_fifth_is_named(ada):
    simulated()
    ids = list(Offer.objects.values_list("pk", flat=True)[:5])
    text = ada.get("/offers/compare/", {"offer": ids}).content.decode()
    assert text.count('<th scope="col">') == 1 + 4
    assert "1 was left out" in text
