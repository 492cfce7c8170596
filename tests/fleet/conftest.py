"""Clients of the API, one for each kind of caller, and two servers that have reported."""

import pytest

from fleet.agent import wire
from panel.core.clock import now
from tests.accounts.people import person, token_client
from tests.fleet.factories import GIB, Machine, card, facts, joined


@pytest.fixture
def viewer_client(db):
    return token_client(person("vera", "viewer"))


@pytest.fixture
def operator_client(db):
    return token_client(person("otto", "operator"))


@pytest.fixture
def admin_client(db):
    return token_client(person("ada", "admin"))


@pytest.fixture
def machine(db):
    machine = Machine(joined("rack-1", provider="IDC", region="Shanghai")[0])
    machine.send(at=now(), host=wire.HostFacts(hostname="node-17"))
    return machine


@pytest.fixture
def other(db):
    other = Machine(joined("rack-2", provider="Lambda", region="us-west")[0], cards=0)
    other.cards = [
        card(20 + number, facts=facts(number, name="NVIDIA RTX 4090", memory_total_bytes=24 * GIB))
        for number in range(2)
    ]
    other.send(at=now())
    return other
