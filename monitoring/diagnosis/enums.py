"""The words of a diagnosis: verdicts, sides, next steps. Their sentences are in `words`."""

from enum import StrEnum


class Verdict(StrEnum):
    """What a diagnosis comes to."""

    HEALTHY = "healthy"
    NOT_ENOUGH_DATA = "not_enough_data"
    AVAILABILITY = "availability"
    VANTAGE_BAD = "vantage_bad"
    COLD_START = "cold_start"
    DNS = "dns"
    HANDSHAKE = "handshake"
    DISTANCE = "distance"
    GATEWAY = "gateway"
    BUFFERING = "buffering"
    TRANSFER = "transfer"
    PACKET_LOSS = "packet_loss"
    THROTTLED = "throttled"
    QUEUEING = "queueing"
    PREFILL_BOUND = "prefill_bound"
    DECODE = "decode"
    DECODE_BANDWIDTH = "decode_bandwidth"
    FIXED_OVERHEAD = "fixed_overhead"
    CPU = "cpu"
    MIXED = "mixed"


class Side(StrEnum):
    """Where the time goes. NONE: the question does not arise."""

    NONE = "none"
    NETWORK = "network"
    HOST = "host"
    MIXED = "mixed"


class Level(StrEnum):
    """Confidence in one word."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Scope(StrEnum):
    """Who is affected, told by comparing vantage points. UNKNOWN: there is one only, so there is nothing to compare."""

    UNKNOWN = "unknown"
    ONE = "one"
    SOME = "some"
    ALL = "all"


class Measure(StrEnum):
    """Which time the objective is about. TOTAL: to the end of a plain response. TTFT, E2E: of streams."""

    TOTAL = "total"
    TTFT = "ttft"
    E2E = "e2e"


class ActionKind(StrEnum):
    """The one thing to do next."""

    NOTHING = "nothing"
    MEASURE_MORE = "measure_more"
    RUN_SWEEPS = "run_sweeps"
    FIX_ERRORS = "fix_errors"
    FIX_VANTAGE = "fix_vantage"
    WAIT = "wait"
    KEEP_WARM = "keep_warm"
    FIX_RESOLVER = "fix_resolver"
    KEEP_ALIVE = "keep_alive"
    MOVE_REGION = "move_region"
    CHECK_GATEWAY = "check_gateway"
    STOP_BUFFERING = "stop_buffering"
    WIDEN_UPLINK = "widen_uplink"
    CHECK_ROUTE = "check_route"
    COOL_CARD = "cool_card"
    RAISE_POWER_LIMIT = "raise_power_limit"
    SCALE_TO = "scale_to"
    RAISE_MAX_NUM_SEQS = "raise_max_num_seqs"
    CACHE_PREFIXES = "cache_prefixes"
    ADD_COMPUTE = "add_compute"
    QUANTISE = "quantise"
    PROFILE_HOST = "profile_host"
    ADD_CPU = "add_cpu"


class Limit(StrEnum):
    """Why a verdict is less sure than its resamples say."""

    NO_WARM = "no_warm"
    NO_SWEEP = "no_sweep"
    NO_LENGTHS = "no_lengths"
    NO_PLATEAU = "no_plateau"
    LITTLE_DISAGREES = "little_disagrees"
    NO_GPU_ACTIVITY = "no_gpu_activity"
    NO_CPU = "no_cpu"
    SHARE_UNCLEAR = "share_unclear"
    FEW_EVENTS = "few_events"
