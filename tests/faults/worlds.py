"""The worlds: what is wrong in each, what it is measured with, and what a diagnosis has to come to.

Times are scaled down (an objective of 100 ms where a service would have 500), so that a world takes seconds; what the kernel
decides itself (a second until a lost SYN is sent again, 200 ms for other packets) is not.
"""

from dataclasses import dataclass, field
from typing import Any

from fleet.agent.probes.target import Target
from fleet.agent.rounds.plan import Plan, Sweeps
from monitoring.diagnosis.enums import Measure, Verdict
from monitoring.diagnosis.evidence import Marker, Objective
from tests.faults.lab import ENGINE_PORT, FRONT_PORT, HOST

ROUNDS = 40
SHORT = Sweeps(lengths=(32, 64, 128, 256), repeats=8, concurrencies=(1, 2, 4, 8), each=4)
USUAL_TOKENS = 128
PLAIN = {"kind": "http", "path": "/"}
CHAT = {"kind": "chat", "prompt": " ".join(["word"] * (USUAL_TOKENS - 11)), "max_tokens": 4}


@dataclass(frozen=True, kw_only=True)
class World:
    """threshold_ms, measure: the objective. line: see tests.faults.line.Line. engine, front: their settings; front "nginx": one.

    name: by which the caller asks, resolved after names_ms. cold_seconds: a cold start that is marked. cards: readings of a card.
    is_starved: the prober outside gets no time of its machine. is_peak: the callers go when the rounds are over.
    """

    verdict: Verdict
    threshold_ms: float = 100.0
    measure: Measure = Measure.TOTAL
    line: dict[str, Any] = field(default_factory=lambda: {"delay_ms": 2})
    engine: dict[str, Any] = field(default_factory=dict)
    front: dict[str, Any] | str | None = None
    target: dict[str, Any] = field(default_factory=lambda: PLAIN)
    names_ms: float | None = None
    slot_seconds: float = 0.25
    sweeps: Sweeps | None = None
    cold_seconds: float = 0.0
    cards: dict[str, Any] | None = None
    rounds: int = ROUNDS
    is_starved: bool = False
    is_peak: bool = False

    @property
    def objective(self):
        return Objective(self.threshold_ms, self.measure)

    def plans(self):
        """Return what is measured outside and on the host."""
        slots = list(range(self.rounds))
        is_tls = isinstance(self.front, dict) and "certificate" in self.front
        away = Target(
            id=1, host="engine.test" if self.names_ms is not None else HOST,
            port=FRONT_PORT if self.front is not None else ENGINE_PORT, is_tls=is_tls, is_verified=not is_tls,
            connections=("cold", "warm"), **self.target,
        )  # fmt: skip
        near = Target(id=1, host="127.0.0.1", port=ENGINE_PORT, **self.target)
        outside = Plan(target=away, begin_at=0.0, slot_seconds=self.slot_seconds, slots=slots)
        host = Plan(
            target=near, begin_at=0.0, slot_seconds=self.slot_seconds, slots=slots, offset_seconds=self.slot_seconds / 2,
            metrics_path="/metrics", measure=self.measure.value, typical_tokens=USUAL_TOKENS, sweeps=self.sweeps,
        )  # fmt: skip
        return outside, host

    def markers(self, begin):
        """Return what explains slowness by itself."""
        return [Marker("cold_start", begin - 5, begin + self.cold_seconds)] if self.cold_seconds else []


