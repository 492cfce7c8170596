"""A server's acceptance check: begun, watched, read, printed for the landlord; earlier ones stay."""

from typing import Any, Final

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from fleet.models import Job, Lease, Server
from fleet.selectors.jobs import acceptance_found, acceptance_list, acceptance_report
from fleet.services.acceptance import acceptance_start
from fleet.services.jobs import job_cancel
from frontend.acceptance.form import AcceptanceForm
from frontend.acceptance.report import show
from frontend.acceptance.words import STEPS, VERDICTS
from frontend.access import PageRequest, page
from frontend.forms import refuse
from frontend.words import job_reason_words
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.core.errors import FleetdeckError, InvalidInput, NotFound

HISTORY: Final = 20


def _server(server_id: int) -> Server:
    server = Server.objects.filter(pk=server_id).first()
    if server is None:
        raise NotFound(_("There is no such server, or it was removed."))
    return server


def _job(server_id: int, job_id: int) -> Job:
    job = acceptance_list(server=server_id).filter(pk=job_id).first()
    if job is None:
        raise NotFound(_("There is no such check of this server, or it was forgotten with time."))
    return job


def _history(server_id: int) -> list[dict[str, Any]]:
    found = []
    for job in acceptance_list(server=server_id)[:HISTORY]:
        report = acceptance_report(job)
        found.append(
            {
                "job": job,
                "verdict": str(report.verdict) if report else "",
                "verdict_words": str(VERDICTS[report.verdict]) if report else "",
            }
        )
    return found


def _shown(job: Job | None) -> dict[str, Any]:
    """Return what the page shows of one check."""
    if job is None:
        return {"job": None}
    report, found = acceptance_report(job), acceptance_found(job)
    step = str(job.progress.get("step", ""))
    return {
        "job": job,
        "report": show(report, found) if report is not None and found is not None else None,
        "found": found,
        "reason": job_reason_words(job.reason),
        "step": str(STEPS.get(step, "")),
        "percent": job.progress.get("percent"),
    }


def _page(request: PageRequest, server: Server, job: Job | None, form: AcceptanceForm | None = None) -> HttpResponse:
    history = _history(server.pk)
    context = _shown(job) | {
        "title": _("Acceptance check of %(name)s") % {"name": server.name},
        "nav": "fleet",
        "server": server,
        "lease": Lease.objects.filter(server=server, ended_at=None).first(),
        "history": history,
        "open_job": next((entry["job"] for entry in history if entry["job"].ended_at is None), None),
        "form": form or AcceptanceForm(),
        "is_form_open": form is not None or not history,
    }
    return render(request, "acceptance/page.html", context, status=400 if form is not None else 200)


@page(Capability.FLEET_VIEW)
def acceptance(request: PageRequest, server_id: int) -> HttpResponse:
    """Show the newest check of a server, what is under way, and the earlier ones."""
    server = _server(server_id)
    return _page(request, server, acceptance_list(server=server_id).first())


@page(Capability.FLEET_VIEW)
def acceptance_one(request: PageRequest, server_id: int, job_id: int) -> HttpResponse:
    """Show one check."""
    return _page(request, _server(server_id), _job(server_id, job_id))


@page(Capability.FLEET_VIEW)
def acceptance_progress(request: PageRequest, server_id: int, job_id: int) -> HttpResponse:
    """Answer how far a check is; when it is over the page is fetched anew."""
    job = _job(server_id, job_id)
    if job.ended_at is not None:
        return HttpResponse(headers={"HX-Refresh": "true"})
    return render(request, "acceptance/progress.html", _shown(job))


def _back(server_id: int) -> HttpResponseRedirect:
    return HttpResponseRedirect(reverse("acceptance", args=[server_id]))


@require_POST
@page(Capability.SERVERS_MANAGE)
def acceptance_begin(request: PageRequest, server_id: int) -> HttpResponse:
    """Begin a check."""
    server = _server(server_id)
    form = AcceptanceForm(request.POST)
    if not form.is_valid():
        return _page(request, server, acceptance_list(server=server_id).first(), form)
    try:
        acceptance_start(
            server_id=server_id,
            actor=Actor.from_request(request),
            expected=form.expected(),
            target=form.cleaned_data["target"],
        )
    except InvalidInput as error:
        refuse(form, error)
        return _page(request, server, acceptance_list(server=server_id).first(), form)
    except FleetdeckError as error:
        messages.error(request, error.message)
    return _back(server_id)


@require_POST
@page(Capability.SERVERS_MANAGE)
def acceptance_cancel(request: PageRequest, server_id: int, job_id: int) -> HttpResponse:
    """Call a check off."""
    try:
        job_cancel(job_id=_job(server_id, job_id).pk, actor=Actor.from_request(request))
    except FleetdeckError as error:
        messages.error(request, error.message)
    return _back(server_id)
