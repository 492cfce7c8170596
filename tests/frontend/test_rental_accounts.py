"""Accounts at providers on their pages: added, refused, a key replaced, removed, found machines adopted together."""

import json

import pytest
from django.urls import reverse

from fleet.models import Drift, Lease, ProviderAccount, SimulatedMachine
from fleet.providers.base import AccountCheck
from fleet.providers.errors import AccessRefused
from panel.core.clock import now
from tests.frontend.leasing import running, simulated, work

pytestmark = pytest.mark.django_db
SECRET = "sk-very-secret-key-0123456789"


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