_V, _M = Verdict, Measure
WORLDS = {
    "healthy, plain": World(verdict=_V.HEALTHY, engine={"base_ms": 20}),
    "healthy, streamed and busy": World(
        verdict=_V.HEALTHY, measure=_M.TTFT, line={"delay_ms": 8}, target=CHAT,
        engine={"base_ms": 20, "token_ms": 3, "slots": 16, "clients": 4},
    ),
    "slow name server": World(verdict=_V.DNS, names_ms=150, engine={"base_ms": 15}),
    "TLS without keep-alive": World(
        verdict=_V.HANDSHAKE, threshold_ms=60, line={"delay_ms": 9}, engine={"base_ms": 12},
        front={"certificate": "made", "closes": True},
    ),
    "far away": World(verdict=_V.DISTANCE, line={"delay_ms": 60}, engine={"base_ms": 20}, slot_seconds=0.5),
    "gateway that thinks": World(verdict=_V.GATEWAY, engine={"base_ms": 20}, front={"wait_ms": 110}, slot_seconds=0.35),
    "nginx that buffers": World(
        verdict=_V.BUFFERING, measure=_M.TTFT, engine={"base_ms": 20, "token_ms": 8}, front="nginx",
        target={**CHAT, "max_tokens": 20}, slot_seconds=0.45,
    ),
    "thin line": World(
        verdict=_V.TRANSFER, line={"delay_ms": 3, "rate_mbit": 4}, engine={"base_ms": 12, "body_bytes": 60_000},
        slot_seconds=0.4,
    ),
    "line that loses packets": World(
        verdict=_V.PACKET_LOSS, line={"delay_ms": 5, "loss": 0.07}, engine={"base_ms": 15}, slot_seconds=0.9,
    ),
    "hot card": World(
        verdict=_V.THROTTLED, engine={"base_ms": 40, "factor": 3.0}, slot_seconds=0.4,
        cards={"clock_event_reasons": 0x48, "utilization_percent": 97},
    ),
    "queue, by the engine's metrics": World(
        verdict=_V.QUEUEING, engine={"base_ms": 30, "slots": 2, "clients": 10}, slot_seconds=0.55,
    ),
    "queue, by the sweep after the peak": World(
        verdict=_V.QUEUEING, engine={"base_ms": 30, "slots": 2, "clients": 10, "has_metrics": False},
        slot_seconds=0.55, sweeps=SHORT, is_peak=True,
    ),
    "long prompts": World(
        verdict=_V.PREFILL_BOUND, measure=_M.TTFT, target=CHAT, sweeps=SHORT, slot_seconds=0.4,
        engine={"base_ms": 15, "per_token_ms": 0.9, "token_ms": 1, "has_metrics": False},
    ),
    "long prompts, quadratic": World(
        verdict=_V.PREFILL_BOUND, measure=_M.TTFT, target=CHAT, sweeps=SHORT, slot_seconds=0.4,
        engine={"base_ms": 15, "per_token2_ms": 0.0065, "token_ms": 1, "has_metrics": False},
    ),
    "many tokens": World(
        verdict=_V.DECODE_BANDWIDTH, threshold_ms=150, measure=_M.E2E, target={**CHAT, "max_tokens": 30}, slot_seconds=0.5,
        engine={"base_ms": 20, "token_ms": 6},
        cards={"gpm_sm_millipercent": 92_000, "gpm_dram_millipercent": 81_000, "gpm_tensor_millipercent": 14_000,
               "utilization_percent": 99, "gpm": 1},
    ),
    "fixed cost of every request": World(
        verdict=_V.FIXED_OVERHEAD, measure=_M.TTFT, target=CHAT, sweeps=SHORT, slot_seconds=0.4,
        engine={"base_ms": 140, "per_token_ms": 0.02, "token_ms": 1, "has_metrics": False},
    ),
    "cold start": World(
        verdict=_V.COLD_START, engine={"base_ms": 20, "cold_ms": 150, "cold_seconds": 4.2}, cold_seconds=3.4, slot_seconds=0.4,
    ),
    "requests that fail": World(verdict=_V.AVAILABILITY, engine={"base_ms": 20, "fail": 0.2}),
    "far and slow": World(
        verdict=_V.MIXED, line={"delay_ms": 50}, engine={"base_ms": 130, "per_token_ms": 0.0}, slot_seconds=0.8,
    ),
    "prober that is starved": World(verdict=_V.VANTAGE_BAD, engine={"base_ms": 60}, is_starved=True),
}  # fmt: skip
HEALTHY = [name for name, world in WORLDS.items() if world.verdict is Verdict.HEALTHY]
