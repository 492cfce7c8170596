"""Contracts that people write down: changed, tied to a server, closed, exported."""

import pytest
from django.urls import reverse

from fleet.models import Lease
from tests.frontend.leasing import ordered, simulated

pytestmark = pytest.mark.django_db
CONTRACT = {
    "name": "rack 7",
    "landlord": "=IDC",
    "billing": "monthly",
    "started_at": "2026-01-01T00:00",
    "reminder_days": "7",
    "price-TOTAL_FORMS": "2",
    "price-INITIAL_FORMS": "0",
    "price-0-component": "compute",
    "price-0-amount": "9000",
    "price-0-currency": "cny",
    "price-0-unit": "month",
    "price-0-runs_while_stopped": "on",
    "price-1-component": "setup",
    "price-1-currency": "CNY",
    "price-1-unit": "once",
}


def test_a_contract_is_written_down_changed_tied_and_closed(ada):
    answer = ada.post("/leases/new/", CONTRACT)
    lease = Lease.objects.get()
    assert answer["Location"] == reverse("lease", args=[lease.pk])
    (price,) = lease.prices.all()
    assert (price.amount, price.currency, price.unit) == (9000, "CNY", "month")
    changed = {**CONTRACT, "notes": "by the window", "price-0-amount": "9500"}
    ada.post(reverse("lease-terms", args=[lease.pk]), changed)
    assert Lease.objects.get().notes == "by the window"
    assert [str(row.amount.normalize()) for row in lease.prices.order_by("effective_from")] == ["9E+3", "9.5E+3"]
    server = ordered(simulated(), "box").server
    Lease.objects.exclude(pk=lease.pk).delete()
    ada.post(reverse("lease-tie", args=[lease.pk]), {"server": server.pk})
    assert Lease.objects.get().server == server
    ada.post(reverse("contract-close", args=[lease.pk]), {"ended_at": "2026-11-01T00:00"})
    assert Lease.objects.get().ended_at is not None


def test_an_amount_without_a_currency_is_refused(ada):
    assert ada.post("/leases/new/", {**CONTRACT, "price-0-currency": ""}).status_code == 400
    assert ada.post("/leases/new/", {**CONTRACT, "price-0-currency": "yuan"}).status_code == 400
    assert not Lease.objects.exists()


def test_a_spreadsheet_runs_nothing_that_a_landlord_is_called(ada):
    ada.post("/leases/new/", CONTRACT)
    text = ada.get("/leases/csv/").content.decode()
    assert ",'=IDC," in text
    assert "9000" not in text.splitlines()[0]
