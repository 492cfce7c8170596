"""Ordering a server again from its own page: the way there, what is said while it waits, and the cards it had before."""

import pytest
from django.urls import reverse

from fleet.enums import ServerState
from fleet.models import Lease, Server
from fleet.services.servers import server_end
from frontend.words import reason_words
from panel.core.clock import now
from tests.fleet.factories import OPERATOR, Machine, joined
from tests.frontend.html import Page
from tests.frontend.leasing import running, simulated

pytestmark = pytest.mark.django_db


@pytest.fixture
def retired(people):
    """A server that reported one card and left when its machine was ended."""
    lease = running(simulated(), "trainer")
    agent, _token = joined(server=lease.server)
    Machine(agent, cards=1).send()
    Lease.objects.filter(pk=lease.pk).update(state="terminated", ended_at=now())
    return server_end(server_id=agent.server_id, reason="lease_ended", actor=OPERATOR)


def read(client, server):
    return client.get(reverse("server", args=[server.pk])).content.decode()


def test_the_page_of_a_server_that_left_leads_to_the_offer_it_was_ordered_from(ada, browser, retired):
    again = reverse("order-again", args=[retired.pk])
    assert again in read(ada, retired)
    assert again not in read(browser("viewer"), retired)
    to = ada.get(again)
    assert to.status_code == 302
    plan = ada.get(to["Location"]).content.decode()
    assert "Order trainer again" in plan
    assert f'name="server" value="{retired.pk}"' in plan


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_while_another_machine_is_built_the_page_says_so_and_keeps_the_cards_of_the_one_before(
    ada, people, retired, language
):
    form = ada.get(ada.get(reverse("order-again", args=[retired.pk]))["Location"])
    values = {"server": retired.pk, "key": "one", "step": "order"}
    placed = ada.post(form.wsgi_request.get_full_path(), values)
    assert placed.status_code == 302, placed.content.decode()
    people["admin"].language = language
    people["admin"].save()
    server = Server.objects.get()
    assert server.state == ServerState.PENDING
    text = read(ada, server)
    assert Page(text).faults() == []
    said = "Another machine is being built for it." if language == "en" else "正在为它建立另一台机器"
    assert said in text
    card = server.gpus.get()
    assert reverse("gpu", args=[card.pk]) in text
    assert ada.get(reverse("gpu", args=[card.pk])).status_code == 200
    assert server.name in ada.get("/fleet/").content.decode()


def test_why_no_other_machine_came_to_be_is_said_in_words():
    assert reason_words("no_capacity") == "The provider has no such machine free at the moment."
