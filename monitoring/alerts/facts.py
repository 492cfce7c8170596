"""What is known of an episode, JSON-ready: for messages, live frames, events and programs."""

from datetime import datetime
from typing import Any

from fleet.selectors.live import iso
from monitoring.alerts.models import Episode


def episode_facts(episode: Episode, *, at: datetime) -> dict[str, Any]:
    """Return everything that a message says of an episode, without words."""
    ended = episode.resolved_at or at
    return {
        "episode": episode.pk,
        "family": episode.family,
        "subject_kind": episode.subject_kind,
        "subject_id": episode.subject_id,
        "subject_name": episode.subject_name,
        "host_id": episode.host_id,
        "rules": list(episode.rules),
        "evidence": episode.evidence,
        "opened_at": iso(episode.opened_at),
        "changed_at": iso(episode.changed_at),
        "resolved_at": iso(episode.resolved_at),
        "seconds": int((ended - episode.opened_at).total_seconds()),
        "is_flapping": episode.is_flapping,
        "no_data_since": iso(episode.frozen_since),
    }


def episode_live(episode: Episode) -> dict[str, Any]:
    """Return an episode as it stands in live frames and lists."""
    return {
        "id": episode.pk,
        "family": episode.family,
        "subject_kind": episode.subject_kind,
        "subject_id": episode.subject_id,
        "subject_name": episode.subject_name,
        "severity": str(episode.severity),
        "rules": list(episode.rules),
        "opened_at": iso(episode.opened_at),
        "resolved_at": iso(episode.resolved_at),
        "closed_at": iso(episode.closed_at),
        "no_data_since": iso(episode.frozen_since),
        "is_told": episode.is_told,
        "is_flapping": episode.is_flapping,
        "muted_by": str(episode.muted_by),
        "acknowledged_until": iso(episode.acknowledged_until),
        "acknowledged_by": episode.acknowledged_by_name,
    }
