"""What agent and panel say to each other: msgspec structs, encoded as msgpack (or JSON), compressed with zstd or gzip.

Shared by both sides, so it lives in the agent's package. Integers stay in NVML's units (mW, mJ, bytes, KiB, ns) with the
unit in the name; counters travel as counters together with the reading before the batch (`previous`), so that the panel
computes rates without keeping state. A reading that is missing is None, never 0.

One report is one batch: `(boot_id, seq)` names it; `seq` starts at 1 and grows by one for each batch of a run. The batch
is written to the spool before it is sent and resent unchanged; what belongs to the moment of sending goes in headers.

Samples travel as columns (`Columns`, made by `packing.py`), which the panel reads in place. Who writes reports by hand may
send them as rows instead (`Gpu.samples`, `Report.host_samples`), as protocol 1 did; one report has one form.

Bounds (a report over one of them is refused): see `LIMITS`.
"""

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from fleet.agent.orders import GatewayOrder, ReplicaOrder
from fleet.agent.probes.target import Target
from fleet.agent.wire_engines import Engine

PROTOCOL: Final = 2
PROTOCOLS: Final = frozenset({1, 2})  # that a panel takes; 1 has no columns
CONTENT_TYPE: Final = "application/vnd.fleetdeck.report+msgpack"

# Headers of the moment of sending: wall clock and monotonic clock of the agent in milliseconds, and which run of the
# operating system the monotonic clock belongs to. From them the panel tells clock skew and the true age of a sample.
HEADER_SENT_AT_MS: Final = "Fleetdeck-Sent-At-Ms"
HEADER_SENT_MONOTONIC_MS: Final = "Fleetdeck-Sent-Monotonic-Ms"
HEADER_OS_BOOT_ID: Final = "Fleetdeck-Os-Boot-Id"

LIMITS: Final = {
    "body_bytes": 1_048_576,
    "decoded_bytes": 8_388_608,
    "gpus": 64,
    "mig_instances_per_gpu": 16,
    "samples_per_gpu": 720,
    "host_samples": 720,
    "processes_per_gpu": 1_000,
    "faults": 500,
    "engines": 256,
    "samples_per_engine": 720,
    "histograms_per_engine": 256,
    "histogram_bounds": 200,
    "text": 500,
}

# The name of a card that gives no handle and whose UUID is not known: this and its index.
UNIDENTIFIED: Final = "unidentified-"

DRIVER_STATES: Final = (
    "unknown",
    "ok",
    "no_gpu",
    "no_library",
    "not_loaded",
    "version_mismatch",
    "no_permission",
    "not_answering",
    "error",
)
# Why a reading or a card is missing.
REASONS: Final = (
    "not_supported",
    "no_permission",
    "gpu_lost",
    "reset_required",
    "not_answering",
    "handle_refused",
    "mig_mode",
    "unknown_error",
    "insufficient_power",
    "function_not_found",
    "driver_unavailable",
    "not_enumerated",
)

Text = Annotated[str, Meta(max_length=500)]
Name = Annotated[str, Meta(max_length=100)]


class GpuSample(Struct, omit_defaults=True, array_like=True):
    """One fast-tier reading of one card (or MIG instance, which gives memory only).

    at_ms: agent's wall clock, Unix ms. monotonic_ms: its monotonic clock. Counters (energy, violations, NVLink, PCIe
    bytes) are since driver load and may fall to 0 with a driver reload. clock_event_reasons: NVML's bit mask.
    """

    at_ms: int
    monotonic_ms: int
    utilization_percent: int | None = None
    memory_busy_percent: int | None = None
    memory_used_bytes: int | None = None
    power_milliwatts: int | None = None
    energy_millijoules: int | None = None
    temperature_celsius: int | None = None
    memory_temperature_celsius: int | None = None
    sm_clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    encoder_percent: int | None = None
    decoder_percent: int | None = None
    fan_percent: int | None = None
    performance_state: int | None = None
    clock_event_reasons: int | None = None
    pcie_tx_bytes: int | None = None
    pcie_rx_bytes: int | None = None
    nvlink_tx_kib: int | None = None
    nvlink_rx_kib: int | None = None
    power_violation_ns: int | None = None
    thermal_violation_ns: int | None = None
    sm_activity_percent: float | None = None
    tensor_activity_percent: float | None = None
    dram_activity_percent: float | None = None


class Columns(Struct, array_like=True):
    """Samples of one kind column by column: for each field of the sample's struct, in its order, that reading of all rows.

    data: little-endian 8-byte floats, NaN for None. A panel leaves out columns it does not know and misses none that it does.
    """

    rows: Annotated[int, Meta(ge=1, le=1_000_000)]
    data: bytes


class GpuProcess(Struct, omit_defaults=True):
    """One process on a card. pid is the host's. kinds: compute, graphics, mps. memory is None where the driver hides it."""

    pid: int
    kinds: list[Annotated[str, Meta(max_length=16)]]
    name: Text = ""
    user: Name = ""
    container: Name = ""
    memory_used_bytes: int | None = None
    sm_percent: int | None = None
    started_at_ms: int | None = None


