"""Which of the visual states (shape + colour) stands for a state of the domain."""

from typing import Final

TONES: Final = ("ok", "warning", "critical", "progress", "unknown", "silenced", "info")

# Keyed by the stored value: servers, GPU health, GPUs, drivers and severities use one vocabulary, so that a word never
# has two shapes. An agent that is silent is a warning, not a failure: the machine may well be serving.
STATE_TONES: Final = {
    "pending": "progress",
    "joining": "progress",
    "ready": "ok",
    "degraded": "warning",
    "not_reporting": "warning",
    "unreachable": "critical",
    "draining": "progress",
    "maintenance": "silenced",
    "retired": "silenced",
    "healthy": "ok",
    "warning": "warning",
    "failed": "critical",
    "unknown": "unknown",
    "ok": "ok",
    "lost": "critical",
    "missing": "critical",
    "no_gpu": "warning",
    "no_library": "critical",
    "not_loaded": "critical",
    "version_mismatch": "critical",
    "no_permission": "warning",
    "not_answering": "critical",
    "error": "critical",
    "info": "info",
    "critical": "critical",
    # What is rented: leases, operations, accounts, differences, stock.
    "requested": "progress",
    "provisioning": "progress",
    "booting": "progress",
    "active": "ok",
    "stopping": "progress",
    "stopped": "silenced",
    "terminating": "progress",
    "terminated": "silenced",
    "preempted": "warning",
    "termination_unconfirmed": "critical",
    "running": "progress",
    "succeeded": "ok",
    "cancelled": "silenced",
    "claimed": "progress",
    "expired": "warning",
    # Lines of acceptance reports.
    "pass": "ok",
    "fail": "critical",
    "not_proven": "warning",
    "noted": "info",
    "new": "progress",
    "failing": "warning",
    "refused": "critical",
    "paused": "silenced",
    "missing_at_provider": "critical",
    "unknown_at_provider": "warning",
    "spec_differs": "warning",
    "price_differs": "warning",
    "high": "ok",
    "medium": "ok",
    "low": "warning",
    "none": "silenced",
    # Endpoints: phases, replicas, health of engines, rollouts, revisions, gateways.
    "deleting": "progress",
    "unavailable": "critical",
    "rolling_out": "progress",
    "scaling": "progress",
    "scaled_to_zero": "silenced",
    "pulling": "progress",
    "starting": "progress",
    "not_ready": "warning",
    "saturated": "warning",
    "stalled": "critical",
    "asleep": "silenced",
    "down": "critical",
    "returned": "warning",
    "good": "ok",
    "serving": "ok",
}


def tone_of(state: object) -> str:
    """Return the tone of a state's stored value; a state that nobody listed is unknown, never fine."""
    return STATE_TONES.get(str(state), "unknown")
