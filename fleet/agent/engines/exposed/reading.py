"""From a metrics page to EngineMetrics: one set of readings for every engine, with what is missing by name."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Final

from fleet.agent.engines.exposed.families import FAMILIES, PROGRESS, RANK_LABELS, Named, Reading, Rule
from fleet.agent.engines.exposed.page import Page, Sample, read_page

HISTOGRAMS: Final = (
    "time_to_first_token",
    "inter_token",
    "queue_time",
    "prefill_time",
    "decode_time",
    "request_latency",
)
NUMBERS: Final = (
    "running",
    "waiting",
    "kv_cache_usage_percent",
    "preemptions_total",
    "prompt_tokens_total",
    "generation_tokens_total",
    "requests_total",
)
_SLEEP: Final = "vllm:engine_sleep_state"
# No engine has more; a page that claims so is not an engine's.
MAX_BOUNDS: Final = 200


@dataclass(frozen=True, slots=True)
class Histogram:
    """A histogram of seconds, all lines of a name added. buckets: (upper bound, requests up to it), the last one infinite.

    buckets are empty when the page's do not add up (a higher bound with fewer requests): count and sum are all that is told then.
    """

    buckets: tuple[tuple[float, float], ...]
    count: float
    sum_seconds: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineMetrics:
    """What an engine tells of itself now; each None where it tells nothing, which is not 0.

    running, waiting: requests, of all models and data-parallel engines. waiting_by_model: the same for each served name.
    kv_cache_usage_percent: of the fullest engine. *_total: since its start. progress: grows with any work, only to be compared.
    missing: readings that this engine version does not expose, by field. broken: histograms whose buckets do not add up.
    bad_lines: that could not be read.
    """

    engine: str
    running: float | None = None
    waiting: float | None = None
    waiting_by_model: Mapping[str, float] = field(default_factory=dict)
    kv_cache_usage_percent: float | None = None
    preemptions_total: float | None = None
    prompt_tokens_total: float | None = None
    generation_tokens_total: float | None = None
    requests_total: float | None = None
    progress: float | None = None
    time_to_first_token: Histogram | None = None
    inter_token: Histogram | None = None
    queue_time: Histogram | None = None
    prefill_time: Histogram | None = None
    decode_time: Histogram | None = None
    request_latency: Histogram | None = None
    is_asleep: bool = False
    missing: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    bad_lines: int = 0


def read_metrics(text: str, *, kind: str = "custom", version: str = "") -> EngineMetrics | None:
    """Return what a page says, None when no engine that is known here wrote it.

    kind: the engine that is expected; for "custom" the names tell. version: "" when unknown, then every name is tried. A name
    that the stated version should not have still counts when no other is there: images are relabelled.
    """
    page = read_page(text, wanted_names())
    engine = kind if kind in FAMILIES and _is_of(kind, page) else _engine_of(page)
    if engine is None:
        return None
    readings, numbers = FAMILIES[engine], numbers_of(version)
    found = {name: _number(page, readings[name], numbers) for name in NUMBERS if name in readings}
    histograms = {name: _histogram(page, readings[name], numbers) for name in HISTOGRAMS if name in readings}
    missing = tuple(name for name in (*NUMBERS, *HISTOGRAMS) if {**found, **histograms}.get(name) is None)
    return EngineMetrics(
        engine=engine,
        waiting_by_model=_by_model(page, readings["waiting"], numbers),
        progress=_progress(page, engine),
        is_asleep=any(
            sample.value == 1.0 and sample.labels.get("sleep_state", "awake") != "awake"
            for sample in page.samples.get(_SLEEP, ())
        ),
        missing=missing,
        broken=tuple(name for name, one in histograms.items() if one is not None and one.count and not one.buckets),
        bad_lines=page.bad_lines,
        **found,  # type: ignore[arg-type]
        **histograms,  # type: ignore[arg-type]
    )


def _is_of(engine: str, page: Page) -> bool:
    names = (named.name for reading in FAMILIES[engine].values() for named in reading.names)
    return any(name in page.samples or f"{name}_bucket" in page.samples for name in (*names, *PROGRESS[engine]))


def _engine_of(page: Page) -> str | None:
    """TensorRT-LLM's names had no prefix, so it is asked last."""
    return next((engine for engine in sorted(FAMILIES, key=lambda one: one == "trtllm") if _is_of(engine, page)), None)


