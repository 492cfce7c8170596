"""Made-up worlds with one known fault each. Their noise is not the tree's: lognormal service with a tail, load that drifts
from slot to slot, jitter that only ever adds, queues that outside and host meet at different lengths.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from fleet.agent.probes.result import ProbeResult
from monitoring.diagnosis.enums import Measure
from monitoring.diagnosis.evidence import (
    SWEEP_CONCURRENCIES,
    SWEEP_LENGTHS,
    SWEEP_REPEATS,
    CpuFacts,
    EngineFacts,
    Evidence,
    GpuSample,
    Marker,
    Objective,
    Round,
)
from monitoring.knee import Step

SLOT_SECONDS = 30.0


@dataclass(frozen=True)
class World:
    """What is true of an endpoint, in ms. Everything is alright by default.

    tls_trips: round trips of a TLS handshake. queue: mean wait. tokens: made after the first, of streams. slots: requests that
    the engine works on at once. slow_rounds: the first so many, slower by slow_by.
    """

    measure: Measure = Measure.TOTAL
    threshold: float = 500.0
    rtt: float = 12.0
    dns: float = 4.0
    tls_trips: float = 1.0
    hop: float = 2.0
    body: float = 3.0
    base: float = 40.0
    per_token: float = 0.04
    per_square: float = 0.0
    prompt: int = 2048
    queue: float = 0.0
    tpot: float = 0.0
    tokens: int = 0
    factor: float = 1.0
    syn_loss: float = 0.0
    failing: float = 0.0
    failing_phase: tuple[str, str] = ("tls", "tls")
    is_buffered: bool = False
    lag: float = 1.0
    control: float = 30.0
    slow_rounds: int = 0
    slow_by: float = 0.0
    slots: int = 32
    has_warm: bool = True
    is_closing: bool = False
    has_lengths: bool = False
    has_steps: bool = False
    rounds: int = 40
    facts: dict = field(default_factory=dict)

    @property
    def service(self):
        """Time of a usual request that is alone, to its first token."""
        return (self.base + self.per_token * self.prompt + self.per_square * self.prompt**2) * self.factor


def evidence(world, seed, vantage="shanghai"):
    """Return what would be measured in a world."""
    draw = np.random.default_rng([seed, 77])
    load = 1.0 + 0.15 * drift(draw, world.rounds)
    rounds = tuple(one_round(world, draw, number, load[number], vantage) for number in range(world.rounds))
    return Evidence(
        objective=Objective(world.threshold, world.measure),
        rounds=rounds,
        lengths=lengths(world, draw) if world.has_lengths else {},
        steps=steps(world, draw) if world.has_steps else (),
        typical_tokens=world.prompt,
        **world.facts,
    )


def drift(draw, n):
    """Load that remembers: an autoregression with unit variance."""
    found, last = [], 0.0
    for step in draw.normal(size=n):
        last = 0.8 * last + 0.6 * step
        found.append(last)
    return np.clip(found, -3, 3)


def one_round(world, draw, number, load, vantage):
    late = world.slow_by if number < world.slow_rounds else 0.0
    return Round(
        at=1_000_000.0 + number * SLOT_SECONDS,
        vantage=vantage,
        cold=outside(world, draw, load, late, "cold"),
        warm=warm(world, draw, load, late),
        host=on_host(world, draw, load, late),
        control=probe(total_ms=world.control * draw.lognormal(0, 0.2)),
    )


def warm(world, draw, load, late):
    if world.is_closing:
        return probe(outcome="skipped", reason="no_keep_alive", phase_reached="start")
    return outside(world, draw, load, late, "warm") if world.has_warm else None


def probe(**given):
    known = {"outcome": "ok", "phase_reached": "done", "loop_lag_ms": 1.0}
    return ProbeResult(
        target=1, kind="http", vantage="v", connection="cold", scheduled_ms=0, started_ms=0, **(known | given)
    )


def engine_times(world, draw, load, late):
    """Return the time to the first token and the time of the others."""
    tail = 1.8 if draw.random() < 0.01 else 1.0
    service = world.service * draw.lognormal(0, 0.08) * tail * load
    wait = draw.exponential(world.queue * max(load, 0.3)) if world.queue else 0.0
    return wait + service + late, world.tpot * world.tokens * draw.lognormal(0, 0.05) * load


def jitter(draw, ms):
    return ms * (1 + draw.gamma(1.5, 0.03))


def outside(world, draw, load, late, connection):
    if connection == "cold" and draw.random() < world.failing:
        outcome, phase = world.failing_phase
        return probe(outcome=outcome, phase_reached=phase, loop_lag_ms=world.lag)
    first, others = engine_times(world, draw, load, late)
    wait = jitter(draw, world.rtt) + first + world.hop * draw.lognormal(0, 0.15)
    opened = {}
    if connection == "cold":
        again = 1000.0 if draw.random() < world.syn_loss else 0.0
        opened = {
            "dns_ms": world.dns * draw.lognormal(0, 0.3),
            "tcp_ms": jitter(draw, world.rtt) + again,
            "tls_ms": jitter(draw, world.rtt * world.tls_trips) + draw.gamma(4, 0.8),
        }
    return answered(world, draw, sum(opened.values()), wait, others, opened, world.body * draw.lognormal(0, 0.2))


def on_host(world, draw, load, late):
    first, others = engine_times(world, draw, load, late)
    whole = replace(world, is_buffered=False)
    return answered(whole, draw, 0.1, first, others, {"tcp_ms": 0.1}, 0.2)


def answered(world, draw, open_ms, wait, others, opened, body):
    lag = world.lag * draw.lognormal(0, 0.3)
    common = {"loop_lag_ms": lag, "is_suspect": lag > 20, "wait_ms": wait, **opened}
    if world.measure is Measure.TOTAL:
        return probe(transfer_ms=body, total_ms=open_ms + wait + others + body, **common)
    end = open_ms + wait + others
    first = end - 1.0 if world.is_buffered else open_ms + wait
    return probe(
        ttft_ms=first,
        e2e_ms=end,
        total_ms=end + 1.0,
        tpot_ms=(end - first) / world.tokens,
        completion_tokens=world.tokens + 1,
        transfer_ms=others,
        **common,
    )


def lengths(world, draw):
    found = {}
    for tokens in sorted({*SWEEP_LENGTHS, world.prompt}):
        alone = replace(world, prompt=tokens).service
        found[tokens] = tuple(alone * draw.lognormal(0, 0.08) for _ in range(SWEEP_REPEATS))
    return found


def steps(world, draw):
    """A semaphore of so many slots: throughput grows until they are full."""
    alone = world.service + world.tpot * world.tokens
    found = []
    for concurrency in SWEEP_CONCURRENCIES:
        rate = min(concurrency, world.slots) / alone * 1000 * draw.lognormal(0, 0.02)
        found.append(Step(concurrency, concurrency / rate * 1000 * draw.lognormal(0, 0.02), rate))
    return tuple(found)


def cards(**given):
    return {"gpus": tuple(GpuSample(**given) for _ in range(40))}


STREAM = World(measure=Measure.TTFT, threshold=500, tpot=25, tokens=100)
HOT = {
    "gpus": tuple(GpuSample(sm_active=0.9, throttle_mask=0x40 if number % 5 < 2 else 0) for number in range(40)),
}
CAPPED = cards(sm_active=0.9, throttle_mask=0x4, enforced_limit_watts=200.0, default_limit_watts=450.0)
MEMORY_BOUND = cards(sm_active=0.8, dram_active=0.85, tensor_active=0.12)
STARTED = {"markers": (Marker("cold_start", 999_990.0, 1_000_299.0),)}
TELLING = EngineFacts(
    queue_ms=900.0, prefill_ms=120.0, decode_ms=0.0, running=8, waiting=22, max_num_seqs=8, kv_cache_usage=0.85
)

# name: the verdict that is right, and the world
WORLDS = {
    "healthy": ("healthy", World()),
    "healthy stream": ("healthy", STREAM),
    "healthy and busy": ("healthy", World(facts=cards(sm_active=0.95, throttle_mask=0x4), queue=20.0)),
    "slow names": ("dns", World(dns=420.0)),
    "new connections": ("handshake", World(rtt=85.0, tls_trips=2.0, threshold=400)),
    "new connections, never warm": ("handshake", World(rtt=85.0, tls_trips=2.0, threshold=400, has_warm=False)),
    "connections closed each time": ("handshake", World(rtt=85.0, tls_trips=2.0, threshold=400, is_closing=True)),
    "far away": ("distance", World(rtt=270.0, threshold=350)),
    "slow gateway": ("gateway", World(hop=450.0)),
    "buffering gateway": ("buffering", replace(STREAM, is_buffered=True)),
    "thin uplink": ("transfer", World(body=900.0)),
    "lost packets": ("packet_loss", World(syn_loss=0.154)),
    "hot card": ("throttled", World(factor=5.0, facts=HOT)),
    "lowered power": ("throttled", World(factor=5.0, facts=CAPPED)),
    "queue, told": ("queueing", World(queue=900.0, facts={"engine": TELLING}, has_steps=True, slots=8)),
    "queue, not told": ("queueing", World(queue=900.0, has_steps=True, slots=4)),
    "queue of a stream": ("queueing", replace(STREAM, queue=1200.0, has_lengths=True, has_steps=True, slots=4)),
    "long prompts": ("prefill_bound", World(prompt=6000, per_token=0.15, has_lengths=True)),
    "attention over long prompts": (
        "prefill_bound",
        World(prompt=8192, per_token=0.01, per_square=2e-5, has_lengths=True),
    ),
    "prefill, told": (
        "prefill_bound",
        replace(
            STREAM, per_token=0.4, facts={"engine": EngineFacts(queue_ms=20, prefill_ms=800, has_prefix_cache=False)}
        ),
    ),
    "slow tokens": (
        "decode_bandwidth",
        replace(
            STREAM,
            measure=Measure.E2E,
            threshold=2000,
            tpot=45,
            facts=MEMORY_BOUND,
        ),
    ),
    "slow tokens, cards silent": ("decode", replace(STREAM, measure=Measure.E2E, threshold=2000, tpot=45)),
    "slow start of each request": ("fixed_overhead", World(base=800.0, has_lengths=True)),
    "one core at its limit": (
        "cpu",
        World(
            base=800.0,
            has_lengths=True,
            facts=cards(sm_active=0.1) | {"engine": EngineFacts(running=3), "cpu": CpuFacts(0.4, 0.99)},
        ),
    ),
    "started anew": (
        "cold_start",
        World(slow_rounds=10, slow_by=4000.0, facts=STARTED),
    ),
    "both": ("mixed", World(rtt=130.0, tls_trips=2.0, base=700.0, has_lengths=True)),
    "failing": ("availability", World(failing=0.25)),
    "broken off": ("availability", World(failing=0.25, failing_phase=("aborted", "transfer"))),
    "busy prober": ("vantage_bad", World(lag=45.0)),
    "control slow": ("vantage_bad", World(dns=420.0, control=1500.0)),
    "short look": ("not_enough_data", World(dns=420.0, rounds=29)),
    "slow, unexplained": ("not_enough_data", World(base=800.0)),
}
