"""What people do on the pages of what is rented: add an account, order once, stop, end, adopt, write a contract down."""

import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.urls import reverse

from fleet.models import BilledInterval, Drift, Lease, Offer, Operation, ProviderAccount, Server, SimulatedMachine
from fleet.providers.base import AccountCheck
from fleet.providers.errors import AccessRefused
from fleet.services.accounts import account_create
from fleet.services.offers import offers_fetch
from frontend.leasing.offers import filtered, read_filter
from panel.core.clock import now
from panel.core.models import Event
from tests.frontend.leasing import ACTOR, everything, ordered, running, simulated, unknown, work

pytestmark = pytest.mark.django_db
SECRET = "sk-very-secret-key-0123456789"


def said(answer):
    """The messages that the next page shows."""
    return [str(message) for message in answer.wsgi_request._messages]


def test_an_account_is_added_from_the_form_of_its_kind(ada):
    answer = ada.post(
        "/providers/new/?kind=simulated", {"name": "trial", "option_boot_seconds": "3", "option_capacity": "yes"}
    )
    account = ProviderAccount.objects.get()
    assert answer["Location"] == reverse("provider", args=[account.pk])
    assert (account.name, account.options["boot_seconds"], account.health) == ("trial", "3", "ok")
    assert "order and end machines" in ada.get(answer["Location"]).content.decode()


def test_the_guards_of_a_new_account_name_its_currency(ada):
    assert "In CNY." in ada.get("/providers/new/?kind=simulated").content.decode()
    runpod = ada.get("/providers/new/?kind=runpod").content.decode()
    assert "In USD." in runpod
    assert "Where the provider shows keys" in runpod


def test_a_refused_key_shows_the_providers_words_and_not_the_key(ada, monkeypatch):
    def refused(self):
        raise AccessRefused("The API key is not valid.")

    monkeypatch.setattr("fleet.providers.runpod.adapter.RunPod.check", refused)
    answer = ada.post("/providers/new/?kind=runpod", {"name": "pods", "credential_api_key": SECRET})
    text = answer.content.decode()
    assert answer.status_code == 400
    assert "The API key is not valid." in text
    assert SECRET not in text
    assert not ProviderAccount.objects.exists()


def test_a_key_is_replaced_and_never_shown(ada, monkeypatch):
    account = simulated()
    ProviderAccount.objects.update(kind="runpod", credentials=json.dumps({"api_key": SECRET}), credential_hint="…6789")
    monkeypatch.setattr("fleet.providers.runpod.adapter.RunPod.check", lambda self: AccountCheck(identity="me"))
    assert SECRET not in ada.get(reverse("provider-edit", args=[account.pk])).content.decode()
    ada.post(reverse("provider-key", args=[account.pk]), {"credential_api_key": SECRET[::-1]})
    stored = ProviderAccount.objects.get()
    assert SECRET[::-1] in stored.credentials
    assert SECRET[::-1] not in ada.get(reverse("provider", args=[account.pk])).content.decode()


def test_an_account_with_open_leases_says_why_it_stays(ada):
    account = simulated()
    running(account)
    assert "cannot be removed yet" in ada.get(reverse("provider", args=[account.pk])).content.decode()
    ada.post(reverse("provider-remove", args=[account.pk]), {"typed_name": "trial"})
    assert ProviderAccount.objects.get().removed_at is None
    Lease.objects.update(ended_at=Lease.objects.get().requested_at)
    ada.post(reverse("provider-remove", args=[account.pk]), {"typed_name": "another"})
    assert ProviderAccount.objects.get().removed_at is None
    ada.post(reverse("provider-remove", args=[account.pk]), {"typed_name": "trial"})
    assert ProviderAccount.objects.get().removed_at is not None


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


def act(client, lease, name, **body):
    return client.post(reverse("lease-act", args=[lease.pk, name]), body)


def test_a_stop_says_what_it_saves_and_begins_an_operation(ada):
    lease = running(simulated())
    text = ada.get(reverse("lease", args=[lease.pk])).content.decode()
    assert "It costs ¥17.50 per hour now." in text
    assert "Stopped, only its disk goes on costing." in text
    answer = act(ada, lease, "stop", key="x")
    assert answer["Location"] == act(ada, lease, "stop", key="x")["Location"]
    assert Operation.objects.filter(kind="stop").count() == 1