def _names(reading: Reading, version: tuple[int, ...]) -> list[Named]:
    return sorted(reading.names, key=lambda named: not named.is_of(version))


def _number(page: Page, reading: Reading, version: tuple[int, ...]) -> float | None:
    for named in _names(reading, version):
        value = _together(reading.rule, page.samples.get(named.name, ()))
        if value is not None:
            return value * named.scale
    return None


def _together(rule: Rule, samples: Iterable[Sample]) -> float | None:
    """Put the lines of one name together by its rule; ranks of one engine count once. NaN is no value."""
    engines = _by_engine(_totals(list(samples)))
    if not engines:
        return None
    return sum(engines.values()) if rule == "sum" else max(engines.values())


def _by_engine(samples: Iterable[Sample]) -> dict[tuple[tuple[str, str], ...], float]:
    """Return one value for each engine (and model, and bound): its ranks tell the same, the largest counts."""
    engines: dict[tuple[tuple[str, str], ...], float] = {}
    for sample in samples:
        if math.isfinite(sample.value):
            key = tuple(sorted((label, text) for label, text in sample.labels.items() if label not in RANK_LABELS))
            engines[key] = max(engines.get(key, sample.value), sample.value)
    return engines


def _totals(samples: list[Sample]) -> list[Sample]:
    """Leave out what is told once more for each priority, where the total stands beside it (SGLang)."""
    whole = [sample for sample in samples if not sample.labels.get("priority")]
    return whole or samples


def _by_model(page: Page, reading: Reading, version: tuple[int, ...]) -> dict[str, float]:
    for named in _names(reading, version):
        models: dict[str, list[Sample]] = {}
        for sample in page.samples.get(named.name, ()):
            model = sample.labels.get("model_name") or sample.labels.get("model")
            if model:
                models.setdefault(model, []).append(sample)
        if models:
            values = {model: _together(reading.rule, samples) for model, samples in models.items()}
            return {model: value * named.scale for model, value in values.items() if value is not None}
    return {}


def _progress(page: Page, engine: str) -> float | None:
    values = [_together("sum", page.samples[name]) for name in PROGRESS[engine] if name in page.samples]
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _histogram(page: Page, reading: Reading, version: tuple[int, ...]) -> Histogram | None:
    """Add the buckets of all lines, ranks once; a bound that not every line has is left out: its sum would be too small."""
    for named in _names(reading, version):
        lines = [s for s in page.samples.get(f"{named.name}_bucket", ()) if math.isfinite(s.value) and "le" in s.labels]
        by_bound: dict[float, list[Sample]] = {}
        for sample in lines:
            by_bound.setdefault(_bound(sample.labels["le"]), []).append(sample)
        if not by_bound or len(by_bound) > MAX_BOUNDS:
            continue
        series = {bound: _by_engine(_totals(samples)) for bound, samples in by_bound.items()}
        most = max(len(engines) for engines in series.values())
        buckets = sorted(
            (bound * named.scale, sum(engines.values())) for bound, engines in series.items() if len(engines) == most
        )
        total = _together("sum", page.samples.get(f"{named.name}_sum", ()))
        count = _together("sum", page.samples.get(f"{named.name}_count", ()))
        seconds = None if total is None else total * named.scale
        whole = count if count is not None else buckets[-1][1]
        adds_up = math.isinf(buckets[-1][0]) and all(
            low[1] <= high[1] for low, high in pairwise([(0.0, 0.0), *buckets])
        )
        return Histogram(tuple(buckets) if adds_up else (), whole, seconds)
    return None


def _bound(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.inf


@lru_cache(maxsize=1)
def wanted_names() -> frozenset[str]:
    """Return every name of a page that is read; the others are passed over."""
    names = {_SLEEP} | {name for names in PROGRESS.values() for name in names}
    for readings in FAMILIES.values():
        for field_name, reading in readings.items():
            suffixes = ("_bucket", "_sum", "_count") if field_name in HISTOGRAMS else ("",)
            names |= {f"{named.name}{suffix}" for named in reading.names for suffix in suffixes}
    return frozenset(names)


def numbers_of(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version, () when there are none: v0.10.1.post2 → (0, 10, 1)."""
    numbers: list[int] = []
    for part in version.removeprefix("v").split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits or len(digits) > 9:
            break
        numbers.append(int(digits))
        if digits != part:
            break
    return tuple(numbers)
