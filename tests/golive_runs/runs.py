"""Go-live tests that are begun and carried out without a network."""

from endpoints.services.golive import endpoint_golive
from fleet.agent.load.order import LoadPiece, Shot
from monitoring.golive_runs.asked import asked_read
from monitoring.golive_runs.following import golive_order, golive_piece
from monitoring.golive_runs.models import GoLiveRun
from tests.fleet.factories import OPERATOR

FAST = {"peak_per_second": 20, "seconds": 10, "p95_ms": 100, "p99_ms": None, "measure": "total"}


def asked(**changes):
    return asked_read({**FAST, **changes})


def begun(endpoint, **changes):
    return endpoint_golive(
        endpoint_id=endpoint.pk, actor=OPERATOR, asked=asked(**changes), places=["hosts"], consent=True
    )


def shots_for(order, *, total_ms=20.0, late=0.0, failing=0):
    """Every arrival of an order as it went."""
    return [
        Shot(
            number,
            0,
            at + late,
            is_ok=number < order.warm_up or number % 10 >= failing,
            in_flight=1,
            total_ms=total_ms,
            outcome="ok",
        )
        for number, at in enumerate(order.at_seconds)
    ]


def carried_out(run, **shots):
    """Have each place do its part; returns the run as it ended."""
    for part in run.parts.order_by("pk"):
        order = golive_order(part_id=part.pk, server_id=part.server_id)
        found = shots_for(order, **shots)
        answer = tell(part, found[:1000], phase="measured", lag=2.0)
        assert answer.go_on
        tell(part, found[1000:], sequence=1, phase="over", lag=2.0)
    return GoLiveRun.objects.get(pk=run.pk)


def tell(part, shots, *, sequence=0, phase="measured", lag=None, **changes):
    piece = LoadPiece(
        part=part.pk, sequence=sequence, phase=phase, seconds=1.0, shots=shots, loop_lag_p99_ms=lag, **changes
    )
    return golive_piece(piece=piece, server_id=part.server_id)
