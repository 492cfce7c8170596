"""What the panel wants to run on a machine, and what its agent says of it: replicas of endpoints, their logs, a gateway.

Beside `wire`, in the same encoding and with the same habits. Orders are level-triggered: they say what should be so, and an
agent that was away for an hour converges without replaying anything. What an agent runs and no order names any more is
stopped; what it did not start is never touched.
"""

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from fleet.agent.probes.result import ProbeResult

REPLICAS_PATH: Final = "/api/agent/v1/replicas/"
LOGS_PATH: Final = "/api/agent/v1/replica-logs/"
ROUTES_PATH: Final = "/api/agent/v1/routes/"
TRAFFIC_PATH: Final = "/api/agent/v1/traffic/"
PROBES_PATH: Final = "/api/agent/v1/probes/"

# What one agent may say of its replicas in one message.
LIMITS: Final = {
    "replicas": 256,
    "log_chunks": 64,
    "log_chunk_bytes": 65_536,
    "endpoints": 5_000,
    "keys": 20_000,
    "probe_results": 2_000,
}

Text = Annotated[str, Meta(max_length=500)]
Name = Annotated[str, Meta(max_length=100)]
Path = Annotated[str, Meta(max_length=1_000)]

Runtime = Literal["container", "process"]
# Where a replica is on its way, as its agent sees it.
ReplicaState = Literal["pending", "pulling", "starting", "ready", "not_ready", "draining", "stopped", "failed"]
# How the engine is, once it runs. `asleep`: it gave its memory back and wakes with a request.
Health = Literal["", "starting", "ok", "degraded", "saturated", "stalled", "asleep", "down"]


class ReadyCheck(Struct, omit_defaults=True):
    """The real request whose answer makes a replica ready; a process that merely runs is not.

    kind: `stream` (POST, the first event with text counts), `answer` (POST or GET, a 2xx counts), `tcp`. body: JSON.
    marker: a text that the answer must hold, when set.
    """

    kind: Literal["stream", "answer", "tcp"]
    path: Path = "/"
    method: Literal["GET", "POST"] = "GET"
    body: dict[str, Any] | None = None
    marker: Text = ""
    timeout_seconds: float = 10.0


class Mount(Struct, omit_defaults=True):
    """A folder of the host that a container sees. The agent's policy decides whether it may be given."""

    source: Path
    target: Path
    is_read_only: bool = True


class ReplicaOrder(Struct, omit_defaults=True):
    """One serving copy that should exist on this machine.

    generation: another one means that what runs is stopped and started anew (restart, changed launch). wanted: `run`; `drain`
    (no new requests come: wait until none is running, at most `drain_limit_seconds`, then stop); `pull` (only fetch the image).
    command: argv of the engine (for a container: of its entry point, empty for the image's own). host, port: where the engine
    listens; port_of_container: the engine's port in a network of the container's own, which `host` and `port` are published to;
    None: the container shares the machine's network. metrics_port: of metrics_path, None for `port` (Triton has another).
    queue_path: a page with `queue_running` and `queue_pending`, of engines whose work outlives the connection that asked for it
    (ComfyUI); it tells what the metrics of others tell.
    secrets: environment variables that no log, status or error may show. gpu_uuids: the cards it gets, and no others.
    upstream_key: the bearer that the engine asks for.
    start_limit_seconds: until the first answered request; after it, `failed` with reason `start_limit`.
    """

    id: int
    generation: int
    endpoint: Name
    revision: int
    wanted: Literal["run", "drain", "pull"]
    runtime: Runtime
    command: list[str]
    port: int
    ready: ReadyCheck
    engine: Name = "custom"
    host: Name = "127.0.0.1"
    port_of_container: int | None = None
    image: Annotated[str, Meta(max_length=500)] = ""
    environment: dict[str, str] = {}
    secrets: dict[str, str] = {}
    upstream_key: str = ""
    gpu_uuids: list[str] = []
    mounts: list[Mount] = []
    shm_bytes: int | None = None
    memory_limit_bytes: int | None = None
    health_path: Path = ""
    metrics_path: Path = ""
    metrics_port: int | None = None
    queue_path: Path = ""
    start_limit_seconds: float = 1_800.0
    drain_limit_seconds: float = 300.0