class GpuHealth(Struct, omit_defaults=True):
    """The slow tier: counters and flags that tell of a failing card; each None where the card has none."""

    ecc_corrected_volatile: int | None = None
    ecc_uncorrected_volatile: int | None = None
    ecc_corrected_aggregate: int | None = None
    ecc_uncorrected_aggregate: int | None = None
    remapped_rows_correctable: int | None = None
    remapped_rows_uncorrectable: int | None = None
    remapped_rows_pending: bool | None = None
    remapped_rows_failure: bool | None = None
    retired_pages_single_bit: int | None = None
    retired_pages_double_bit: int | None = None
    retired_pages_pending: bool | None = None
    recovery_action: int | None = None
    pcie_replays: int | None = None
    pcie_generation: int | None = None
    pcie_width: int | None = None
    nvlink_active_links: int | None = None
    nvlink_errors: int | None = None
    enforced_power_limit_milliwatts: int | None = None
    persistence_mode: bool | None = None


class GpuFacts(Struct, omit_defaults=True):
    """Read once and after every re-initialisation."""

    name: Name = ""
    vendor: Annotated[str, Meta(max_length=16)] = "nvidia"
    architecture: Name = ""
    compute_capability: Annotated[str, Meta(max_length=16)] = ""
    serial: Name = ""
    vbios: Name = ""
    pci_bus_id: Annotated[str, Meta(max_length=32)] = ""
    memory_total_bytes: int | None = None
    memory_reserved_bytes: int | None = None
    bar1_total_bytes: int | None = None
    power_limit_milliwatts: int | None = None
    power_limit_default_milliwatts: int | None = None
    power_limit_maximum_milliwatts: int | None = None
    temperature_slowdown_celsius: int | None = None
    temperature_shutdown_celsius: int | None = None
    temperature_maximum_celsius: int | None = None
    sm_clock_maximum_mhz: int | None = None
    memory_clock_maximum_mhz: int | None = None
    pcie_generation_maximum: int | None = None
    pcie_width_maximum: int | None = None
    nvlink_links: int | None = None
    ecc_mode: bool | None = None
    mig_mode: bool | None = None
    compute_mode: Annotated[str, Meta(max_length=32)] = ""
    numa_node: int | None = None


class Gpu(Struct, omit_defaults=True):
    """One card, or one MIG instance (`parent_uuid` set).

    state: ok | degraded | lost | unknown; reason: one of REASONS, empty when ok. A card that the agent knows and that no
    longer enumerates is sent as state `missing` until the panel forgets it. rows: how many rows of `Report.gpu_columns` are
    this card's, the oldest first; has_previous: the first of them is the reading before the batch. facts, unsupported,
    health and processes are None when unchanged since the batch before (facts) or not read in this batch (health, processes).
    """

    uuid: Annotated[str, Meta(max_length=96)]
    index: int | None = None
    parent_uuid: Annotated[str, Meta(max_length=96)] = ""
    state: Annotated[str, Meta(max_length=16)] = "ok"
    reason: Annotated[str, Meta(max_length=64)] = ""
    samples: list[GpuSample] = []
    previous: GpuSample | None = None
    rows: int = 0
    has_previous: bool = False
    facts: GpuFacts | None = None
    unsupported: dict[str, str] | None = None
    health: GpuHealth | None = None
    processes: list[GpuProcess] | None = None
    processes_visibility: Annotated[str, Meta(max_length=16)] = ""  # visible | hidden (no host pids) | unknown


class Driver(Struct, omit_defaults=True):
    """What NVML as a whole answers. detail: the sentence of the library. since_ms: when this state began."""

    state: Annotated[str, Meta(max_length=20)]
    detail: Text = ""
    version: Annotated[str, Meta(max_length=64)] = ""
    library_version: Annotated[str, Meta(max_length=64)] = ""
    cuda_version: Annotated[str, Meta(max_length=32)] = ""
    since_ms: int = 0


class HostFacts(Struct, omit_defaults=True):
    """What machine this is. container_*: limits of the cgroup, when there are some. os_boot_id changes with a reboot."""

    hostname: Name = ""
    operating_system: Name = ""
    kernel: Name = ""
    architecture: Annotated[str, Meta(max_length=16)] = ""
    cpu_model: Name = ""
    cpu_count: int | None = None
    memory_total_bytes: int | None = None
    swap_total_bytes: int | None = None
    disk_total_bytes: int | None = None
    container: Annotated[str, Meta(max_length=32)] = ""
    container_cpu_limit: float | None = None
    container_memory_limit_bytes: int | None = None
    has_host_pids: bool | None = None
    booted_at_ms: int | None = None
    os_boot_id: Annotated[str, Meta(max_length=64)] = ""
    python_version: Annotated[str, Meta(max_length=32)] = ""


