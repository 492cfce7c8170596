"""The static part of live frames: what a server, a card, a join and a job are, beside the numbers that move (JSON-ready)."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from fleet.enums import GpuState
from fleet.models import Agent, Gpu, Job, JoinToken, Server

ANSWERING_STATES = frozenset({GpuState.OK, GpuState.DEGRADED})


def iso(moment: datetime | None) -> str | None:
    """Return the time as ISO 8601 with its offset."""
    return moment.isoformat() if moment is not None else None


def gpu_counts(gpus: Iterable[Gpu]) -> dict[str, int]:
    """Return known, answering, missing (lost too) and unknown among whole cards; forgotten ones and slices do not count."""
    cards = [gpu for gpu in gpus if gpu.parent_id is None and gpu.removed_at is None]
    return {
        "gpus_known": len(cards),
        "gpus_answering": sum(gpu.state in ANSWERING_STATES for gpu in cards),
        "gpus_missing": sum(gpu.state in {GpuState.MISSING, GpuState.LOST} for gpu in cards),
        "gpus_unknown": sum(gpu.state == GpuState.UNKNOWN for gpu in cards),
    }


def _agent_of(server: Server) -> Agent | None:
    return getattr(server, "agent", None)


def server_live(server: Server, *, gpus: Iterable[Gpu] | None = None) -> dict[str, Any]:
    """Return one server as in frames; `gpus` spares the query when the caller has its rows. Select its agent along."""
    agent = _agent_of(server)
    return {
        "id": server.pk,
        "name": server.name,
        "state": str(server.state),
        "state_reason": server.state_reason,
        "state_changed_at": iso(server.state_changed_at),
        "gpu_health": str(server.gpu_health),
        "driver_state": str(server.driver_state),
        "driver_detail": server.driver_detail,
        "driver_version": server.driver_version,
        "driver_since": iso(server.driver_since),
        "is_simulated": server.is_simulated,
        "memory_limit_bytes": server.memory_limit_bytes,
        "last_seen_at": iso(agent.last_seen_at) if agent else None,
        "clock_skew_seconds": agent.clock_skew_seconds if agent else None,
        "report_interval_seconds": agent.report_interval_seconds if agent else None,
        **gpu_counts(server.gpus.all() if gpus is None else gpus),
    }


def gpu_live(gpu: Gpu) -> dict[str, Any]:
    """Return one card or slice as in frames."""
    return {
        "id": gpu.pk,
        "uuid": gpu.uuid,
        "index": gpu.index,
        "name": gpu.name,
        "server": gpu.server_id,
        "parent": gpu.parent_id,
        "state": str(gpu.state),
        "state_reason": gpu.state_reason,
        "state_changed_at": iso(gpu.state_changed_at),
        "memory_total_bytes": gpu.memory_total_bytes,
        "power_limit_watts": gpu.power_limit_watts,
        "removed_at": iso(gpu.removed_at),
    }


def join_live(token: JoinToken) -> dict[str, Any]:
    """Return how far a join has come: token used, host facts, first sample, cards found, and what stands in the way."""
    server = token.server if token.used_at is not None else None
    agent = _agent_of(server) if server is not None else None
    facts: dict[str, Any] = {
        "id": token.pk,
        "name": token.name,
        "expires_at": iso(token.expires_at),
        "revoked_at": iso(token.revoked_at),
        "token_used_at": iso(token.used_at),
        "server_id": None,
        "facts_at": None,
        "first_sample_at": None,
        "gpu_count": None,
        "driver_state": None,
        "driver_detail": "",
        "clock_skew_seconds": None,
    }
    if server is None:
        return facts
    return facts | {
        "server_id": server.pk,
        "facts_at": iso(server.facts_at),
        "first_sample_at": iso(server.first_sample_at),
        "gpu_count": gpu_counts(server.gpus.all())["gpus_known"] if server.facts_at else None,
        "driver_state": str(server.driver_state),
        "driver_detail": server.driver_detail,
        "clock_skew_seconds": agent.clock_skew_seconds if agent else None,
    }


def job_live(job: Job) -> dict[str, Any]:
    """Return how far a job has come; its result is asked for when it is over."""
    return {
        "id": job.pk,
        "kind": str(job.kind),
        "server_id": job.server_id,
        "state": str(job.state),
        "reason": job.reason,
        "percent": job.progress.get("percent"),
        "step": job.progress.get("step", ""),
        "created_at": iso(job.created_at),
        "ended_at": iso(job.ended_at),
    }
