"""What a diagnosis looks at: paired rounds, the engine's own times, sweeps, cards and processors of the same minutes, markers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, get_args

from monitoring.diagnosis.enums import Measure
from monitoring.knee import Step

Cause = Literal["deploy", "cold_start"]
SWEEP_LENGTHS = (128, 512, 2048, 8192)
SWEEP_REPEATS = 8
SWEEP_CONCURRENCIES = (1, 2, 4, 8, 16)


class Probed(Protocol):
    """The parts of a probe's result that are read here (`fleet.agent.probes.result.ProbeResult` has them all).

    Durations in ms; None where the phase did not happen. ttft, e2e and total run from before the connection is asked for.
    """

    @property
    def outcome(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def phase_reached(self) -> str: ...
    @property
    def dns_ms(self) -> float | None: ...
    @property
    def tcp_ms(self) -> float | None: ...
    @property
    def tls_ms(self) -> float | None: ...
    @property
    def transfer_ms(self) -> float | None: ...
    @property
    def ttft_ms(self) -> float | None: ...
    @property
    def tpot_ms(self) -> float | None: ...
    @property
    def completion_tokens(self) -> int | None: ...
    @property
    def e2e_ms(self) -> float | None: ...
    @property
    def total_ms(self) -> float | None: ...
    @property
    def loop_lag_ms(self) -> float | None: ...
    @property
    def is_suspect(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Round:
    """One slot of 30 s from one vantage point, with the same kind of payload everywhere and a unique prompt each time.

    at: seconds since 1970. cold: over a new connection; warm: over an open one, None when there was none to have. host: on the
    machine itself over loopback. control: of this vantage's control target, None when it was not asked.
    """

    at: float
    vantage: str
    cold: Probed
    host: Probed
    warm: Probed | None = None
    control: Probed | None = None


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """Means of the window out of the engine's own metrics, in ms and counts; None for what this engine does not expose.

    waiting, running: requests of one replica. max_num_seqs: how many it works on at once. kv_cache_usage: 0 to 1.
    has_prefix_cache: whether it is switched on.
    """

    queue_ms: float | None = None
    prefill_ms: float | None = None
    decode_ms: float | None = None
    waiting: float | None = None
    running: float | None = None
    max_num_seqs: int | None = None
    kv_cache_usage: float | None = None
    has_prefix_cache: bool | None = None


@dataclass(frozen=True, slots=True)
class GpuSample:
    """One reading of one card. Activities and utilization: shares from 0 to 1. throttle_mask: NVML's clock reasons."""

    sm_active: float | None = None
    dram_active: float | None = None
    tensor_active: float | None = None
    utilization: float | None = None
    power_watts: float | None = None
    enforced_limit_watts: float | None = None
    default_limit_watts: float | None = None
    throttle_mask: int | None = None


@dataclass(frozen=True, slots=True)
class CpuFacts:
    """The host's processors in the window, as shares from 0 to 1: all of them together, and the busiest single core."""

    all_cores: float | None = None
    busiest_core: float | None = None


@dataclass(frozen=True, slots=True)
class Marker:
    """Something that explains slowness by itself: from `begin` until `end` (ready again, and settled), seconds since 1970."""

    cause: Cause
    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class Objective:
    """The promise that is missed. percentile: 0.95 or 0.99. threshold_ms: of `measure`."""

    threshold_ms: float
    measure: Measure = Measure.TOTAL
    percentile: float = 0.95

    def __post_init__(self) -> None:
        """Refuse what cannot be judged."""
        if not 0 < self.threshold_ms < float("inf"):
            raise ValueError("a threshold is a duration in ms over 0")
        if not 0.5 <= self.percentile < 1:
            raise ValueError("an objective is about a percentile between 50 and 100")


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything of one endpoint and one window.

    lengths: prompt tokens → latencies on the host in ms, by the objective's measure, one request at a time. quiet_ms: the same
    of a usual prompt, None: taken from the sweeps. steps: the concurrency sweep of one replica, on the host.
    typical_tokens: length of a usual prompt. replicas: that were ready. control_slow_ms: over this a control target is slow.
    """

    objective: Objective
    rounds: tuple[Round, ...]
    engine: EngineFacts = EngineFacts()
    lengths: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    quiet_ms: float | None = None
    steps: tuple[Step, ...] = ()
    gpus: tuple[GpuSample, ...] = ()
    cpu: CpuFacts = CpuFacts()
    markers: tuple[Marker, ...] = ()
    typical_tokens: int = 512
    replicas: int = 1
    control_slow_ms: float = 1_000.0

    def __post_init__(self) -> None:
        """Refuse what contradicts itself, with the field's name."""
        if self.replicas < 1 or self.typical_tokens < 1:
            raise ValueError("replicas and typical_tokens count from 1")
        if any(
            not tokens > 0 or not all(0 <= ms < float("inf") for ms in found) for tokens, found in self.lengths.items()
        ):
            raise ValueError("lengths: a prompt has tokens, and a latency is a finite number of ms")
        if any(marker.cause not in get_args(Cause) or marker.end < marker.begin for marker in self.markers):
            raise ValueError("markers: a deploy or a cold start that ends after it begins")
