"""What is rented on other pages: differences, the overview, a server's page, the search."""

import pytest
from django.urls import reverse

from fleet.models import Drift, Lease
from tests.frontend.leasing import everything, running, simulated, unknown

pytestmark = pytest.mark.django_db


def test_a_difference_is_accepted_ignored_or_ended_by_name(ada):
    rented = everything()
    ada.post(reverse("difference-accept", args=[rented["price"].pk]))
    assert rented["lease"].prices.get(component="compute", effective_to=None).amount == 18.5
    ada.post(reverse("difference-end", args=[rented["drift"].pk]), {"typed_name": "wrong"})
    assert Drift.objects.filter(resolved_at=None).count() == 1
    ada.post(reverse("difference-ignore", args=[rented["drift"].pk]), {"for": "1"})
    assert "forgotten-box" not in ada.get("/drift/").content.decode()
    assert "forgotten-box" in ada.get("/drift/?show=ignored").content.decode()


def test_the_overview_names_what_still_costs_money(ada):
    rented = everything()
    text = ada.get("/").content.decode()
    assert "stuck: termination unconfirmed, still billing ¥17.50 per hour." in text
    assert "forgotten-box in trial: Not known to the panel. It costs ¥136.00 per hour." in text
    assert '¥35.00 <small class="nowrap">per hour</small>' in text
    assert reverse("lease", args=[rented["stuck"].pk]) in text


def test_a_servers_page_says_who_is_paid_and_offers_to_order_it_again(ada, browser):
    rented = everything()
    path = reverse("server", args=[rented["server"].pk])
    text = ada.get(path).content.decode()
    assert 'id="server-lease"' in text
    assert '<b>¥17.50</b> <span class="nowrap">per hour</span>' in text
    assert 'data-dialog="act-stop"' in text
    assert 'data-dialog="act-stop"' not in browser("viewer").get(path).content.decode()
    Lease.objects.filter(pk=rented["lease"].pk).update(ended_at=rented["lease"].requested_at, state="terminated")
    assert "Order again" in ada.get(path).content.decode()
    answer = ada.get(reverse("order-again", args=[rented["server"].pk]))
    assert answer["Location"] == f"{reverse('order', args=[rented['offer'].pk])}?server={rented['server'].pk}"
    assert "Order trainer again" in ada.get(answer["Location"]).content.decode()


def test_the_search_finds_leases_and_accounts(ada):
    rented = everything()
    text = ada.get("/search/?q=trial").content.decode()
    assert reverse("provider", args=[rented["account"].pk]) in text
    text = ada.get(f"/search/?q={rented['lease'].name}").content.decode()
    assert reverse("lease", args=[rented["lease"].pk]) in text


def test_the_api_tells_the_lease_of_a_server(ada):
    rented = everything()
    found = ada.get(f"/api/v1/servers/{rented['server'].pk}/").json()["lease"]
    assert (found["id"], found["name"], found["state"]) == (rented["lease"].pk, rented["lease"].name, "active")
    price = found["prices"][0]
    assert (price["amount"], price["currency"]) == ("17.500000", "CNY")


def test_an_unknown_machine_without_a_price_says_so(ada):
    account = simulated()
    unknown(account, cost_per_hour=None, currency="", found={})
    assert "not told" in ada.get("/drift/").content.decode()
    assert "It costs" not in ada.get("/").content.decode()


def test_a_machine_that_is_not_what_was_ordered_can_be_ended_from_the_differences(ada):
    account = simulated()
    lease = running(account)
    facts = {"found": {"gpu_model": "L40S 48GB"}, "expected": {"gpu_model": "H100 SXM 80GB"}}
    drift = unknown(account, kind="spec_differs", external_id=lease.external_id, lease=lease, **facts)
    text = ada.get("/drift/").content.decode()
    assert "GPU model: H100 SXM 80GB → L40S 48GB" in text
    assert "End trainer for good?" in text
    path = reverse("difference-end", args=[drift.pk])
    ada.post(path, {"typed_name": "box"})
    assert Lease.objects.get().wanted == "running"
    ada.post(path, {"typed_name": "trainer"})
    assert Lease.objects.get().wanted == "ended"
    assert Drift.objects.get().resolution == "ended"


def test_facts_of_a_difference_carry_the_marks_of_the_language(ada, people):
    unknown(simulated())
    people["admin"].language = "zh-hans"
    people["admin"].save()
    text = ada.get("/drift/").content.decode()
    assert "GPU 数量：8" in text
    assert "数量:" not in text
