"""The numbers beside a verdict, by name and unit."""

import math

from monitoring.diagnosis.columns import Kept
from monitoring.diagnosis.host import Case, HostFacts
from monitoring.diagnosis.sweep import LengthFit


def numbers_of(kept: Kept, case: Case) -> dict[str, float | None]:
    """Return everything that was measured; None for what was not, and for a percentile that lies among failures."""
    figures, facts, shares = case.figures, case.facts, case.shares
    found: dict[str, float | None] = {
        "rounds": kept.n,
        "pairs": kept.pairs,
        "put_aside": kept.put_aside,
        "errors_outside": kept.errors_outside,
        "errors_host": kept.errors_host,
        "closed_connections": kept.closing,
        "outside_ms": figures.outside_p,
        "outside_p50_ms": figures.outside,
        "host_ms": figures.host_p,
        "host_p50_ms": figures.host,
        "warm_ms": figures.warm_p if len(kept.columns.warm) else None,
        "network_share": figures.share,
        "rtt_ms": figures.rtt,
        "dns_ms": figures.dns,
        "tcp_ms": figures.tcp,
        "tls_ms": figures.tls,
        "transfer_ms": figures.transfer,
        "hop_ms": figures.counted_hop,
        "syn_share": figures.syn_share,
        "queue_share": shares.queue,
        "prefill_share": shares.prefill,
        "decode_share": shares.decode,
        "quiet_ms": facts.quiet_ms,
        **_of_sweeps(facts, case.fit),
        **_of_machine(facts),
    }
    return {name: value if value is None or math.isfinite(value) else None for name, value in found.items()}


def _of_sweeps(facts: HostFacts, fit: LengthFit | None) -> dict[str, float | None]:
    return {
        "knee_concurrency": facts.knee.concurrency if facts.knee else None,
        "knee_per_second": facts.knee.throughput_per_second if facts.knee else None,
        "prompt_share": fit.share if fit else None,
        "intercept_ms": fit.intercept_ms if fit else None,
        "slope_ms_per_token": fit.slope_ms if fit else None,
        "slope_low_ms_per_token": fit.slope_low_ms if fit else None,
        "slope_high_ms_per_token": fit.slope_high_ms if fit else None,
        "r_squared": fit.r_squared if fit else None,
    }


def _of_machine(facts: HostFacts) -> dict[str, float | None]:
    cards, cpu = facts.cards, facts.cpu
    return {
        "sm_active": cards.sm_active,
        "dram_active": cards.dram_active,
        "tensor_active": cards.tensor_active,
        "throttled_share": cards.throttled_share,
        "power_of_limit": cards.power_of_limit,
        "cpu": cpu.all_cores,
        "busiest_core": cpu.busiest_core,
        "running": facts.engine.running,
        "waiting": facts.engine.waiting,
    }