def test_an_ended_lease_says_that_it_is_gone_and_until_when_its_price_was_in_force(ada):
    lease = running(simulated(), raw_status="on-hold", status="stopped")
    path = reverse("lease", args=[lease.pk])
    text = ada.get(path).content.decode()
    assert "Stopped</b> <code" in text  # our own word, with the provider's beside it
    assert "on-hold" in text
    Lease.objects.filter(pk=lease.pk).update(ended_at=now(), state="terminated")
    ended = ada.get(path).content.decode()
    assert "<b>gone</b>" in ended
    assert "on-hold" not in ended
    assert "was in force until" in ended
    assert ">in force<" not in ended


def test_a_lease_that_runs_says_since_when_in_the_part_that_follows_its_state(ada):
    lease = running(simulated())
    path = reverse("lease", args=[lease.pk])
    assert "Running since" in ada.get(f"{path}?part=status").content.decode()
    Lease.objects.update(started_at=None)
    assert "Running since" not in ada.get(path).content.decode()


def test_the_figures_of_a_lease_are_all_as_of_one_moment(ada, monkeypatch):
    """Each look at the clock is an hour later; what is billed this month and in all is the same sum all the same."""
    lease = running(simulated())
    hours = iter(range(100))
    start = now()
    clock = lambda: start + timedelta(hours=next(hours))  # noqa: E731 (stands for a function of the module)
    monkeypatch.setattr("frontend.views.leasing.lease.now", clock)
    monkeypatch.setattr("frontend.leasing.leases.month_start", lambda _at: lease.requested_at)
    text = ada.get(f"{reverse('lease', args=[lease.pk])}?part=status").content.decode()
    month, whole = re.search(r"This month.*?value\">(.*?)</span>.*?In all <b>(.*?)</b>", text, re.DOTALL).groups()
    assert month == whole


def test_a_machine_ends_only_once_its_name_is_typed(ada):
    lease = running(simulated())
    act(ada, lease, "terminate", typed_name="something")
    assert not Operation.objects.filter(kind="terminate").exists()
    act(ada, lease, "terminate", typed_name=lease.name)  # the name that the provider got is not the one people see
    assert not Operation.objects.filter(kind="terminate").exists()
    act(ada, lease, "terminate", typed_name="trainer")
    assert Operation.objects.get(kind="terminate").lease == lease
    assert Lease.objects.get().wanted == "ended"


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


def test_what_stands_on_a_lease_is_its_money_in_words(ada):
    account = simulated()
    lease = running(account)
    Offer.objects.filter(account=account, key="h100-8-east").update(
        gpu_count=1, billing="monthly", price_per_term="100", price_per_hour=None
    )
    early = ada.get(reverse("lease", args=[lease.pk])).content.decode()
    assert "Too early to tell: it was billed for 10.0 hours, and the comparison needs 24." in early
    assert "would have cost" not in early
    since = now() - timedelta(hours=48)
    Lease.objects.update(requested_at=since)
    BilledInterval.objects.update(started_at=since)
    text = ada.get(reverse("lease", args=[lease.pk])).content.decode()
    assert "Paid by the month it would have cost ¥" in text
    assert "Assumption: the hours billed in full in the last 30 days" in text
    assert "A month is cheaper from 6 billed hours on; it was billed for 48." in text


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


def test_found_machines_are_adopted_together(ada):
    account = simulated()
    for name in ("a", "b"):
        SimulatedMachine.objects.create(
            world=f"account-{account.pk}",
            name=name,
            client_token=name,
            offer_key="h100-1-east",
            created_at=now(),
            running_from=now(),
        )
    work()
    assert "Adopt all" in ada.get(reverse("provider", args=[account.pk])).content.decode()
    ada.post(reverse("provider-adopt", args=[account.pk]))
    assert set(Lease.objects.values_list("name", flat=True)) == {"a", "b"}
    assert not Drift.objects.filter(resolved_at=None).exists()


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


def test_a_lease_goes_by_its_servers_name_and_a_contract_by_its_own(ada):
    lease = running(simulated())
    for path in ("/leases/", reverse("lease", args=[lease.pk])):
        text = ada.get(path).content.decode()
        assert f"<code>{lease.name}</code>" in text
        assert f">{lease.name}</a>" not in text
    assert "<h1>trainer</h1>" in text
    assert "End trainer for good?" in text
    assert "Type “trainer” to go on" in text
    Lease.objects.update(origin="typed", name="rack 7")
    assert Lease.objects.get().title == "rack 7"
    Lease.objects.update(origin="found", name="their-name", server=None)
    assert Lease.objects.get().title == "their-name"


def test_events_of_a_lease_carry_the_name_that_people_see(ada):
    lease = running(simulated())
    act(ada, lease, "stop")
    work()
    names = set(Event.objects.filter(subject_kind="lease").values_list("subject_name", flat=True))
    assert names == {"trainer"}
    assert "trainer" in ada.get("/search/?q=fleetdeck-").content.decode()


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