class ReplicaStatus(Struct, omit_defaults=True):
    """What the agent sees of one replica that it was ordered, or that it still has to stop.

    reason: a code (`pull_failed`, `start_limit`, `crash_loop`, `exited`, `out_of_memory`, `port_in_use`, `gpu_missing`,
    `policy`, `no_runtime`, `spawn_failed`, `check_failed`, …), with `detail` as its sentence or the last line of the log.
    percent: of a pull. since_ms: when this state began (agent's wall clock). restarts: of this generation. handle: how a person
    finds it on the machine (`container fleetdeck-12`, `pid 4711`). running, waiting, kv_cache_percent: of the engine's own
    metrics, None where it tells none. answered_ms: how long the last ready check took. metrics_family: whose names its page has
    (`vllm`, …); metrics_missing: readings that this version does not expose; metrics_broken: histograms that do not add up;
    metrics_problem: why the page tells nothing: `no_page`, `off`, `refused`, `unanswered`, `too_large`, `unknown`.
    """

    id: int
    generation: int
    state: ReplicaState
    health: Health = ""
    reason: Annotated[str, Meta(max_length=32)] = ""
    detail: Text = ""
    since_ms: int = 0
    percent: int | None = None
    restarts: int = 0
    exit_code: int | None = None
    handle: Name = ""
    image_id: Annotated[str, Meta(max_length=200)] = ""
    running: float | None = None
    waiting: float | None = None
    kv_cache_percent: float | None = None
    answered_ms: float | None = None
    metrics_family: Annotated[str, Meta(max_length=16)] = ""
    metrics_missing: Annotated[list[Annotated[str, Meta(max_length=32)]], Meta(max_length=32)] = []
    metrics_broken: Annotated[list[Annotated[str, Meta(max_length=32)]], Meta(max_length=32)] = []
    metrics_problem: Annotated[str, Meta(max_length=16)] = ""


class ReplicasReport(Struct, omit_defaults=True):
    """Body of POST REPLICAS_PATH: all replicas of this machine, at every change and every 10 s.

    run_id: of the agent's process; seq grows by one for each message of a run, an older one than the panel has is ignored.
    orders_version: of the assignments that these replicas follow. runtimes: those usable here, with a version or a reason:
    `{"container": "docker 27.1", "process": "ok"}`; one that is not usable is missing and its reason stands in `unusable`.
    """

    run_id: Annotated[str, Meta(max_length=36)]
    seq: int
    at_ms: int
    orders_version: int
    replicas: list[ReplicaStatus]
    runtimes: dict[str, Text] = {}
    unusable: dict[str, Text] = {}


class LogChunk(Struct, omit_defaults=True):
    """Lines of one replica's log, whole lines, UTF-8.

    offset: how many bytes of this generation's log lie before it (those skipped included), so that a chunk said twice is
    stored once. skipped_bytes: lost before this chunk because there was too much.
    """

    replica: int
    generation: int
    offset: int
    text: Annotated[str, Meta(max_length=65_536)]
    skipped_bytes: int = 0


class LogsReport(Struct):
    """Body of POST LOGS_PATH; the answer is 2xx when stored."""

    chunks: list[LogChunk]


# ---- gateway


class Upstream(Struct, omit_defaults=True):
    """A replica that takes requests. slots: how many it works on at once, None when unknown."""

    replica: int
    address: Name
    port: int
    slots: int | None = None


class Route(Struct, omit_defaults=True):
    """One endpoint as gateways serve it: at `/<name>/…`, and at each of `hosts` at the root.

    upstreams: ready ones only; empty answers 503 with Retry-After. upstream_key: the bearer that replicas ask for.
    in_flight_limit: requests at once in each gateway; more are answered 429 with Retry-After. in_flight_per_replica: at once
    for each replica in each gateway; what is beyond waits, as long as the endpoint's limit allows. first_byte_seconds: until
    the response's headers, then another replica is tried; idle_seconds: between two pieces of a stream (at least: a gateway
    may wait as long as for the first byte); total_seconds: of a whole request, None for no limit. health_path: for active
    checks; empty: TCP only. requires_key: callers need one of `Routes.keys`. probe_mark: requests that show it are the panel's
    own probes, counted apart; it opens nothing and lifts no limit.
    """

    name: Name
    upstreams: list[Upstream]
    hosts: list[Name] = []
    upstream_key: str = ""
    in_flight_limit: int = 256
    in_flight_per_replica: int | None = None
    first_byte_seconds: float = 120.0
    idle_seconds: float = 120.0
    total_seconds: float | None = None
    health_path: Path = ""
    requires_key: bool = True
    probe_mark: Annotated[str, Meta(max_length=64)] = ""


