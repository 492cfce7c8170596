"""The whole way of a reading in one process: collect, batch, spool, send."""

import json
import threading

import pytest

from fleet.agent import runtime as runtime_module
from fleet.agent import wire
from fleet.agent.panel import UnreachableError
from fleet.agent.policy import Policy
from fleet.agent.runtime import Agent
from fleet.simulation.cards import H200
from tests.waiting import eventually


@pytest.fixture
def agent(host, state, identity, monkeypatch):
    monkeypatch.setenv("FLEETDECK_KERNEL_LOG", "")
    made = []

    def make(**policy):
        made.append(Agent(state, identity, Policy(**policy)))
        return made[-1]

    yield make
    for each in made:
        each._driver.close()
        each._client.close()


def cut_and_send(agent):
    agent._last_cut = float("-inf")
    agent._reporter._next_attempt = 0.0
    agent.report()


def test_a_reading_arrives_as_it_was_taken(host, agent, panel):
    card = host.add_card(H200)
    card.set(power_milliwatts=612_345)
    made = agent()
    made.sample()
    made.report()
    (report,) = panel.reports
    assert report.seq == 1
    assert report.driver.state == "ok"
    assert report.host.os_boot_id == report.os_boot_id == panel.headers[0][wire.HEADER_OS_BOOT_ID]
    assert [gpu.uuid for gpu in report.gpus] == [card.uuid]
    assert report.gpus[0].samples[0].power_milliwatts == 612_345
    assert len(report.host_samples) == 1
    assert len(made._spool) == 0


def test_the_first_report_waits_for_the_first_round_but_not_for_ever(host, agent, panel):
    made = agent()
    made.report()
    assert panel.reports == []
    made._started -= 6.0
    made.report()
    assert [report.driver.state for report in panel.reports] == ["unknown"]


def test_the_first_round_is_reported_at_once(host, agent, panel):
    wanted = []
    made = agent()
    made.intervals.hasten = lambda name, seconds: wanted.append((name, seconds))
    made.sample()
    made.sample()
    assert wanted == [("report", 0.0)]


def test_a_batch_is_on_disk_before_it_is_sent(host, agent, panel, state):
    made = agent()
    seen = []
    original = made._client.report
    made._client.report = lambda body: seen.append(len(list(state.spool_path.glob("*.batch")))) or original(body)
    made.sample()
    made.report()
    assert seen == [1]
    assert list(state.spool_path.glob("*.batch")) == []


def test_a_batch_is_sent_again_as_the_same_bytes_under_the_same_name(host, agent, panel):
    panel.answer_with.append((502, b"bad gateway", {"Retry-After": "30"}))  # otherwise the next try may be at once
    made = agent()
    bodies = []
    original = made._client.report
    made._client.report = lambda body: bodies.append(body) or original(body)
    made.sample()
    made.report()
    assert panel.reports == []
    made._reporter._next_attempt = 0.0
    made.report()
    assert bodies[0] == bodies[1]
    assert [report.seq for report in panel.reports] == [1]


def test_an_answer_that_was_lost_leads_to_no_second_copy(host, agent, panel):
    made = agent()
    original = made._client.report

    def lose_the_answer(body):
        original(body)
        made._client.report = original
        raise UnreachableError("the answer got lost")

    made._client.report = lose_the_answer
    made.sample()
    made.report()
    made._reporter._next_attempt = 0.0
    made.report()
    assert [report.seq for report in panel.reports] == [1]
    assert panel.repeated == 1


def test_facts_are_sent_again_when_the_panel_lacks_them(host, agent, panel):
    host.add_card(H200)
    made = agent()
    made.sample()
    cut_and_send(made)
    panel.needs_facts = True
    made.sample()
    cut_and_send(made)
    panel.needs_facts = False
    made.sample()
    cut_and_send(made)
    made.sample()
    cut_and_send(made)
    assert [report.host is not None for report in panel.reports] == [True, False, True, False]
    assert [report.gpus[0].facts is not None for report in panel.reports] == [True, False, True, False]


def test_facts_that_went_down_with_a_refused_batch_are_sent_again(host, agent, panel):
    host.add_card(H200)
    panel.answer_with.append((422, wire.Refusal("cannot_store", "No."), {}))
    made = agent()
    made.sample()
    cut_and_send(made)
    made.sample()
    cut_and_send(made)
    assert panel.reports[0].seq == 2
    assert panel.reports[0].gpus[0].facts is not None
    assert panel.reports[0].lost_samples == 1


