"""What agents say of probes and of the load that they send for go-live tests."""

from typing import Final

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from fleet.agent import orders
from fleet.agent.load.order import LoadPiece
from fleet.views import agent_endpoint, answer, bearer_agent, read_body
from monitoring.golive_runs.following import golive_order, golive_piece
from monitoring.probing.services import agent_results

RESULTS_BYTES: Final = 4 * 1024 * 1024
PIECE_BYTES: Final = 2 * 1024 * 1024


@agent_endpoint("POST")
def probes(request: HttpRequest) -> HttpResponse:
    """Take results; those that are stored already change nothing."""
    identity = bearer_agent(request)
    agent_results(identity=identity, report=read_body(request, orders.ProbesReport, limit=RESULTS_BYTES))
    return HttpResponse(status=204)


@agent_endpoint("GET")
def load_order(request: HttpRequest, part_id: int) -> HttpResponse:
    """Return what to send; 404 when it is not wanted any more."""
    identity = bearer_agent(request)
    return answer(request, golive_order(part_id=part_id, server_id=identity.server_id))


@agent_endpoint("POST")
def load_piece(request: HttpRequest, part_id: int) -> HttpResponse:
    """Take what happened, and say whether to go on; the same piece told again changes nothing."""
    identity = bearer_agent(request)
    piece = read_body(request, LoadPiece, limit=PIECE_BYTES)
    piece.part = part_id
    return answer(request, golive_piece(piece=piece, server_id=identity.server_id))


@login_not_required  # the agent's own token is asked for instead
@csrf_exempt
def load(request: HttpRequest, part_id: int) -> HttpResponse:
    """Answer one part's address: its order, or a piece of what happened."""
    return load_piece(request, part_id) if request.method == "POST" else load_order(request, part_id)
