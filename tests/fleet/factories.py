"""Servers, agents and reports for the fleet's tests."""

import uuid
from datetime import UTC, datetime

from fleet.agent import wire
from fleet.models import Agent, JoinToken
from fleet.services.inventory import inventory_apply
from fleet.services.joining import join_token_create, server_join
from panel.accounts.audit import Actor
from panel.core.clock import now

OPERATOR = Actor(kind="user", id=1, name="operator", role="operator")
GIB = 1024**3


def card_uuid(number: int) -> str:
    return f"GPU-{number:08d}-0000-4000-8000-000000000000"


def joined(name="rack-1", **kwargs):
    """A machine that has joined; returns (agent row with its server, its token)."""
    made = join_token_create(name=name, actor=OPERATOR, **kwargs)
    answer = server_join(request=wire.JoinRequest(token=made.token, agent_version="0.1.0"), address="127.0.0.1")
    return Agent.objects.select_related("server").get(server_id=answer.server_id), answer.agent_token


def join_token_of(agent):
    return JoinToken.objects.select_related("server").get(server_id=agent.server_id)


def facts(number=0, **kwargs):
    given = {
        "name": "NVIDIA H200",
        "pci_bus_id": f"00000000:{number + 3:02x}:00.0",
        "memory_total_bytes": 140 * GIB,
        "power_limit_milliwatts": 700_000,
    }
    return wire.GpuFacts(**(given | kwargs))


def card(number=0, **kwargs):
    given = {"uuid": card_uuid(number), "index": number, "facts": facts(number), "health": wire.GpuHealth()}
    return wire.Gpu(**(given | kwargs))


def sample(at: datetime, **kwargs):
    at_ms = int(at.timestamp() * 1000)
    return wire.GpuSample(at_ms=at_ms, monotonic_ms=at_ms, **kwargs)


class Machine:
    """An agent's side: makes reports with growing `seq` and applies them."""

    def __init__(self, agent, cards=8):
        self.agent = agent
        self.boot_id = str(uuid.uuid4())
        self.seq = 0
        self.cards = [card(number) for number in range(cards)]

    @property
    def server(self):
        self.agent.server.refresh_from_db()
        return self.agent.server

    def report(self, *, gpus=None, driver=None, faults=(), host=None, seq=None, **kwargs):
        self.seq = seq or self.seq + 1
        return wire.Report(
            protocol=wire.PROTOCOL,
            boot_id=self.boot_id,
            seq=self.seq,
            agent_version="0.1.0",
            driver=driver or wire.Driver(state="ok", version="590.48.01", cuda_version="13.1"),
            gpus=self.cards if gpus is None else list(gpus),
            faults=list(faults),
            host=host,
            **kwargs,
        )

    def send(self, *, at=None, skew=0.0, report=None, **kwargs):
        return inventory_apply(
            agent_id=self.agent.pk,
            report=report or self.report(**kwargs),
            received_at=at or now(),
            clock_skew_seconds=skew,
            address="127.0.0.1",
        )

    def gpu(self, number=0):
        return self.server.gpus.get(uuid=card_uuid(number))


def xid(code, at, *, number=0, source="nvml", count=1, message="", **kwargs):
    given = {
        "key": f"{number}:{code}:{at.timestamp()}:{source}",
        "at_ms": int(at.timestamp() * 1000),
        "code": code,
        "source": source,
        "count": count,
        "message": message,
    }
    given |= {"uuid": card_uuid(number)} if source == "nvml" else {"pci_bus_id": f"0000:{number + 3:02x}:00"}
    return wire.Fault(**(given | kwargs))


NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
