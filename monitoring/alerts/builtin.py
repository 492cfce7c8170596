"""The rules that watch from the first day on, with the counts and limits of the design; all on by default."""

from dataclasses import replace
from typing import Final

from django.utils.translation import gettext_lazy as _

from monitoring.alerts.conditions import counting
from monitoring.alerts.conditions.thresholds import Operator, Threshold
from monitoring.alerts.definitions import FAILED, OWN, Definition
from monitoring.alerts.enums import Family, RuleKind
from monitoring.alerts.machine import Holding
from panel.core.enums import Severity

MINUTE: Final = 60.0
# What the 99th percentile shall stay below where a probe says nothing else, and the 95th as a part of it (500 of 1000 ms).
LIMIT_MS: Final = {"e2e": 1000.0, "ttfb": 1000.0, "ttft": 2000.0, "tpot": 100.0}
P95_FACTOR: Final = 0.5

_CRITICAL, _WARNING, _INFO = Severity.CRITICAL, Severity.WARNING, Severity.INFO
_COUNT, _STATE, _THRESHOLD = RuleKind.COUNT, RuleKind.STATE, RuleKind.THRESHOLD


def _share(
    key: str, family: str, series: str, *, limit: float, share: float, minutes: float, severity: Severity
) -> Definition:
    window = minutes * MINUTE
    threshold = Threshold(
        Operator.SHARE, limit=limit, share=share, clear_share=min(share, 0.2) / 2, window_seconds=window, samples=10
    )
    return Definition(key, _THRESHOLD, family, severity, threshold=threshold, series=series)


DEFINITIONS: Final = (
    Definition("p99_fast", _COUNT, Family.LATENCY, _CRITICAL, count=counting.P99_FAST, metric=OWN),
    Definition("p99_slow", _COUNT, Family.LATENCY, _WARNING, count=counting.P99_SLOW, metric=OWN),
    Definition(
        "p95", _COUNT, Family.P95, _WARNING, count=counting.P95, metric=OWN, limit_factor=P95_FACTOR, is_digest=True
    ),
    Definition("ttft", _COUNT, Family.LATENCY, _CRITICAL, count=counting.TTFT, metric="ttft"),
    Definition("tpot", _COUNT, Family.LATENCY, _WARNING, count=counting.TPOT, metric="tpot"),
    Definition("error_rate", _COUNT, Family.AVAILABILITY, _WARNING, count=counting.ERROR_RATE, metric=FAILED),
    Definition("down", RuleKind.DOWN, Family.AVAILABILITY, _CRITICAL),
    Definition("no_data", RuleKind.SILENT, Family.DATA, _WARNING),
    Definition("vantage_bad", _STATE, Family.PLACE, _INFO, Holding(for_seconds=3 * MINUTE, clear_seconds=5 * MINUTE)),
    Definition("agent_down", _STATE, Family.AGENT, _WARNING, Holding(clear_seconds=MINUTE / 2)),
    Definition("cert", _STATE, Family.CERTIFICATE, _INFO, Holding(for_seconds=30.0)),
    Definition("xid", _STATE, Family.GPU, _CRITICAL),
    Definition("gpu_missing", _STATE, Family.GPU, _CRITICAL, Holding(for_seconds=MINUTE)),
    _share("queueing", Family.LOAD, "replica.waiting", limit=0, share=0.8, minutes=10, severity=_WARNING),
    replace(
        _share("kv_pressure", Family.MEMORY, "replica.kv_cache_percent", limit=90, share=0.8, minutes=10, severity=_WARNING),
        holding=Holding(clear_seconds=MINUTE),
    ),
    replace(
        _share("preemptions", Family.MEMORY, "replica.preemptions_per_second", limit=0, share=0.05, minutes=5, severity=_WARNING),
        holding=Holding(clear_seconds=5 * MINUTE),
    ),
    Definition(
        "vram_high", _THRESHOLD, Family.MEMORY, _INFO, Holding(for_seconds=15 * MINUTE, clear_seconds=10 * MINUTE),
        threshold=Threshold(Operator.ABOVE, limit=90, clear=85, samples=30), series="gpu.memory_grown_percent",
    ),
    Definition(
        "gpu_underused", _THRESHOLD, Family.LOAD, _INFO, Holding(for_seconds=30 * MINUTE, clear_seconds=30 * MINUTE),
        threshold=Threshold(Operator.BELOW, limit=30, clear=35, samples=60), series="gpu.serving_activity_percent",
        is_digest=True,
    ),
    replace(
        _share("power_full", Family.LOAD, "gpu.power_limit_percent", limit=95, share=0.8, minutes=15, severity=_INFO),
        is_evidence=True,
    ),
    _share("throttle", Family.HEAT, "gpu.throttled_percent", limit=0, share=0.1, minutes=10, severity=_WARNING),
    Definition(
        "thermal", _THRESHOLD, Family.HEAT, _WARNING, Holding(for_seconds=5 * MINUTE, clear_seconds=10 * MINUTE),
        threshold=Threshold(Operator.BELOW, limit=3, clear=5), series="gpu.headroom_celsius",
    ),
)  # fmt: skip
BY_KEY: Final = {each.key: each for each in DEFINITIONS}

TITLES: Final = {
    "p99_fast": _("P99 over its limit"),
    "p99_slow": _("P99 over its limit for hours"),
    "p95": _("P95 over its limit"),
    "ttft": _("First token too late"),
    "tpot": _("Tokens too slow"),
    "error_rate": _("Too many failures"),
    "down": _("Down"),
    "no_data": _("No data"),
    "vantage_bad": _("A place that probes is not well"),
    "agent_down": _("Agent silent"),
    "cert": _("Certificate ends soon"),
    "xid": _("GPU fault"),
    "gpu_missing": _("GPU missing"),
    "queueing": _("Requests wait"),
    "kv_pressure": _("KV cache nearly full"),
    "preemptions": _("Requests are pushed out of the KV cache"),
    "vram_high": _("GPU memory nearly full"),
    "gpu_underused": _("GPU hardly used while serving"),
    "power_full": _("GPU at its power limit"),
    "throttle": _("GPU throttled"),
    "thermal": _("GPU too hot"),
}
