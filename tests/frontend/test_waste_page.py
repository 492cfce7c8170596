"""The page of waste: cards in words, money by contract, and what is not known said so."""

import html
import re

import pytest

from monitoring.models import GpuUse
from tests.waste.test_selectors import HOUR, NOON, contract, idle, machine

pytestmark = pytest.mark.django_db


@pytest.fixture
def read(browser, time_machine):
    time_machine.move_to(NOON, tick=False)

    def words(query=""):
        answer = browser("viewer").get(f"/waste/{query}")
        assert answer.status_code == 200
        return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", answer.content.decode())).split())

    return words


def test_the_dearest_card_comes_first_with_evidence_and_what_it_would_save(read):
    server, [card] = machine("rack-7", 1)
    contract(server, "9.80")
    idle(card, 3, 3, is_open=True)
    GpuUse.objects.create(gpu=card, use="parked", ground="quiet", since=NOON - HOUR, judged_until=NOON)
    poor, [other] = machine("rack-8", 1)
    idle(other, 8, 4)
    text = read()
    assert text.index("rack-7") < text.index("rack-8")
    for said in ("¥29.40", "Loaded, nothing to do", "79 W", "¥9.80 per hour, ended", "Avoidable now"):
        assert said in text, said
    assert "Nobody told what its machine costs" in text
    assert "without the price of 1 card" in text
    assert poor


def test_a_longer_time_shows_what_was_idle_in_it(read):
    _, [card] = machine("rack-7", 1)
    idle(card, 50, 2)
    assert "rack-7" not in read()
    assert "rack-7" in read("?range=7d")
    assert "rack-7" not in read("?range=nonsense")


def test_an_empty_list_says_what_would_be_in_it(read):
    assert "No idle time found" in read()
