"""Kill −9 of every part in the middle of a stream: what was acknowledged is stored, and stored once."""

import pytest

from tests.e2e.reporter import Reporter
from tests.e2e.running import RunningPanel, stored, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def panel():
    with RunningPanel("--no-agent") as running:
        yield running


@pytest.mark.parametrize("victim", ["web", "worker", "valkey", "postgres"])
def test_every_acknowledged_sample_is_stored_exactly_once_when_this_is_killed(panel, victim):
    with Reporter(panel, f"killed-{victim}") as reporter:
        wait_until(lambda: len(reporter.acknowledged) > 200, seconds=60, what="A stream of reports")
        panel.kill(victim)
        before = len(reporter.acknowledged)
        wait_until(lambda: len(reporter.acknowledged) > before + 1000, seconds=90, what=f"A stream after {victim}")
    wait_until(panel.is_ready, seconds=90, what="A ready panel")
    counts = stored(panel)
    missing = [sample for sample in reporter.acknowledged if counts[sample] == 0]
    repeated = [sample for sample, count in counts.items() if count > 1]
    assert not missing
    assert not repeated
    assert f"{victim}" in panel.log.read_text()
