"""Why an engine did not start, from its log: a class, a sentence, the next step, and arguments that would help."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from endpoints.engines.base import EngineSpec, Value
from endpoints.engines.concepts import Concept, argument_for
from endpoints.engines.failure_sentences import NEXT_STEPS, SENTENCES

# A context below this is of no use to anybody.
LEAST_CONTEXT: Final = 1024
MOST_MEMORY: Final = 0.95
_MEMORY_STEP: Final = 0.05
_MAX_LINES: Final = 20_000

# The first that any line matches wins, so causes stand before their consequences. Case does not count.
_PATTERNS: Final[Sequence[tuple[str, str]]] = (
    ("driver_mismatch", r"driver/library version mismatch"),
    (
        "driver_too_old",
        r"nvidia driver on your system is too old|cuda driver version is insufficient|forward compatibility was attempted",
    ),
    ("no_gpu", r"no cuda gpus are available|found no nvidia driver|no cuda-capable device|failed to infer device type"),
    (
        "unknown_argument",
        (
            r"unrecognized arguments?: (?P<flag>\S+)|invalid argument: (?P<flag2>\S+)|no such option: (?P<flag3>[^\s?]+)"
            r"|unexpected argument '(?P<flag4>[^']+)'|unrecognized option '(?P<flag5>[^']+)'"
        ),
    ),
    ("port_in_use", r"address already in use|\[errno 98\]|couldn't bind (?:http server )?socket|failed to bind socket"),
    ("disk_full", r"no space left on device"),
    (
        "program_missing",
        r"no module named '?(?P<what>vllm|sglang|tensorrt_llm|transformers)\b|(?:command not found|exec: .* not found)",
    ),
    (
        "remote_code",
        r"pass the argument .?trust_remote_code=true|set the option .?trust_remote_code=true|contains custom code which must",
    ),
    (
        "model_refused",
        r"gated repo|401 client error|403 client error|access to model .* is restricted|invalid user token",
    ),
    (
        "hub_unreachable",
        (
            r"max retries exceeded with url|connecttimeout|couldn't connect to|localentrynotfounderror|name or service not known"
            r"|temporary failure in name resolution|we couldn't connect|offline mode is enabled"
        ),
    ),
    (
        "model_missing",
        (
            r"repository not found|repositorynotfounderror|not a valid model identifier|404 client error"
            r"|does not appear to have a file|failed to open gguf"
            r"|no such file or directory.*(?:config\.json|\.gguf|\.safetensors)"
        ),
    ),
    (
        "model_unknown",
        r"model architectures? .{0,200} (?:is|are) not supported|unknown model architecture|does not recognize this architecture",
    ),
    ("heads_not_divisible", r"(?:attention heads|num_heads).{0,80}(?:must be )?divisible by.{0,40}tensor"),
    (
        "precision_unsupported",
        r"bfloat16 is only supported on gpus|fp8 .{0,60}not supported|minimum capability.{0,60}current capability",
    ),
    (
        "context",
        (
            r"max seq len \((?P<wanted>\d+)\).{0,160}stored in kv cache \((?P<fits>\d+)\)"
            r"|estimated maximum model length is (?P<fits2>\d+)"
        ),
    ),
    (
        "no_cache_memory",
        r"no available memory for the cache blocks|not enough memory\. please try to increase --mem-fraction-static",
    ),
    ("memory_taken", r"free memory on device.{0,120}less than desired gpu memory utilization"),
    (
        "cuda_memory",
        r"cuda out of memory|outofmemoryerror|cudamalloc failed: out of memory|hip out of memory|failed to allocate cuda",
    ),
    (
        "shared_memory",
        r"insufficient shared memory|bus error|unable to (?:write to|open shared memory) (?:file|object) <?/?torch",
    ),
    ("host_memory", r"std::bad_alloc|cannot allocate memory|defaultcpuallocator: can't allocate"),
    (
        "cards_cannot_talk",
        r"nccl (?:error|failure)|ncclsystemerror|ncclunhandledcudaerror|peer access is not supported",
    ),
)
_COMPILED: Final = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _PATTERNS)
_HOST: Final = re.compile(r"host='([^']+)'|https?://([A-Za-z0-9.-]+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """Why a start failed. line: of the log, as it came. suggestions: arguments and values that would help, for this engine.

    endpoint: the hub that was tried, "" when the line names none.
    """

    kind: str
    line: str
    sentence: str
    next_step: str
    suggestions: Mapping[str, Value] = field(default_factory=dict)
    endpoint: str = ""


def failure_in(lines: Iterable[str], spec: EngineSpec | None = None) -> Failure | None:
    """Return why an engine did not start, None when no line says it. spec: makes the suggestions fit its engine and values."""
    kept = [line for _number, line in zip(range(_MAX_LINES), lines, strict=False)]
    for kind, pattern in _COMPILED:
        for line in kept:
            match = pattern.search(line[:2000])
            if match is not None:
                return _failure(kind, line, match, spec)
    return None


def _failure(kind: str, line: str, match: re.Match[str], spec: EngineSpec | None) -> Failure:
    facts: dict[str, str] = {
        "flag": next((text for name, text in match.groupdict().items() if name.startswith("flag") and text), "")
    }
    suggestions: dict[str, Value] = {}
    endpoint = ""
    if kind == "context":
        fits = int(match["fits"] or match["fits2"])
        kind = "context" if fits >= LEAST_CONTEXT else "context_hopeless"
        facts["fits"] = str(fits)
        suggestions = _named(spec, "context", fits) if kind == "context" else {}
    elif kind == "cuda_memory":
        slots = _current(spec, "slots", 128)
        kind = kind if slots > 1 else "cuda_memory_alone"
        facts["slots"] = str(max(int(slots) // 2, 1))
        suggestions = _named(spec, "slots", max(int(slots) // 2, 1)) if slots > 1 else {}
    elif kind == "no_cache_memory":
        share = min(MOST_MEMORY, round(_current(spec, "memory", 0.9) + _MEMORY_STEP, 2))
        facts["share"] = f"{share:g}"
        suggestions = _named(spec, "memory", share)
    elif kind == "hub_unreachable":
        found = _HOST.search(line)
        endpoint = (found[1] or found[2]) if found else ""
        facts["endpoint"] = endpoint or str(_("the hub"))
    return Failure(
        kind=kind,
        line=line.rstrip("\n")[:2000],
        sentence=_filled(SENTENCES[kind], facts),
        next_step=_filled(NEXT_STEPS[kind], facts),
        suggestions=suggestions,
        endpoint=endpoint,
    )


def _filled(text: Promise, facts: Mapping[str, str]) -> str:
    return str(text) % facts if "%(" in str(text) else str(text)


def _named(spec: EngineSpec | None, concept: Concept, value: Value) -> dict[str, Value]:
    """Return a suggestion in the engine's own name; without a spec in vLLM's."""
    argument = argument_for(spec.kind if spec is not None else "vllm", concept)
    return {} if argument is None else {argument.name: value}


def _current(spec: EngineSpec | None, concept: Concept, usual: float) -> float:
    """Return the value in force: as given, else the table's default."""
    argument = argument_for(spec.kind, concept) if spec is not None else None
    if spec is None or argument is None:
        return usual
    value = spec.arguments.get(argument.name, argument.default)
    return usual if value is None else float(value)
