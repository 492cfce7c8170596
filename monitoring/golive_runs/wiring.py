"""What go-live tests register when the app starts: the live topic `golive.<id>`."""

from monitoring.golive_runs.models import GoLiveRun
from monitoring.golive_runs.telling import run_live
from monitoring.live.topics import Topic, register
from panel.accounts.capabilities import Capability, has_capability
from panel.accounts.models import User
from panel.core.errors import NotFound
from panel.core.live import LiveData


def register_all() -> None:
    """Register the topic (once, when the app starts)."""
    register(Topic("golive", _may_view, run_snapshot))


def _may_view(user: User, identifier: int) -> bool:
    return has_capability(user.role, Capability.FLEET_VIEW) and GoLiveRun.objects.filter(pk=identifier).exists()


def run_snapshot(identifier: int) -> LiveData:
    """Return how far one test is."""
    run = GoLiveRun.objects.filter(pk=identifier).first()
    if run is None:
        raise NotFound("This go-live test does not exist any more.")
    return run_live(run)
