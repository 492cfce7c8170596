"""The waste list over the API."""

from datetime import timedelta
from decimal import Decimal

import pytest

from tests.accounts.people import person, token_of
from tests.waste.test_selectors import HOUR, NOON, contract, idle, machine

pytestmark = pytest.mark.django_db


@pytest.fixture
def ask(client, time_machine):
    time_machine.move_to(NOON, tick=False)
    headers = {"authorization": f"Bearer {token_of(person('vera', 'viewer'))}"}
    return lambda query="": client.get(f"/api/v1/waste/{query}", headers=headers)


def test_a_card_is_listed_with_its_evidence_money_and_what_would_be_saved(ask):
    server, [card] = machine("box", 1)
    contract(server, "9.80")
    idle(card, 6, 2)
    idle(card, 3, 3, is_open=True)
    body = ask().json()
    row = body["results"][0]
    assert (body["count"], body["totals"]) == (1, [{"amount": "49.000000", "currency": "CNY"}])
    assert (row["gpu"], row["server_name"], row["quiet_minutes"]) == (card.pk, "box", 300)
    assert row["idle_since"].startswith("2026-11-29T09:00:00")
    assert (row["avoidable"], row["saving_per_hour"]["by_ending"]) == (
        "now",
        [{"amount": "9.800000", "currency": "CNY"}],
    )
    assert row["saving_per_hour"]["by_stopping"] is None
    assert Decimal(row["card_hours"]) == 5


def test_nothing_idle_is_an_empty_list(ask):
    assert ask().json()["results"] == []


def test_rows_are_bounded_and_sums_are_not(ask):
    server, cards = machine("box", 3)
    contract(server, "3.00")
    for card in cards:
        idle(card, 2, 1)
    body = ask("?limit=1").json()
    assert (len(body["results"]), body["count"]) == (1, 3)
    assert body["totals"] == [{"amount": "3.000000", "currency": "CNY"}]


@pytest.mark.parametrize(
    "query",
    [
        f"?from={(NOON + HOUR).timestamp()}",
        f"?from={(NOON - timedelta(days=120)).timestamp()}",
        "?from=yesterday",
        "?limit=0",
        "?limit=501",
    ],
)
def test_a_time_or_a_number_that_cannot_be_is_refused(ask, query):
    answer = ask(query)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["detail"]


def test_a_login_is_needed(client):
    assert client.get("/api/v1/waste/").status_code == 401
