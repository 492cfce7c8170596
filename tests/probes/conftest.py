"""A prober that may look at loopback, and certificates."""

import socket

import pytest

from fleet.agent.probes.addresses import Rules
from fleet.agent.probes.prober import Prober
from fleet.agent.probes.resolver import Resolver
from fleet.agent.probes.target import Target
from fleet.agent.probes.tls import Contexts
from tests.probes.servers import Certificates

PRIVATE = Rules(is_private_allowed=True)


def names(**known):
    """Return a lookup for which names mean lists of addresses; others are not found."""
    table = {name.replace("_", "."): addresses for name, addresses in known.items()}

    def lookup(host, _port, **_options):
        if host not in table:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(0, 0, 0, "", (address, 0)) for address in table[host]]

    return lookup


def target(kind="http", port=80, **others):
    """Return a target on loopback."""
    return Target(**{"id": 1, "kind": kind, "host": "127.0.0.1", "port": port, **others})


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
async def prober(certificates):
    lookup = names(model_example=["127.0.0.1"])
    contexts = Contexts(str(certificates.file))
    async with Prober("here", rules=PRIVATE, resolver=Resolver(lookup=lookup), contexts=contexts) as made:
        yield made