def test_while_much_waits_batches_are_cut_larger(host, agent, panel):
    made = agent()
    made.sample()
    made._cut()
    made._last_cut -= 1.0
    assert made._is_cut_due()
    for seq in range(runtime_module.BACKLOG_BATCHES):
        made._spool.append("11111111-1111-4111-8111-111111111111", seq + 1, 1, b"")
    assert not made._is_cut_due()
    made._last_cut -= 29.0
    assert made._is_cut_due()


def test_a_day_of_eight_cards_without_the_panel_fits_the_spool(host, agent, panel):
    panel.answer_with.extend([(503, b"", {})] * 99)
    card_list = [host.add_card(H200) for _ in range(8)]
    made = agent()
    made.sample()
    cut_and_send(made)
    size = made._spool.oldest()[0].size
    for number in range(6):  # thirty seconds at the usual interval
        for place, card in enumerate(card_list):
            wave = (number * 37 + place * 11) % 97
            card.set(utilization_percent=wave, power_milliwatts=400_123 + wave * 1_733, energy_millijoules=wave**5)
        made.sample()
    cut_and_send(made)
    batches_a_day = 86_400 / runtime_module.BACKLOG_SECONDS
    each = made._spool._bytes - size
    assert each * batches_a_day < Policy().spool_megabytes * 1024 * 1024 / 2, "with room to spare"


def test_a_shorter_interval_holds_for_the_batch_that_is_next(host, agent, panel):
    made = agent()
    panel.report_interval_seconds = 60.0
    made.sample()
    made.report()
    assert not made._is_cut_due()
    made.intervals.follow_answer(wire.ReportAnswer(1, 1, 1.0, 1.0, 1))
    made._last_cut -= 1.0
    assert made._is_cut_due()


def test_assignments_are_followed(host, agent, panel):
    panel.assignments = wire.Assignments(2, 1.0, 1.0, collect_pcie_throughput=True)
    made = agent()
    made.sync()
    assert made.intervals.is_pcie_wanted


def test_a_panel_that_does_not_answer_reports_is_not_asked_for_assignments(host, agent, panel):
    panel.answer_with.append((503, b"", {"Retry-After": "30"}))
    made = agent()
    made.sample()
    made.report()
    made._client.assignments = lambda: pytest.fail("asked")
    made.sync()


def test_reports_go_on_while_no_driver_call_returns(host, agent, panel, monkeypatch):
    monkeypatch.setattr("fleet.agent.nvml.driver.CARD_SECONDS", 5.0)
    host.add_card(H200)
    made = agent()
    made.sample()
    cut_and_send(made)
    host.hang()
    sampling = threading.Thread(target=made.sample)
    sampling.start()
    cut_and_send(made)
    cut_and_send(made)
    assert sampling.is_alive(), "the driver still holds the sampling thread"
    assert [report.seq for report in panel.reports] == [1, 2, 3]
    host.recover()
    sampling.join()


def test_work_that_is_still_going_on_is_not_started_again(host, agent, panel):
    made = agent()
    with made._sampling:
        made.sample()
    assert made._batcher.cut(spooled_batches=0, lost_samples=0).samples == 0


def test_an_xid_reaches_the_panel_once(host, agent, panel):
    card = host.add_card(H200)
    made = agent()
    made._ledger.hold_seconds = 0.0
    made.sample()
    eventually(lambda: host.calls().get("nvmlDeviceRegisterEvents"))
    card.xid(79)
    eventually(made._ledger.has_untold)
    cut_and_send(made)
    cut_and_send(made)
    faults = [fault for report in panel.reports for fault in report.faults]
    assert [(fault.code, fault.uuid) for fault in faults] == [(79, card.uuid)]


def test_closing_sends_what_is_pending(host, agent, panel):
    made = agent()
    made.sample()
    made.close()
    assert len(panel.host_samples) == 1


def test_closing_keeps_on_disk_what_cannot_be_sent(host, agent, panel, state):
    panel.answer_with.extend([(503, b"", {})] * 9)
    made = agent()
    made.sample()
    made.close()
    assert panel.reports == []
    assert len(list(state.spool_path.glob("*.batch"))) == 1


def test_what_the_agent_says_of_itself_is_there_for_the_status_command(host, agent, panel, state):
    card = host.add_card(H200)
    made = agent()
    made.sample()
    made.report()
    said = json.loads(state.status_path.read_text())
    assert said["driver_state"] == "ok"
    assert said["gpus"] == {card.uuid: "ok"}
    assert said["last_error"] == ""
