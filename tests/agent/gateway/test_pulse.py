"""An Envoy that lives and answers nobody: told from one that is only busy, and replaced."""

import ctypes
import os
import signal
import socket
from contextlib import suppress
from pathlib import Path

import httpx
import psutil
import pytest

from fleet.agent.gateway.envoy import admin, bootstrap, pulse
from fleet.agent.gateway.envoy.pulse import BUSY_LOOKS, LOOK_SECONDS, STUCK_LOOKS, Pulse
from fleet.agent.orders import GatewayOrder
from tests.agent.gateway.place import chat, ready, rule
from tests.waiting import eventually, free_port

PTRACE_ATTACH, WALL = 16, 0x40000000
CLOSED = GatewayOrder(1, 0, host="127.0.0.1")


class Envoy:
    """One process as its answers and its processor time show it."""

    def __init__(self, monkeypatch):
        self.is_silent, self.ticks, self.pid = False, 0, 7
        self.pulse, self.looks = Pulse(), 0
        monkeypatch.setattr(pulse, "processor_ticks", lambda pid: self.ticks)

    def look(self, *, works=False):
        self.looks += 1
        self.ticks += works
        return self.pulse.is_stuck(self.pid, lambda: self.is_silent, CLOSED, self.looks * LOOK_SECONDS)


@pytest.fixture
def envoy(monkeypatch):
    return Envoy(monkeypatch)


def test_one_that_is_silent_and_does_nothing_is_stuck_after_a_few_looks(envoy):
    assert not any(envoy.look() for _ in range(50))
    envoy.is_silent = True
    assert [envoy.look() for _ in range(STUCK_LOOKS)] == [False] * (STUCK_LOOKS - 1) + [True]


def test_one_that_works_is_given_longer(envoy):
    envoy.is_silent = True
    looks = [envoy.look(works=True) for _ in range(BUSY_LOOKS)]
    assert looks == [False] * (BUSY_LOOKS - 1) + [True]


def test_an_answer_in_between_makes_all_well_again(envoy):
    for _ in range(20):
        envoy.is_silent = True
        assert not any(envoy.look() for _ in range(STUCK_LOOKS - 1))
        assert envoy.pulse.is_silent
        envoy.is_silent = False
        assert not envoy.look()
        assert not envoy.pulse.is_silent


def test_another_process_begins_anew(envoy):
    envoy.is_silent = True
    assert not any(envoy.look() for _ in range(STUCK_LOOKS - 1))
    envoy.pid = 8
    assert not any(envoy.look() for _ in range(STUCK_LOOKS)), "the first look has no processor time to compare with"
    assert envoy.look()


def test_a_port_that_takes_connections_and_says_nothing_is_silent_and_a_closed_one_is_not(monkeypatch):
    monkeypatch.setattr(pulse, "ANSWER_SECONDS", 0.1)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        order = GatewayOrder(listening.getsockname()[1], 0, host="0.0.0.0")
        assert pulse.is_port_silent(order)
        assert pulse.is_port_silent(GatewayOrder(order.port, 0, "0.0.0.0", "/chain.pem", "/key.pem"))
    assert not pulse.is_port_silent(GatewayOrder(free_port(), 0, host="127.0.0.1"))


@pytest.mark.e2e
def test_an_envoy_that_is_frozen_is_replaced_and_the_panel_hears_of_it(own, replicas, monkeypatch):
    for module, name, seconds in (
        (pulse, "LOOK_SECONDS", 0.1),
        (pulse, "CALLERS_SECONDS", 0.3),
        (admin, "SECONDS", 0.2),
    ):
        monkeypatch.setattr(module, name, seconds)
    own.say(chat("chat", replicas[0].upstream(1)), keys=[rule(1)])
    ready(own, "/chat/echo")
    frozen = own.lane.pid
    own_port_is_asked = eventually(
        lambda: (own.folder / "envoy" / "access.log").read_text().count("\n"), lambda lines: lines > 3, seconds=20
    )
    assert own_port_is_asked
    assert own.lane.pid == frozen, "one that answers is left alone"
    psutil.Process(frozen).send_signal(signal.SIGSTOP)
    eventually(lambda: own.panel.last, lambda report: "does not answer" in report.detail, seconds=20)
    eventually(lambda: own.lane.pid, lambda pid: pid not in {None, frozen}, seconds=20)
    eventually(
        lambda: own.get("/chat/echo").status_code, lambda status: status == 200, seconds=20, passing=httpx.HTTPError
    )
    assert not psutil.pid_exists(frozen)


@pytest.mark.e2e
def test_an_envoy_of_which_one_thread_is_frozen_ends_itself_and_is_started_again(own, replicas, monkeypatch):
    monkeypatch.setattr(bootstrap, "STUCK_THREAD_SECONDS", 2)
    own.say(chat("chat", replicas[0].upstream(1)), keys=[rule(1)])
    ready(own, "/chat/echo")
    pid = own.lane.pid
    threads = {int(entry.name): (entry / "comm").read_text() for entry in Path(f"/proc/{pid}/task").iterdir()}
    worker = next(thread for thread, name in threads.items() if name.startswith("wrk:worker_0"))
    if ctypes.CDLL(None).ptrace(PTRACE_ATTACH, worker, 0, 0) != 0:
        pytest.skip("this machine lets nobody stop a single thread (ptrace)")

    def another():
        with suppress(ChildProcessError):
            os.waitpid(worker, os.WNOHANG | WALL)  # who stopped it has to see it end
        return own.lane.pid

    eventually(another, lambda now: now not in {None, pid}, seconds=30)
    ready(own, "/chat/echo")
