"""Faults put into real sockets get their verdict from the real prober: a pinned few of the worlds of `make bench`.

They run side by side: they mostly wait. One whose prober had no time of its machine says so (`vantage_bad`) and is run once more:
that verdict is about the machine of the tests.
"""

from concurrent.futures import ThreadPoolExecutor

import pytest

from monitoring.diagnosis.enums import Verdict
from tests.faults.cards import samples
from tests.faults.lab import why_not
from tests.faults.run import run
from tests.faults.worlds import WORLDS

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
PINNED = [
    "healthy, plain", "slow name server", "TLS without keep-alive", "gateway that thinks", "thin line", "hot card",
    "requests that fail",
]  # fmt: skip


def judged(name, cards):
    """Return the diagnosis of one run, or of a second one when the prober itself was not well."""
    found = run(name, 7, cards)[0]
    is_unwell = found.verdict is Verdict.VANTAGE_BAD
    return run(name, 8, cards)[0] if is_unwell else found


@pytest.fixture(scope="module")
def found(library, tmp_path_factory):
    why = why_not()
    if why:
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("cards")
    cards = {name: samples(library, folder, name=name, **WORLDS[name].cards) for name in PINNED if WORLDS[name].cards}
    with ThreadPoolExecutor(len(PINNED)) as pool:
        asked = {name: pool.submit(judged, name, cards.get(name, [])) for name in PINNED}
        return {name: each.result() for name, each in asked.items()}


@pytest.mark.parametrize("name", PINNED)
def test_a_fault_in_real_sockets_gets_its_verdict(found, name):
    assert found[name].verdict is WORLDS[name].verdict, found[name].numbers


def test_there_are_at_least_fourteen_faults_and_two_healthy_worlds():
    healthy = [world for world in WORLDS.values() if world.verdict is Verdict.HEALTHY]
    assert len(healthy) >= 2
    assert len({world.verdict for world in WORLDS.values()} - {Verdict.HEALTHY}) >= 14
