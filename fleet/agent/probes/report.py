"""From the trace of a probe to its result."""

import math
from dataclasses import dataclass
from typing import Any

from fleet.agent.probes.result import (
    LATE_START_MS,
    LONG_LAG_MS,
    ProbeError,
    ProbeResult,
    Trace,
    plain,
    seconds_ms,
    span_ms,
)
from fleet.agent.probes.target import STREAMS, Connection, Target
from fleet.agent.probes.tokens import tpot_seconds

WAITED_MS = 5.0  # for a thread that resolves names: more is our own doing


@dataclass(frozen=True, slots=True)
class Around:
    """What surrounds a probe. scheduled, started: wall clock, seconds; begun, ended: monotonic; lag: of this process, seconds."""

    vantage: str
    connection: Connection
    scheduled: float
    started: float
    begun: float
    ended: float
    lag: float | None


def result_of(target: Target, trace: Trace, around: Around, failure: ProbeError | None) -> ProbeResult:
    """Return the result. A probe that failed has no total: it took for ever, and `elapsed_ms` says how long we waited."""
    sched_lag_ms = round(max(around.started - around.scheduled, 0.0) * 1000, 3)
    lag_ms = seconds_ms(around.lag)
    is_suspect = (
        sched_lag_ms > LATE_START_MS or (lag_ms or 0.0) > LONG_LAG_MS or trace.resolver_waited * 1000 > WAITED_MS
    )
    return ProbeResult(
        target=target.id,
        kind=target.kind,
        vantage=around.vantage,
        connection=around.connection,
        scheduled_ms=round(around.scheduled * 1000),
        started_ms=round(around.started * 1000),
        outcome=failure.outcome if failure else "ok",
        reason=failure.reason if failure else "",
        detail=plain(failure.detail) if failure else "",
        phase_reached=trace.phase,
        elapsed_ms=round((around.ended - around.begun) * 1000, 3),
        timeout_ms=target.effective_timeout_seconds * 1000,
        loop_lag_ms=lag_ms,
        sched_lag_ms=sched_lag_ms,
        is_suspect=is_suspect,
        **_facts(trace),
        **_phases(trace),
        **_ends(target, trace, is_ok=failure is None),
    )


def _facts(trace: Trace) -> dict[str, Any]:
    names = ("address", "family", "tried", "status", "bytes", "prompt_tokens", "completion_tokens", "tokens", "hops")
    facts = {name: getattr(trace, name) for name in names}
    if trace.session is not None:
        facts |= {"tls_version": trace.session.version, "certificate_days": trace.session.certificate_days}
    return facts


def _phases(trace: Trace) -> dict[str, Any]:
    return {
        "dns_ms": seconds_ms(trace.dns),
        "tcp_ms": seconds_ms(trace.tcp),
        "tls_ms": seconds_ms(trace.tls),
        "send_ms": span_ms(trace.send_began, trace.sent),
        "wait_ms": span_ms(trace.sent, trace.headers),
        "transfer_ms": span_ms(trace.headers, trace.ended),
        "ttfb_ms": span_ms(trace.started, trace.headers),
        "ttfe_ms": span_ms(trace.started, trace.first_event),
        "ttft_ms": span_ms(trace.started, trace.first_token),
        "ttfot_ms": span_ms(trace.started, trace.first_text),
        "tpot_ms": seconds_ms(tpot_seconds(trace)),
        **_gaps(trace.gaps),
    }


def _gaps(gaps: list[float]) -> dict[str, Any]:
    if not gaps:
        return {}
    ordered = sorted(gaps)
    middle = ordered[math.ceil(len(ordered) / 2) - 1]
    return {"chunk_p50_ms": seconds_ms(middle), "chunk_max_ms": seconds_ms(ordered[-1])}


def _ends(target: Target, trace: Trace, *, is_ok: bool) -> dict[str, Any]:
    if not is_ok:
        return {}
    total = span_ms(trace.started, trace.ended)
    last = span_ms(trace.started, trace.last_token) if target.kind in STREAMS else total
    parts = (trace.dns, trace.tcp, trace.tls)
    known = sum(part for part in parts if part is not None) * 1000
    if target.kind != "dns":  # whose whole exchange is its dns phase
        known += span_ms(trace.send_began, trace.ended) or 0.0
    other = None if total is None else round(max(total - known, 0.0), 3)
    return {"total_ms": total, "e2e_ms": last, "other_ms": other}