class HostSample(Struct, omit_defaults=True, array_like=True):
    """One reading of the host. Byte counters are since boot; agent_* is what the agent itself costs."""

    at_ms: int
    monotonic_ms: int
    cpu_percent: float | None = None
    memory_used_bytes: int | None = None
    swap_used_bytes: int | None = None
    load_1m: float | None = None
    disk_used_bytes: int | None = None
    disk_read_bytes: int | None = None
    disk_write_bytes: int | None = None
    network_receive_bytes: int | None = None
    network_transmit_bytes: int | None = None
    agent_cpu_percent: float | None = None
    agent_memory_bytes: int | None = None


class Fault(Struct, omit_defaults=True):
    """One sighting of an XID (or SXID). key is unique per sighting on this server across runs, sources and retries."""

    key: Annotated[str, Meta(max_length=120)]
    at_ms: int
    code: int
    kind: Annotated[str, Meta(max_length=16)] = "xid"
    source: Annotated[str, Meta(max_length=16)] = "nvml"
    uuid: Annotated[str, Meta(max_length=96)] = ""
    pci_bus_id: Annotated[str, Meta(max_length=32)] = ""
    message: Text = ""
    count: int = 1


class Report(Struct, omit_defaults=True):
    """One batch. `gpus` lists every card known to the agent, with or without samples; `host` comes when it changed.

    gpu_columns: the samples of all cards, in the order of `gpus`. host_columns: the host's, the first one the reading before
    the batch with has_host_previous. engines: the replicas whose metrics page was read; engine_columns: their samples.
    """

    protocol: int
    boot_id: Annotated[str, Meta(max_length=36)]
    seq: Annotated[int, Meta(ge=1)]
    agent_version: Annotated[str, Meta(max_length=32)]
    driver: Driver
    gpus: list[Gpu]
    host_samples: list[HostSample] = []
    host_previous: HostSample | None = None
    gpu_columns: Columns | None = None
    host_columns: Columns | None = None
    has_host_previous: bool = False
    host: HostFacts | None = None
    faults: list[Fault] = []
    os_boot_id: Annotated[str, Meta(max_length=64)] = ""
    spooled_batches: int = 0
    lost_samples: int = 0
    capabilities: list[Annotated[str, Meta(max_length=32)]] = []
    engines: list[Engine] = []
    engine_columns: Columns | None = None


class ReportAnswer(Struct, omit_defaults=True):
    """What the panel answers to a stored (or already stored) batch."""

    seq: int
    assignments_version: int
    sample_interval_seconds: float
    report_interval_seconds: float
    panel_time_ms: int
    duplicate: bool = False
    needs_facts: bool = False


class JoinRequest(Struct, omit_defaults=True):
    """Body of POST /api/agent/v1/join/; the token goes in the body, over TLS, and is used up.

    gateway_port: where a machine with the capability `gateway` lets callers in.
    """

    token: Annotated[str, Meta(max_length=200)]
    agent_version: Annotated[str, Meta(max_length=32)]
    hostname: Name = ""
    capabilities: list[Annotated[str, Meta(max_length=32)]] = []
    gateway_port: int | None = None


class JoinAnswer(Struct, omit_defaults=True):
    """The agent's own token, shown this once, and who it is now."""

    agent_token: str
    server_id: int
    server_name: str
    sample_interval_seconds: float
    report_interval_seconds: float


class JobOrder(Struct, omit_defaults=True):
    """A one-shot command that is open: to be claimed, or going on. One that is not listed any more is to be stopped."""

    id: int
    kind: Annotated[str, Meta(max_length=16)]
    time_limit_seconds: int
    arguments: dict[str, Any] = {}


class JobReport(Struct, omit_defaults=True):
    """Body of POST /api/agent/v1/jobs/<id>/. run_id: of the agent's process that claimed it; the same one may repeat itself.

    state: claimed (before it is begun), running, succeeded, failed. reason: of a failure, a code. result: with succeeded.
    """

    run_id: Annotated[str, Meta(max_length=36)]
    state: Literal["claimed", "running", "succeeded", "failed"]
    percent: Annotated[int, Meta(ge=0, le=100)] = 0
    step: Annotated[str, Meta(max_length=32)] = ""
    reason: Annotated[str, Meta(max_length=32)] = ""
    detail: Text = ""
    result: dict[str, Any] | None = None


class JobAnswer(Struct):
    """How the job stands at the panel; one in any other state than claimed and running is to be stopped."""

    state: str


class Assignments(Struct, omit_defaults=True):
    """What should be so on this machine: level-triggered, never a command to start something.

    jobs: those that are open, the oldest first. replicas: all that should be here. gateway: None when none is wanted.
    probes: what is probed from here.
    """

    version: int
    sample_interval_seconds: float
    report_interval_seconds: float
    collect_pcie_throughput: bool = False
    jobs: list[JobOrder] = []
    replicas: list[ReplicaOrder] = []
    gateway: GatewayOrder | None = None
    probes: list[Target] = []


class Refusal(Struct):
    """Body of every 4xx answer: a code for the program, a sentence for the log."""

    code: str
    message: str
