"""Diagnoses: the list, begun with or without consent, watched, read, printed, called off."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from endpoints.models import Endpoint
from frontend.access import PageRequest, page
from frontend.diagnosis.form import DiagnosisForm
from frontend.diagnosis.report import objective_of, show
from frontend.diagnosis.words import NEXT, STEPS, tone_of
from frontend.forms import refuse
from frontend.leasing.tabs import page_number, rows_of
from frontend.probing.tabs import probing_tabs
from monitoring.diagnosing.enums import ReportState
from monitoring.diagnosing.following import diagnosis_cancel
from monitoring.diagnosing.models import DiagnosisReport
from monitoring.diagnosing.places import places_of
from monitoring.diagnosing.reading import report_list
from monitoring.diagnosing.starting import diagnosis_start, running_of
from monitoring.diagnosis import words
from monitoring.diagnosis.enums import Verdict
from monitoring.diagnosis.report import Diagnosis
from monitoring.probing.models import Probe
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.core.errors import FleetdeckError, InvalidInput, NotFound


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 18 else None


@page(Capability.FLEET_VIEW)
def diagnoses(request: PageRequest) -> HttpResponse:
    """Show every report, the newest first; `?endpoint=` and `?verdict=` filter."""
    endpoint, verdict = _number(request.GET.get("endpoint", "")), request.GET.get("verdict", "")
    verdict = verdict if verdict in set(Verdict) else ""
    reports = report_list(endpoint=endpoint, verdict=[verdict] if verdict else ())
    found = rows_of(reports.defer("found", "evidence", "target", "places"), page_number(request.GET.get("page", "")))
    context: dict[str, Any] = {
        "title": _("Diagnosis"),
        "list": found,
        "rows": [_row(report) for report in found.rows],
        "verdict": verdict,
        "verdicts": [(each.value, words.verdict_name(each)) for each in Verdict],
        "is_filtered": bool(verdict or endpoint),
        **probing_tabs("diagnoses"),
    }
    return render(
        request, "diagnoses/rows.html" if request.GET.get("part") == "rows" else "diagnoses/page.html", context
    )


def _row(report: DiagnosisReport) -> dict[str, Any]:
    found = Diagnosis.from_json(report.diagnosis) if report.diagnosis else None
    return {
        "report": report,
        "tone": _tone(report),
        "word": words.verdict_name(found.verdict) if found else str(ReportState(report.state).label),
        "sentence": words.why(found) if found else str(NEXT.get(report.failure, "")),
        "next_step": words.next_step(found.action) if found else "",
        "level": words.level_name(found.level) if found else "",
        "percent": report.progress.get("percent"),
    }


def _tone(report: DiagnosisReport) -> str:
    if report.state == ReportState.DONE:
        return tone_of(report.verdict)
    return {ReportState.RUNNING: "progress", ReportState.FAILED: "critical"}.get(ReportState(report.state), "silenced")


def _report(report_id: int) -> DiagnosisReport:
    report = report_list().filter(pk=report_id).first()
    if report is None:
        raise NotFound(_("There is no such diagnosis, or it was forgotten with time."))
    return report


def _progress(report: DiagnosisReport) -> dict[str, Any]:
    step = str(report.progress.get("step") or "waiting")
    minutes = (report.ends_at - report.created_at).total_seconds() / 60
    return {
        "report": report,
        "percent": report.progress.get("percent") or 0,
        "step": str(STEPS.get(step, "")),
        "minutes": round(minutes),
    }


@page(Capability.FLEET_VIEW)
def diagnosis(request: PageRequest, report_id: int) -> HttpResponse:
    """Show one report: the sentence first, then what it rests on."""
    report = _report(report_id)
    if request.GET.get("part") == "progress":
        if report.state != ReportState.RUNNING:
            return HttpResponse(headers={"HX-Refresh": "true"})
        return render(request, "diagnoses/progress.html", _progress(report))
    is_endpoint = report.subject_kind == "endpoint"
    context = _progress(report) | {
        "title": _("Why is %(name)s slow?") % {"name": report.subject_name},
        "tone": _tone(report),
        "shown": show(report),
        "next": NEXT.get(report.failure, ""),
        "objective": objective_of(report),
        "places": places_of(report),
        "has_endpoint": is_endpoint and Endpoint.objects.filter(pk=report.subject_id, deleted_at=None).exists(),
        **probing_tabs("diagnoses"),
    }
    return render(request, "diagnoses/one.html", context)


@page(Capability.DIAGNOSES_RUN)
def diagnosis_new(request: PageRequest) -> HttpResponse:
    """Say what is to be looked into, and whether the engine may be loaded; `?endpoint=` or `?probe=` says of what."""
    endpoint_id = _number(request.GET.get("endpoint", ""))
    endpoint = Endpoint.objects.filter(pk=endpoint_id, deleted_at=None).first() if endpoint_id is not None else None
    if endpoint_id is not None and endpoint is None:
        raise NotFound(_("There is no such endpoint."))
    form = DiagnosisForm(request.POST or None, endpoint_id=endpoint_id, initial={"probe": request.GET.get("probe", "")})
    if request.method == "POST" and form.is_valid():
        try:
            made = diagnosis_start(
                probe_id=int(form.cleaned_data["probe"]),
                actor=Actor.from_request(request),
                hosts=form.hosts,
                has_sweeps=form.cleaned_data["has_sweeps"],
                threshold_ms=form.cleaned_data["threshold_ms"],
            )
        except InvalidInput as error:
            if error.field == "hosts":
                error.field = "server" if "server" in form.fields else None
            refuse(form, error)
        except FleetdeckError as error:
            refuse(form, error)
        else:
            return HttpResponseRedirect(reverse("diagnosis", args=[made.pk]))
    context = {
        "title": _("Why is %(name)s slow?") % {"name": endpoint.name} if endpoint else _("New diagnosis"),
        "form": form,
        "endpoint": endpoint,
        "has_probe": bool(form.fields["probe"].choices),  # type: ignore[attr-defined]  # of a ChoiceField
        "running": running_of("endpoint", endpoint.pk) if endpoint else None,
        "all_probes": Probe.objects.exists(),
        **probing_tabs("diagnoses"),
    }
    return render(request, "diagnoses/new.html", context, status=400 if form.is_bound else 200)


@require_POST
@page(Capability.DIAGNOSES_RUN)
def diagnosis_stop(request: PageRequest, report_id: int) -> HttpResponse:
    """Call a diagnosis off."""
    try:
        diagnosis_cancel(report_id=report_id, actor=Actor.from_request(request))
    except FleetdeckError as error:
        messages.error(request, error.message)
    return HttpResponseRedirect(reverse("diagnosis", args=[report_id]))
