"""A lease on its page: its money in words, acts with what they end and keep, the names it goes by."""

import json
import re
from datetime import timedelta

import pytest
from django.urls import reverse

from fleet.models import BilledInterval, Lease, Offer, Operation, ProviderAccount
from panel.core.clock import now
from panel.core.models import Event
from tests.frontend.leasing import running, simulated, work

pytestmark = pytest.mark.django_db


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


def test_an_end_says_what_goes_on_costing_at_this_provider(ada):
    lease = running(simulated())
    path = reverse("lease", args=[lease.pk])
    assert (
        "go on costing"
        not in ada.get(path).content.decode().partition('id="act-terminate"')[2].partition("</dialog>")[0]
    )
    ProviderAccount.objects.update(kind="verda", credentials=json.dumps({"client_id": "i", "client_secret": "s"}))
    dialog = ada.get(path).content.decode().partition('id="act-terminate"')[2].partition("</dialog>")[0]
    assert "Other volumes that were attached are detached and go on costing." in dialog
    ProviderAccount.objects.update(kind="aliyun")
    dialog = ada.get(path).content.decode().partition('id="act-terminate"')[2].partition("</dialog>")[0]
    assert "Elastic addresses" in dialog
    assert "Saved disks stay and cost storage" in dialog
