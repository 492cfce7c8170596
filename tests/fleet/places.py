"""What tests of the fleet's API share: its places, a newest sample, and what a list holds."""

import numpy as np

from monitoring.metrics import GPU_METRICS
from monitoring.models import LatestSample
from panel.core.clock import now

SERVERS, GPUS, AGENTS, TOKENS, FAULTS = (
    f"/api/v1/{name}/" for name in ("servers", "gpus", "agents", "join-tokens", "faults")
)


def latest(gpu, at=None, **values):
    """Store a newest sample of a card."""
    packed = np.array([values.get(metric.name, np.nan) for metric in GPU_METRICS], dtype="<f4").tobytes()
    at = at or now()
    row = LatestSample(kind=1, subject_id=gpu.pk, at=at, received_at=at, values=packed, performance_state=0)
    LatestSample.objects.bulk_create([row])


def names(answer):
    assert answer.status_code == 200, answer.content
    return [row["name"] for row in answer.json()["results"]]


def ids(answer):
    assert answer.status_code == 200, answer.content
    return {row["id"] for row in answer.json()["results"]}