class KeyRule(Struct, omit_defaults=True):
    """An API key that gateways accept. digest: SHA-256 of the whole key in hex. endpoints: names, empty for all.

    is_held: over its tokens per minute for now; answered 429 until the panel says otherwise.
    """

    id: int
    digest: Annotated[str, Meta(max_length=64)]
    endpoints: list[Name] = []
    expires_at_ms: int | None = None
    requests_per_minute: int | None = None
    is_held: bool = False


class GatewayOrder(Struct, omit_defaults=True):
    """That this machine runs a gateway. routes_version: fetch ROUTES_PATH when it is another one.

    certificate_file, key_file: on the machine; empty: plain HTTP.
    """

    port: int
    routes_version: int
    host: Name = "0.0.0.0"  # noqa: S104  # callers come from elsewhere
    certificate_file: Path = ""
    key_file: Path = ""


class Routes(Struct, omit_defaults=True):
    """Answer of GET ROUTES_PATH?have=<version>: what changed after that version, or everything (is_whole).

    routes: new and changed ones; gone: names that no longer are. keys: all of them whenever one changed, else None.
    """

    version: int
    is_whole: bool
    routes: list[Route]
    gone: list[Name] = []
    keys: list[KeyRule] | None = None


class Histogram(Struct, omit_defaults=True):
    """Durations in logarithmic buckets, mergeable by adding: bucket k counts those of [2**(k/32), 2**((k+1)/32)) ms.

    A value read from a bucket's geometric middle is off by 1.1 % at most. count and sum_ms are of all of them.
    """

    count: int
    sum_ms: float
    buckets: dict[int, int]


class EndpointTraffic(Struct, omit_defaults=True):
    """What went through one gateway for one endpoint in one span of 10 s.

    statuses: by class (`2xx` … `5xx`), `cut` (the stream broke off after it began), `left` (the caller went away
    before the end). queue: waiting before a replica was taken; first_byte: until the caller got the first byte; total: to the
    end. A request counts in the span in which it ended. retries: tries beyond the first. limited: answered 429 here.
    requests_by_key, tokens_by_key: by key id; tokens as the engines reported them. estimated_tokens_by_key: of streams whose
    engine reported none (callers have to ask for it): one for each event, and one for four bytes of the request. probes: requests
    of the panel's own probes, which are in no other number but those by key; probe_tokens: theirs, among those by key.
    """

    endpoint: Name
    requests: int
    statuses: dict[str, int]
    queue: Histogram
    first_byte: Histogram
    total: Histogram
    bytes_in: int = 0
    bytes_out: int = 0
    in_flight: int | None = None
    retries: int = 0
    limited: int = 0
    requests_by_key: dict[str, int] = {}
    tokens_by_key: dict[str, int] = {}
    estimated_tokens_by_key: dict[str, int] = {}
    probes: int = 0
    probe_tokens: int = 0


class TrafficReport(Struct, omit_defaults=True):
    """Body of POST TRAFFIC_PATH. run_id, seq: a message said twice is stored once, and those of a run come in order.

    from_ms: start of the span of 10 s, of which one message tells. One without endpoints says how it is.
    state: `serving`, `starting`, `failed`; applied_version: of the routes that the data plane runs with.
    """

    run_id: Annotated[str, Meta(max_length=36)]
    seq: int
    from_ms: int
    state: Literal["serving", "starting", "failed"]
    applied_version: int
    endpoints: list[EndpointTraffic] = []
    detail: Text = ""
    data_plane: Name = ""


# ---- probes


class ProbesReport(Struct, omit_defaults=True):
    """Body of POST PROBES_PATH: what this machine's prober found, each result once or more often. lost: of those before
    these, how many there was no room for since the agent's start.
    """

    results: list[ProbeResult]
    lost: int = 0
