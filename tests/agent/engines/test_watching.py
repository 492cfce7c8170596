"""How running engines are judged: frozen, failing, slow, full, asleep; in each case by what they really do."""

import signal

import pytest

from fleet.agent.engines.pace import Pace
from tests.agent.engines.conftest import CHAT, QUICK, changed, control, engine_order, kill, pid_of
from tests.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]


@pytest.fixture
def serving(machine):
    """A machine with one ready engine: (machine, order)."""

    def make(*options, pace=QUICK, **fields):
        box = machine(pace)
        order = engine_order(1, *options, **fields)
        box.follow(order)
        box.until("ready")
        return box, order

    return make


def test_tokens_that_stop_while_health_is_fine_take_it_out_and_it_comes_back_by_itself(serving):
    box, order = serving()
    pid = pid_of(box.status())
    control(order, frozen=True)
    stalled = box.until("not_ready", health="stalled", reason="stalled")
    assert "No answer within" in stalled.detail
    control(order, frozen=False)
    back = box.until("ready", health="ok")
    assert pid_of(back) == pid
    assert back.restarts == 0


def test_a_stopped_process_is_out_at_once_and_back_when_it_goes_on(serving):
    box, _ = serving(ready=changed(CHAT, timeout_seconds=30.0))
    pid = pid_of(box.status())
    kill(pid, signal.SIGSTOP)
    assert "SIGSTOP" in box.until("not_ready", health="stalled", seconds=10).detail
    kill(pid, signal.SIGCONT)
    assert pid_of(box.until("ready", health="ok")) == pid


def test_errors_take_it_out_and_good_answers_bring_it_back(serving):
    box, order = serving()
    control(order, errors=True)
    out = box.until("not_ready", reason="check_failed")
    assert "500" in out.detail
    control(order, errors=False)
    box.until("ready", health="ok")
    assert box.status().restarts == 0


def test_one_failed_answer_alone_does_not_take_it_out(serving):
    box, _ = serving("--error-every", 2)
    eventually(lambda: [status for status in box.told() if status.health == "degraded"])
    states = [status.state for status in box.told() if status.state in {"ready", "not_ready"}]
    assert set(states) == {"ready"}


def test_a_busy_engine_that_leaves_the_check_waiting_is_saturated_and_stays(serving, streaming):
    box, order = serving("--slots", 1, "--ms-per-token", 20)
    pid = pid_of(box.status())
    stream = streaming(order, tokens=140)
    busy = box.until("ready", health="saturated")
    assert busy.running == 1.0
    assert len(stream.result()) == 140
    box.until("ready", health="ok")
    assert pid_of(box.status()) == pid
    assert "not_ready" not in {status.state for status in box.told()}


def test_a_slow_health_page_is_latency_and_no_illness(serving):
    box, _ = serving("--health-ms", 1001, health_path="/health")
    assert box.until("ready", health="ok").restarts == 0


def test_a_health_page_that_complains_is_shown_beside_answers_that_are_fine(serving):
    box, order = serving()
    control(order, health_status=503)
    assert box.until("ready", health="degraded").restarts == 0


def test_a_sleeping_engine_is_left_asleep_and_takes_requests(serving, streaming):
    box, order = serving()
    control(order, asleep=True)
    box.until("ready", health="asleep")
    streaming(order, tokens=2).result()
    box.until("ready", health="ok")


def test_waiting_requests_without_any_progress_for_a_minute_are_a_stall(serving, streaming, monkeypatch):
    monkeypatch.setattr("fleet.agent.engines.health.STALL_SECONDS", 1.5)
    box, order = serving("--slots", 1, "--ms-per-token", 20)
    streaming(order, tokens=100_000)
    control(order, frozen=True)
    box.until("ready", health="saturated")  # others wait for it: it gets its time
    box.until("not_ready", health="stalled", seconds=10)
    kill(pid_of(box.status()))  # the stream would never end


def test_an_engine_without_metrics_is_judged_by_its_answers_and_no_zeros_are_told(serving):
    box, order = serving("--no-metrics")
    status = box.until("ready", health="ok")
    assert (status.running, status.waiting, status.kv_cache_percent) == (None, None, None)
    control(order, frozen=True)
    box.until("not_ready", health="stalled")


def test_a_key_that_the_engine_asks_for_is_sent(serving):
    box, _ = serving("--api-key", "canary-key", upstream_key="canary-key")
    assert box.status().health == "ok"


def test_a_first_request_may_take_longer_than_later_ones(machine):
    box = machine(Pace(look=0.1, recheck=0.1, metrics=0.1, step=0.05, grace=2.0))
    box.follow(engine_order(1, "--ms-per-token", 1200))
    box.until("ready")


def test_what_its_page_says_goes_into_reports_and_what_it_lacks_is_named(serving):
    box, _order = serving()
    told = box.until("ready", metrics_family="vllm", metrics_problem="")
    assert "prefill_time" in told.metrics_missing
    assert "running" not in told.metrics_missing
    ledger = box.engines.desk.ledger
    engines, rows = ledger.cut()
    assert ([engine.replica for engine in engines], rows[0].running) == ([1], 0.0)


def test_an_engine_without_a_page_is_healthy_and_says_that_metrics_are_off(serving):
    box, _order = serving("--no-metrics")
    told = box.until("ready", metrics_problem="off")
    assert (told.health, told.metrics_family, told.running) == ("ok", "", None)
    assert box.engines.desk.ledger.cut() == ([], [])
