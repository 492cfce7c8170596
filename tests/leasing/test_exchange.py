"""Several currencies: apart where no rate was entered, together with the rate and its day where one was."""

from datetime import date
from decimal import Decimal

import pytest

from fleet.leasing.exchange import Rate, in_currency, joint, rate_for
from fleet.models import Offer, ProviderAccount
from fleet.providers.base import OfferFound, Stock
from fleet.providers.runpod.adapter import RunPod
from fleet.reasons import Reason
from fleet.selectors.costs import joint_total
from fleet.services.offers import offers_fetch
from fleet.services.planning import order_plan
from fleet.services.rates import rate_enter
from panel.core.clock import now
from panel.core.errors import Conflict
from panel.core.money import Money
from tests.leasing.conftest import ACTOR

DAY = date(2026, 11, 30)
JULY, MAY = date(2026, 7, 1), date(2026, 5, 1)
SUMS = {"USD": Money(Decimal(10), "USD"), "CNY": Money(Decimal(30), "CNY")}


def rate(base, quote, value, day=MAY):
    return Rate(base, quote, Decimal(value), day)


def test_the_latest_rate_of_the_day_holds_and_works_both_ways():
    rates = [rate("USD", "CNY", "7.0"), rate("USD", "CNY", "7.2", JULY), rate("USD", "CNY", "9", date(2027, 1, 1))]
    assert rate_for(rates, "CNY", "USD", on=DAY) == rates[1]
    assert rate_for(rates, "USD", "CNY", on=date(2026, 6, 1)) == rates[0]
    assert rate_for(rates, "USD", "CNY", on=date(2026, 1, 1)) is None
    assert rates[1].convert(Money(Decimal(72), "CNY")) == Money(Decimal(10), "USD")


def test_sums_are_joined_in_the_currency_that_the_rates_lead_to():
    found = joint(SUMS, [rate("USD", "CNY", "7.1")], on=DAY)
    assert found.total == Money(Decimal(101), "CNY")
    assert str(found.rates[0]) == "1 USD = 7.1 CNY (2026-05-01)"


@pytest.mark.parametrize("rates", [[], [rate("USD", "EUR", "0.9")]], ids=["none", "of another currency"])
def test_without_a_rate_sums_stay_apart(rates):
    assert joint(SUMS, rates, on=DAY) is None
    found = in_currency(SUMS, "CNY", rates, on=DAY)
    assert (found.total, found.missing) == (Money(Decimal(30), "CNY"), (Money(Decimal(10), "USD"),))


def test_one_currency_needs_no_joining():
    assert joint({"USD": SUMS["USD"]}, [rate("USD", "CNY", "7.1")], on=DAY) is None


def enter(value="7.1", day=MAY):
    return rate_enter(base="USD", quote="CNY", rate=Decimal(value), effective_on=day, actor=ACTOR)


def foreign(account, **guards):
    """Let the account, whose offers are in dollars, have guards in yuan."""
    ProviderAccount.objects.filter(pk=account.pk).update(currency="CNY", **guards)


def planned(account, **options):
    offers_fetch(account_id=account.pk)
    offer = Offer.objects.filter(account=account).order_by("pk").first()
    return order_plan(account_id=account.pk, offer_id=offer.pk, **options)


def test_a_budget_in_another_currency_says_that_it_does_not_count(rounds, account):
    rounds.order(account)
    rounds.step()
    rounds.pass_time(3600)
    foreign(account, monthly_budget=Decimal(1))
    plan = planned(account)
    assert plan.refusals == ()
    said = " ".join(plan.warnings)
    assert "The budget is in CNY and the offer in USD" in said
    assert "0.44 USD spent this month" in said


def test_with_a_rate_the_budget_counts_and_names_rate_and_day(rounds, account):
    rounds.order(account)
    rounds.step()
    rounds.pass_time(3600)
    foreign(account, monthly_budget=Decimal(50))
    enter("7.5")
    plan = planned(account)
    assert plan.used.total.rounded() == Money(Decimal("3.30"), "CNY").rounded()
    assert any("1 USD = 7.5 CNY (2026-05-01)" in sentence for sentence in plan.warnings)
    assert plan.budget_hours == int((50 - Decimal("3.30")) / (2 * Decimal("0.44") * Decimal("7.5")))
    assert [str(each) for each in plan.exchange_rates] == ["1 USD = 7.5 CNY (2026-05-01)"]
    foreign(account, monthly_budget=Decimal("3.30"))
    assert planned(account).refusals == (Reason.BUDGET_CAP,)


def test_a_highest_price_in_another_currency_is_compared_by_the_rate(rounds, account):
    foreign(account, max_price_per_hour=Decimal("3.20"))
    plan = planned(account)
    assert plan.refusals == (Reason.PRICE_ABOVE_MAX,)
    assert any("highest price is in CNY and the offer in USD" in sentence for sentence in plan.warnings)
    enter("7.2")
    assert planned(account).refusals == ()  # 0.44 × 7.2 = 3.168
    enter("7.3", JULY)
    assert planned(account).refusals == (Reason.PRICE_ABOVE_MAX,)


def without_price(monkeypatch):
    offer = OfferFound(key="k", gpu_model="RTX 4090 24GB", raw_gpu="x", gpu_count=1, stock=Stock.HIGH)
    monkeypatch.setattr(RunPod, "offers", lambda _self: [offer])


@pytest.mark.parametrize("where", ["account", "order"])
def test_a_price_that_is_not_told_does_not_pass_a_guard(rounds, account, monkeypatch, where):
    without_price(monkeypatch)
    assert planned(account).refusals == ()
    if where == "account":
        ProviderAccount.objects.update(max_price_per_hour=Decimal(5))
        assert planned(account).refusals == (Reason.PRICE_UNKNOWN,)
    else:
        assert planned(account, max_price_per_hour=Decimal(5)).refusals == (Reason.PRICE_UNKNOWN,)


def test_an_order_without_a_price_is_refused_where_there_is_a_maximum(rounds, account, monkeypatch):
    from fleet.services.ordering import order_place

    without_price(monkeypatch)
    offers_fetch(account_id=account.pk)
    order = {"account_id": account.pk, "offer_id": Offer.objects.get().pk, "server_name": "box", "actor": ACTOR}
    with pytest.raises(Conflict) as refused:
        order_place(**order, max_price_per_hour=Decimal(5), url="https://panel.example")
    assert refused.value.code == Reason.PRICE_UNKNOWN


@pytest.mark.django_db
def test_costs_of_several_currencies_are_joined_by_what_people_entered():
    assert joint_total(SUMS, at=now()) is None
    enter()
    found = joint_total(SUMS, at=now())
    assert found.total == Money(Decimal(101), "CNY")
    assert [each.effective_on for each in found.rates] == [MAY]
