"""What is rented on other pages: differences, the overview, a server's page, the search."""

from datetime import timedelta

import pytest
from django.urls import reverse

from fleet.models import Drift, Lease
from frontend.formatting import ago
from frontend.leasing.lease_page import renewal_words
from panel.core.clock import now
from tests.frontend.leasing import everything, running, simulated, unknown

pytestmark = pytest.mark.django_db


@pytest.fixture
def rented_lease(people):
    return running(simulated())


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


@pytest.mark.parametrize(
    ("left", "changes", "said"),
    [
        (timedelta(days=4, hours=20), {}, "trainer: its paid term ends in 5 days and does not renew itself."),
        (timedelta(days=4, hours=20), {"is_renewing": True}, "trainer: its paid term renews itself in 5 days."),
        (timedelta(days=-2), {}, "trainer: its paid term ended 2 days ago."),
        (timedelta(days=8), {}, ""),
        (timedelta(days=8), {"reminder_days": 9}, "trainer: its paid term ends in 8 days and does not renew itself."),
    ],
)
def test_the_overview_names_terms_that_end_within_their_reminder_days(ada, left, changes, said):
    lease = running(simulated())
    Lease.objects.filter(pk=lease.pk).update(renews_at=now() + left, **changes)
    text = ada.get("/").content.decode()
    assert (said in text) if said else "paid term" not in text


@pytest.mark.parametrize(
    ("left", "said"),
    [
        (timedelta(days=4, hours=20), "5 days left"),
        (timedelta(days=4, hours=2), "4 days left"),
        (timedelta(hours=23, minutes=40), "24 hours left"),
        (timedelta(minutes=50), "1 hour left"),
        (timedelta(seconds=-1), "The paid term is over."),
    ],
)
def test_what_is_left_of_a_term_is_rounded_as_the_time_beside_it(rented_lease, left, said):
    at = now()
    rented_lease.renews_at = at + left
    assert renewal_words(rented_lease, at) == said
    if said != "The paid term is over." and "1 hour" not in said:
        assert ago(at + left, at) == f"in {said.removesuffix(' left')}"


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
