"""The ping to an outside watcher stops when the panel is not well."""

import httpx
import pytest
import respx

from panel.core import liveness
from panel.core.clock import now
from panel.core.health import CheckStatus
from panel.core.valkey import valkey
from panel.health import deadman

URL = "https://watcher.example/ping/secret-id"
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _alive(settings):
    settings.DEADMAN_URL = URL
    keys = (liveness.WORKERS_KEY, liveness.BEATS_KEY, liveness.QUEUE_KEY, deadman.KEY)
    valkey().delete(*keys)
    liveness.beat_alive()
    liveness.worker_alive("celery@here")
    liveness.queue_probed(waited_seconds=0.1)
    yield
    valkey().delete(*keys)


def status():
    return next(iter(deadman.deadman_checks())).status


@respx.mock
def test_a_panel_that_is_well_pings_and_shows_when():
    route = respx.get(URL).mock(return_value=httpx.Response(200))
    assert status() == CheckStatus.WARNING
    assert deadman.deadman_ping()
    assert route.called
    assert status() == CheckStatus.OK


@respx.mock
def test_a_critical_check_holds_the_ping_back():
    route = respx.get(URL).mock(return_value=httpx.Response(200))
    valkey().delete(liveness.BEATS_KEY)
    assert not deadman.deadman_ping()
    assert not route.called


@respx.mock
def test_a_ping_that_was_not_taken_does_not_count_and_its_address_stays_out_of_the_log(capfd):
    respx.get(URL).mock(return_value=httpx.Response(500))
    assert not deadman.deadman_ping()
    respx.get(URL).mock(side_effect=httpx.ConnectError("cannot reach " + URL))
    assert not deadman.deadman_ping()
    assert status() == CheckStatus.WARNING
    assert "secret-id" not in "".join(capfd.readouterr())


def test_pings_that_stopped_are_told(time_machine):
    time_machine.move_to("2026-12-01T00:00:00Z", tick=False)
    valkey().set(deadman.KEY, str(now().timestamp()))
    assert status() == CheckStatus.OK
    time_machine.move_to("2026-12-01T00:03:01Z", tick=False)
    assert status() == CheckStatus.WARNING


def test_without_an_address_nothing_is_sent_and_nothing_is_wrong(settings):
    settings.DEADMAN_URL = ""
    assert not deadman.deadman_ping()
    assert status() == CheckStatus.OK
