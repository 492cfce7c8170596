"""The topic `alerts`: every episode that is open."""

from monitoring.alerts.episodes import TOPIC
from monitoring.alerts.facts import episode_live
from monitoring.alerts.models import Episode
from monitoring.live.topics import Topic, register
from panel.accounts.capabilities import Capability, has_capability
from panel.accounts.models import User
from panel.core.live import LiveData

MOST: int = 500


def _may_view(user: User, _identifier: int) -> bool:
    return has_capability(user.role, Capability.FLEET_VIEW)


def alerts_snapshot(_identifier: int) -> LiveData:
    """Return the episodes that are not closed, the newest first. One query."""
    rows = Episode.objects.filter(closed_at=None).order_by("-pk")[:MOST]
    return {"episodes": {str(row.pk): episode_live(row) for row in rows}}


def register_all() -> None:
    """Register the topic (once, when the app starts)."""
    register(Topic(TOPIC, _may_view, alerts_snapshot, interval_seconds=1.0, has_id=False))
