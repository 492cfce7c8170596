"""Where probes may go: never to a cloud's own services, and only to the address that was looked at."""

import pytest

from fleet.agent.acceptance import route
from fleet.agent.addresses import METADATA
from fleet.agent.gateway import checks
from fleet.agent.probes.addresses import Rules
from fleet.agent.probes.prober import Prober
from fleet.agent.probes.resolver import Resolver
from panel.core import egress
from tests.probes.conftest import PRIVATE, names, target
from tests.probes.servers import Server, fine

ALWAYS_REFUSED = [
    "169.254.169.254", "169.254.170.2", "169.254.1.1", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254",
    "fe80::1", "fe80::1%eth0", "::ffff:169.254.169.254", "2002:a9fe:a9fe::1", "64:ff9b::a9fe:a9fe", "0.0.0.0", "::",
    "224.0.0.1", "ff02::1", "nonsense",
]  # fmt: skip
PRIVATE_ONES = ["10.1.2.3", "192.168.1.1", "172.16.0.1", "127.0.0.1", "::1", "fd12::1", "100.64.0.1", "::ffff:10.1.2.3"]


@pytest.mark.parametrize("address", ALWAYS_REFUSED)
def test_services_of_clouds_and_the_link_are_refused_whatever_is_allowed(address):
    everything = Rules.of(["0.0.0.0/0", "::/0"], is_private_allowed=True, places=frozenset({(address, 80)}))
    assert not everything.allow(address, 80)


@pytest.mark.parametrize("address", ALWAYS_REFUSED)
def test_neither_a_check_of_a_machine_nor_a_gateway_goes_there(address):
    assert not route.is_allowed(address, allow_private=True)
    assert not checks.is_allowed(address)


@pytest.mark.parametrize("address", PRIVATE_ONES)
def test_a_gateway_reaches_replicas_at_private_addresses(address):
    assert checks.is_allowed(address)


@pytest.mark.parametrize("address", PRIVATE_ONES)
def test_private_addresses_are_refused_unless_allowed(address):
    assert not Rules().allow(address)
    assert Rules(is_private_allowed=True).allow(address)


@pytest.mark.parametrize("address", ["1.1.1.1", "2606:4700:4700::1111"])
def test_public_addresses_are_allowed(address):
    assert Rules().allow(address)


def test_a_network_that_an_admin_named_is_allowed_and_its_neighbour_is_not():
    rules = Rules.of(["10.1.0.0/16"])
    assert rules.allow("10.1.2.3")
    assert not rules.allow("10.2.0.1")


def test_a_place_on_this_machine_is_allowed_with_its_port_alone():
    rules = Rules(places=frozenset({("127.0.0.1", 8000)}))
    assert rules.allow("127.0.0.1", 8000)
    assert not rules.allow("127.0.0.1", 5432)


def test_the_agents_list_of_metadata_services_is_the_panels():
    assert METADATA == egress.METADATA


@pytest.mark.parametrize("kind", ["http", "tcp", "tls", "chat", "grpc_health", "icmp"])
async def test_a_name_that_leads_to_a_refused_address_is_not_connected_to(kind):
    resolver = Resolver(lookup=names(model_example=["169.254.169.254"]))
    async with Prober("here", rules=PRIVATE, resolver=resolver) as prober:
        found = await prober.run(target(kind, 80, host="model.example"))
    assert (found.outcome, found.reason, found.tried) == ("skipped", "address_refused", 0)
    assert "169.254.169.254" in found.detail


@pytest.mark.parametrize("spelling", ["2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518"])
async def test_odd_spellings_of_an_address_are_looked_at_as_what_they_mean(spelling):
    async with Prober("here", rules=Rules.of(["0.0.0.0/0"], is_private_allowed=True)) as prober:
        found = await prober.run(target(port=80, host=spelling))
    assert (found.outcome, found.reason) == ("skipped", "address_refused")


async def test_the_address_that_was_checked_is_the_one_that_is_connected_to():
    answers = iter([["127.0.0.1"], ["169.254.169.254"]])

    def lookup(_host, _port, **_options):
        return [(0, 0, 0, "", (address, 0)) for address in next(answers)]

    async with Server(fine) as server, Prober("here", rules=PRIVATE, resolver=Resolver(lookup=lookup)) as prober:
        first = await prober.run(target(port=server.port, host="model.example"))
        second = await prober.run(target(port=server.port, host="model.example"))
    assert (first.outcome, first.address) == ("ok", "127.0.0.1")
    assert second.reason == "address_refused"
    assert server.asked[0].headers["host"] == f"model.example:{server.port}"


async def test_of_several_addresses_only_those_that_are_allowed_are_tried():
    resolver = Resolver(lookup=names(model_example=["169.254.169.254", "127.0.0.1"]))
    async with Server(fine) as server, Prober("here", rules=PRIVATE, resolver=resolver) as prober:
        found = await prober.run(target(port=server.port, host="model.example"))
    assert (found.outcome, found.address, found.tried) == ("ok", "127.0.0.1", 1)


async def test_a_redirect_to_a_refused_address_is_not_followed():
    async def away(_asked, peer):
        await peer.answer(302, headers=["location: http://169.254.169.254/latest/meta-data/"])

    async with Server(away) as server, Prober("here", rules=PRIVATE) as prober:
        found = await prober.run(target(port=server.port, follow=3))
    assert (found.outcome, found.reason) == ("skipped", "address_refused")


async def test_the_next_address_is_tried_when_one_does_not_answer():
    resolver = Resolver(lookup=names(model_example=["127.0.0.2", "127.0.0.1"]))
    async with Server(fine) as server, Prober("here", rules=PRIVATE, resolver=resolver) as prober:
        found = await prober.run(target(port=server.port, host="model.example"))
    assert (found.outcome, found.address, found.tried) == ("ok", "127.0.0.1", 2)
