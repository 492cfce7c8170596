"""The page of exchange rates: what holds and what is to come, who may enter one, and what a bad one is told."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from django.urls import reverse

from fleet.models import ExchangeRate
from panel.accounts.models import AuditEntry
from tests.frontend.html import Page

pytestmark = pytest.mark.django_db
PATH = "/exchange-rates/"
ENTER = "/exchange-rates/enter/"
TYPED = {"base": "usd", "quote": "CNY", "rate": "7.1", "effective_on": "2026-03-01"}


def rate(base="USD", quote="CNY", on="2026-03-01", value="7.1"):
    return ExchangeRate.objects.create(
        base=base, quote=quote, effective_on=on, rate=Decimal(value), entered_by_name="ada",
        entered_at=datetime(2026, 3, 1, tzinfo=UTC),
    )  # fmt: skip


def test_a_rate_is_entered_and_stands_in_the_list(ada):
    assert "No exchange rate yet" in ada.get(PATH).content.decode()
    assert ada.post(ENTER, TYPED)["Location"] == PATH
    entered = ExchangeRate.objects.get()
    assert (entered.base, entered.quote, entered.rate, str(entered.effective_on)) == (
        "USD",
        "CNY",
        Decimal("7.1"),
        "2026-03-01",
    )
    text = ada.get(PATH).content.decode()
    assert "1 USD = 7.1 CNY" in text
    assert "2026-03-01" in text
    assert AuditEntry.objects.filter(action="rate.enter").count() == 1


def test_a_rate_of_the_same_day_is_replaced(ada):
    rate()
    ada.post(ENTER, {**TYPED, "rate": "7.2"})
    assert ExchangeRate.objects.get().rate == Decimal("7.2")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"quote": "USD"}, "A rate is between two currencies."),
        ({"rate": "0"}, "A rate is above zero."),
        ({"rate": "-1"}, "A rate is above zero."),
        ({"rate": "0.000000001"}, "8 decimal places"),
        ({"rate": "NaN"}, "Enter a number."),
        ({"base": "dollars"}, "Three letters, as in CNY or USD."),
        ({"effective_on": "yesterday"}, "Enter a valid date."),
    ],
)
def test_a_rate_that_cannot_be_is_told_why_at_its_field(ada, changed, said):
    answer = ada.post(ENTER, {**TYPED, **changed})
    assert answer.status_code == 400
    assert said in answer.content.decode()
    assert not ExchangeRate.objects.exists()


def test_a_rate_says_whether_it_holds_was_followed_or_is_to_come(ada, time_machine):
    time_machine.move_to(datetime(2026, 3, 10, 12, tzinfo=UTC), tick=False)
    rate(on="2026-02-01", value="7.3")
    rate(on="2026-03-01")
    rate(base="CNY", quote="USD", on="2026-04-01", value="0.14")  # the same two the other way round
    rate(base="EUR", on="2026-01-01", value="7.9")
    rows = [row.text for row in Page(ada.get(PATH).content.decode()).all("tr")[1:]]
    words = {"0.14": "not yet in force", "7.1 ": "in force", "7.3": "followed", "7.9": "in force"}
    for number, word in words.items():
        assert [word in row for row in rows if number in row] == [True], (number, rows)


def test_a_rate_is_removed(ada):
    row = rate()
    path = reverse("exchange-rate-remove", args=[row.pk])
    assert ada.get(path).status_code == 405
    assert path in ada.get(PATH).content.decode()
    assert ada.post(path)["Location"] == PATH
    assert not ExchangeRate.objects.exists()
    assert "There is no such rate." in ada.post(path, follow=True).content.decode()


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_who_does_not_manage_accounts_sees_rates_and_changes_none(browser, role):
    row = rate()
    client = browser(role)
    page = Page(client.get(PATH).content.decode())
    assert not [form for form in page.all("form") if "exchange-rates" in (form.get("action") or PATH)]
    assert client.post(ENTER, TYPED).status_code == 403
    assert client.post(reverse("exchange-rate-remove", args=[row.pk])).status_code == 403
    assert ExchangeRate.objects.count() == 1
