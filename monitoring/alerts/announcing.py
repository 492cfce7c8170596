"""Where episodes hand over what is to be told; who hears it is for delivery to decide."""

from datetime import datetime
from typing import Any, Literal, cast

from monitoring.alerts.models import Episode
from monitoring.delivery.outbox import Announcement, announce

PREFIX = "episode"
KindWord = Literal["opening", "update", "reminder", "resolved", "flapping"]


def episode_announce(episode: Episode, kind: str, facts: dict[str, Any], *, at: datetime) -> int:
    """Queue one announcement of an episode in the caller's transaction; returns for how many recipients."""
    return announce(
        Announcement(
            topic=f"{PREFIX}:{episode.pk}",
            seq=episode.seq,
            kind=cast("KindWord", kind),
            severity=cast("Literal['info', 'warning', 'critical']", str(episode.severity)),
            subject_kind=episode.subject_kind,
            subject_id=episode.subject_id,
            host_id=episode.host_id,
            facts=facts,
            cap_key=f"{episode.family}:{episode.subject_kind}:{episode.subject_id}",
        ),
        at=at,
    )
