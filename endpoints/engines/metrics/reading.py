"""From a metrics page to EngineMetrics: one set of readings for every engine, with what is missing by name."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from endpoints.engines.metrics.families import FAMILIES, PROGRESS, RANK_LABELS, Named, Reading, Rule
from endpoints.engines.metrics.page import Page, Sample, read_page
from endpoints.engines.parts import numbers_of

HISTOGRAMS: Final = ("time_to_first_token", "inter_token", "queue_time", "request_latency")
NUMBERS: Final = (
    "running",
    "waiting",
    "kv_cache_usage_percent",
    "preemptions_total",
    "prompt_tokens_total",
    "generation_tokens_total",
)
LABELS: Final[Mapping[str, Promise]] = {
    "running": _("Requests running"),
    "waiting": _("Requests waiting"),
    "kv_cache_usage_percent": _("KV cache usage"),
    "preemptions_total": _("Preemptions"),
    "prompt_tokens_total": _("Prompt tokens"),
    "generation_tokens_total": _("Generated tokens"),
    "time_to_first_token": _("Time to the first token"),
    "inter_token": _("Time between tokens"),
    "queue_time": _("Time in the queue"),
    "request_latency": _("Time of a whole request"),
}
_SLEEP: Final = "vllm:engine_sleep_state"


@dataclass(frozen=True, slots=True)
class Histogram:
    """A histogram of seconds, all lines of a name added. buckets: (upper bound, requests up to it), the last one infinite."""

    buckets: tuple[tuple[float, float], ...]
    count: float
    sum_seconds: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineMetrics:
    """What an engine tells of itself now; each None where it tells nothing, which is not 0.

    running, waiting: requests, of all models and data-parallel engines. waiting_by_model: the same for each served name.
    kv_cache_usage_percent: of the fullest engine. *_total: since its start. progress: grows with any work, only to be compared.
    missing: readings that this engine version does not expose, by field. bad_lines: that could not be read.
    """

    engine: str
    running: float | None = None
    waiting: float | None = None
    waiting_by_model: Mapping[str, float] = field(default_factory=dict)
    kv_cache_usage_percent: float | None = None
    preemptions_total: float | None = None
    prompt_tokens_total: float | None = None
    generation_tokens_total: float | None = None
    progress: float | None = None
    time_to_first_token: Histogram | None = None
    inter_token: Histogram | None = None
    queue_time: Histogram | None = None
    request_latency: Histogram | None = None
    is_asleep: bool = False
    missing: tuple[str, ...] = ()
    bad_lines: int = 0

    def sentences_for_missing(self) -> dict[str, str]:
        """Return for each missing field what to show in its place."""
        return {
            name: gettext("%(reading)s: not exposed by this engine version") % {"reading": LABELS[name]}
            for name in self.missing
        }


def read_metrics(text: str, *, kind: str = "custom", version: str = "") -> EngineMetrics | None:
    """Return what a page says, None when no engine that is known here wrote it.

    kind: the engine that is expected; for "custom" the names tell. version: "" when unknown, then every name is tried. A name
    that the stated version should not have still counts when no other is there: images are relabelled.
    """
    page = read_page(text)
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
    engines: dict[tuple[tuple[str, str], ...], float] = {}
    for sample in _totals(list(samples)):
        if math.isfinite(sample.value):
            key = tuple(sorted((label, text) for label, text in sample.labels.items() if label not in RANK_LABELS))
            engines[key] = max(engines.get(key, sample.value), sample.value)
    if not engines:
        return None
    return sum(engines.values()) if rule == "sum" else max(engines.values())


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
    """Add the buckets of all lines; a bound that not every line has is left out, for its sum would be too small."""
    for named in _names(reading, version):
        lines = [s for s in page.samples.get(f"{named.name}_bucket", ()) if math.isfinite(s.value) and "le" in s.labels]
        if not lines:
            continue
        bounds: dict[float, list[float]] = {}
        for sample in lines:
            bounds.setdefault(_bound(sample.labels["le"]), []).append(sample.value)
        series = max(len(values) for values in bounds.values())
        buckets = sorted(
            (bound * named.scale, sum(values)) for bound, values in bounds.items() if len(values) == series
        )
        total = _together("sum", page.samples.get(f"{named.name}_sum", ()))
        count = _together("sum", page.samples.get(f"{named.name}_count", ()))
        seconds = None if total is None else total * named.scale
        return Histogram(tuple(buckets), count if count is not None else buckets[-1][1], seconds)
    return None


def _bound(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.inf
