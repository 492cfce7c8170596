"""Sending for ever: order, patience, and what is said about it."""

import pytest

from fleet.agent import reporter as reporter_module
from fleet.agent import wire
from fleet.agent.backoff import Backoff
from fleet.agent.panel import RefusedError, TokenRefusedError, UnreachableError
from fleet.agent.reporter import Reporter
from fleet.agent.spool import Spool
from tests.agent.clock import Clock

BOOT = "6f1c0c0e-8a5d-4a44-9f3a-0f5f4f3d2c1b"


class Client:
    """A panel that answers what it is told to, and then yes for ever."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.bodies = []

    def report(self, body):
        self.bodies.append(body)
        if self.answers:
            answer = self.answers.pop(0)
            if answer is not None:
                raise answer
        return wire.ReportAnswer(1, 1, 5.0, 5.0, 1)


@pytest.fixture
def time(monkeypatch):
    made = Clock()
    monkeypatch.setattr(reporter_module, "time", made)
    return made


class Sending:
    def __init__(self, tmp_path, client, batches):
        self.spool = Spool(tmp_path / "spool", max_bytes=10**6, max_age_seconds=86_400)
        for seq in range(1, batches + 1):
            self.spool.append(BOOT, seq, 8, b"batch %d" % seq)
        self.client = client
        self.answers, self.refused = [], 0
        self.reporter = Reporter(client, self.spool, on_answer=self.answers.append, on_refused=self._refuse)

    def _refuse(self):
        self.refused += 1


@pytest.fixture
def sending(tmp_path, time):
    return lambda *answers, batches=3: Sending(tmp_path, Client(*answers), batches)


def test_everything_that_waits_is_sent_in_order(sending):
    made = sending()
    made.reporter.drain()
    assert made.client.bodies == [b"batch 1", b"batch 2", b"batch 3"]
    assert len(made.spool) == 0
    assert len(made.answers) == 3


def test_a_failure_stops_sending_and_the_same_batch_comes_first_again(sending, time):
    made = sending(UnreachableError("no route"))
    made.reporter.drain()
    assert made.client.bodies == [b"batch 1"]
    time.now += 61
    made.reporter.drain()
    assert made.client.bodies == [b"batch 1", b"batch 1", b"batch 2", b"batch 3"]


def test_nothing_is_sent_before_the_wait_is_over(sending, time, monkeypatch):
    monkeypatch.setattr("random.uniform", lambda low, high: high)
    made = sending(UnreachableError("no route"))
    made.reporter.drain()
    assert made.reporter.seconds_until_due == 1.0
    time.now += 0.9
    made.reporter.drain()
    assert len(made.client.bodies) == 1


def test_waits_grow_to_a_minute_and_no_further_for_ever(sending, time, monkeypatch):
    monkeypatch.setattr("random.uniform", lambda low, high: high)
    made = sending(*(UnreachableError("no route") for _ in range(100)), batches=1)
    waits = []
    for _ in range(100):
        made.reporter.drain()
        waits.append(made.reporter.seconds_until_due)
        time.now += waits[-1]
    assert waits[:7] == [1, 2, 4, 8, 16, 32, 60]
    assert set(waits[7:]) == {60}
    made.reporter.drain()
    assert len(made.spool) == 0, "and it works the moment that the panel does"


def test_after_twenty_failures_of_name_resolution_data_flow_within_a_minute(sending, time):
    failures = [UnreachableError("ConnectError: Temporary failure in name resolution") for _ in range(20)]
    made = sending(*failures)
    while made.client.answers:
        made.reporter.drain()
        time.now += made.reporter.seconds_until_due
    back_at = time.now
    made.reporter.drain()
    assert len(made.spool) == 0
    assert time.now - back_at <= 60


def test_a_fleet_does_not_come_back_in_step():
    delays = {round(Backoff(60.0, 60.0).next_delay(), 3) for _ in range(50)}
    assert len(delays) > 40
    assert min(delays) < 15 < 45 < max(delays)


def test_the_panel_s_own_word_on_when_to_come_back_is_kept(sending, time):
    made = sending(UnreachableError("slow down", retry_after_seconds=120.0))
    made.reporter.drain()
    assert made.reporter.seconds_until_due >= 120.0


def test_a_batch_that_is_never_taken_makes_way_for_the_next(sending):
    made = sending(RefusedError(422, "cannot_store", "The database refuses it."))
    made.reporter.drain()
    assert made.client.bodies == [b"batch 1", b"batch 2", b"batch 3"]
    assert len(made.spool) == 0
    assert made.spool.lost_samples == 8
    assert made.refused == 1, "the facts in it have to be sent again"


def test_a_revoked_agent_keeps_its_data_asks_seldom_and_says_so_once(sending, time, caplog):
    refusals = [TokenRefusedError("The token was revoked.") for _ in range(5)]
    made = sending(*refusals)
    for _ in range(5):
        made.reporter.drain()
        assert made.reporter.is_token_refused
        assert made.reporter.seconds_until_due >= 60
        time.now += made.reporter.seconds_until_due
    assert caplog.text.count("refuses this agent's token") == 1
    assert len(made.spool) == 3
    made.reporter.drain()
    assert len(made.spool) == 0, "an agent that is let in again goes on"
    assert not made.reporter.is_token_refused


def test_silence_of_minutes_is_said_now_and_then(sending, time, monkeypatch, caplog):
    monkeypatch.setattr("random.uniform", lambda low, high: high)
    made = sending(*(UnreachableError("no route") for _ in range(1_000)))
    began = time.now
    while time.now - began < 1_000:
        made.reporter.drain()
        time.now += made.reporter.seconds_until_due
    assert caplog.text.count("does not answer") == 1
    assert caplog.text.count("has acknowledged nothing") == 3, "at 5, 10 and 15 minutes"


def test_the_end_of_silence_is_said_with_its_length(sending, time, caplog):
    caplog.set_level("INFO")
    made = sending(UnreachableError("no route"))
    made.reporter.drain()
    time.now += 400
    made.reporter.drain()
    assert "answers again after 400 s" in caplog.text


def test_one_call_is_not_gone_for_long_however_much_waits(sending, time):
    made = sending(batches=50)
    original = made.client.report

    def slow(body):
        time.now += 1.0
        return original(body)

    made.client.report = slow
    made.reporter.drain(10.0)
    assert len(made.client.bodies) == 10
    assert made.reporter.seconds_until_due == 0.0
