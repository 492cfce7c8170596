"""A deploy run with its steps and log, and a replica with its log."""

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from endpoints.models import Replica
from endpoints.selectors import replica_list, replica_log
from frontend.access import PageRequest, page, role_of
from frontend.serving import run as reading
from frontend.serving.detail import replica_rows
from frontend.serving.listing import endpoint_found
from frontend.serving.logs import log_of
from frontend.serving.tabs import endpoint_tabs
from panel.accounts.capabilities import Capability
from panel.core.clock import now
from panel.core.errors import NotFound


def _log(request: PageRequest, replica: Replica | None) -> dict[str, object]:
    if replica is None:
        return {"log": None}
    given = request.GET
    wanted = {"generation": given.get("generation", ""), "search": given.get("q", ""), "level": given.get("level", "")}
    return {"log": log_of(replica, **wanted)}


@page(Capability.FLEET_VIEW)
def run(request: PageRequest, endpoint_id: int, rollout_id: int) -> HttpResponse:
    """Show how far a rollout has come, step by step, with the log of the replica that it waits for."""
    endpoint = endpoint_found(endpoint_id)
    rollout = reading.rollout_found(endpoint_id, rollout_id)
    context = reading.run_context(rollout, wanted=request.GET.get("replica", ""), at=now())
    words = {"name": endpoint.name, "number": rollout.to_revision.number}
    context |= {"title": _("%(name)s: deploying revision %(number)s") % words, "now": now()}
    if request.GET.get("part") == "status":
        if request.GET.get("log") == "none":
            context |= _log(request, context["replica"])
        return render(request, "endpoints/run_part.html", context)
    context |= endpoint_tabs(endpoint, "", role_of(request)) | _log(request, context["replica"])
    return render(request, "endpoints/run.html", context)


def _found(replica_id: int) -> Replica:
    replica = replica_list().select_related("revision", "server", "endpoint").filter(pk=replica_id).first()
    if replica is None:
        raise NotFound(_("There is no such replica."))
    return replica


@page(Capability.FLEET_VIEW)
def replica(request: PageRequest, replica_id: int) -> HttpResponse:
    """Show one replica: where it is, how it is, and its log."""
    found = _found(replica_id)
    context = {
        "title": _("Replica %(number)s of %(name)s") % {"number": found.pk, "name": found.endpoint.name},
        "row": replica_rows([found])[0],
        "replica": found,
        "nav": "endpoints",
    }
    if request.GET.get("part") == "status":
        return render(request, "endpoints/replica_status.html", context)
    return render(request, "endpoints/replica.html", context | _log(request, found))


@page(Capability.FLEET_VIEW)
def log(request: PageRequest, replica_id: int) -> HttpResponse:
    """Answer the kept log of one start as plain text."""
    found = _found(replica_id)
    given = request.GET.get("generation", "")
    generation = int(given) if given.isdecimal() and len(given) < 10 else None
    pieces = replica_log(replica=found.pk, generation=generation)
    text = "".join(
        (f"… {piece.skipped_bytes} bytes …\n" if piece.skipped_bytes else "") + piece.text for piece in pieces
    )
    answer = HttpResponse(text, content_type="text/plain; charset=utf-8")
    name = f"{found.endpoint.name}-replica-{found.pk}{f'-{generation}' if generation is not None else ''}.log"
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    answer["X-Content-Type-Options"] = "nosniff"
    return answer
