"""Tasks about the panel itself."""

from typing import Any

from celery import shared_task

from panel.core.clock import now
from panel.core.liveness import queue_probed


@shared_task(bind=True, name="panel.core.tasks.queue_probe")
def queue_probe(self: Any) -> None:
    """Show that beat, broker and worker are connected, and how long a task waits between them."""
    published_at = (self.request.headers or {}).get("published_at") or getattr(self.request, "published_at", None)
    moment = now().timestamp()
    queue_probed(waited_seconds=max(0.0, moment - published_at) if published_at else 0.0)
