"""Go-live tests: the list, the form with what it will take, one test as it runs and its report, called off."""

import json
from typing import Any

from django.contrib import messages
from django.core.serializers.json import DjangoJSONEncoder
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from endpoints.services.gating import gate_again
from endpoints.services.golive import endpoint_golive, endpoint_golive_estimate
from frontend.access import PageRequest, page
from frontend.forms import refuse
from frontend.golive import report
from frontend.golive.forms import GoLiveForm
from frontend.golive.words import run_tone
from frontend.leasing.tabs import page_number, rows_of
from frontend.probing.tabs import probing_tabs
from monitoring.api.golive import COLUMNS, GoLiveRunSerializer
from monitoring.golive_runs.asked import asked_read
from monitoring.golive_runs.models import GoLiveRun
from monitoring.golive_runs.reading import run_list, shots_of
from monitoring.golive_runs.starting import golive_cancel
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.core.clock import now
from panel.core.errors import FleetdeckError, InvalidInput, NotFound

_GROUPS = {
    "what": ("endpoint", "places", "key", "peak_per_second"),
    "promise": ("measure", "p95_ms", "p99_ms", "error_percent"),
    "load": (
        "seconds",
        "length_median",
        "length_long",
        "length_longest",
        "max_tokens",
        "has_steps",
        "most_concurrency",
    ),
    "more": ("ttft_ms", "tpot_ms", "e2e_ms", "most_seconds", "most_requests", "most_tokens", "most_cost", "currency"),
}


def _found(run_id: int) -> GoLiveRun:
    run = GoLiveRun.objects.filter(pk=run_id).first()
    if run is None:
        raise NotFound(_("There is no such go-live test."))
    return run


@page(Capability.FLEET_VIEW)
def golive_runs(request: PageRequest) -> HttpResponse:
    """Show every go-live test, the newest first."""
    shown = rows_of(run_list(), page_number(request.GET.get("page", "")))
    context = {
        "title": _("Go-live tests"),
        "list": shown,
        "rows": report.rows_of(shown.rows),
        **probing_tabs("golive-runs"),
    }
    return render(request, "golive/page.html", context)


@page(Capability.GOLIVE_RUN)
def golive_new(request: PageRequest) -> HttpResponse:
    """Say what a test would take, and begin it."""
    initial = {"endpoint": request.GET.get("endpoint", "")}
    form = GoLiveForm(request.POST or None, initial=initial)
    estimate = None
    if request.method == "POST" and form.is_valid():
        try:
            if request.POST.get("act") == "estimate":
                estimate = _estimate(form)
            else:
                return HttpResponseRedirect(reverse("golive-run", args=[_begin(request, form).pk]))
        except FleetdeckError as error:
            _refuse(form, error)
    context: dict[str, Any] = {
        "title": _("New go-live test"),
        "form": form,
        "estimate": estimate,
        **probing_tabs("golive-runs"),
    }
    if request.headers.get("HX-Request"):
        return render(request, "golive/estimate.html", context)
    context |= {name: [form[field] for field in fields] for name, fields in _GROUPS.items()}
    return render(request, "golive/form.html", context, status=400 if form.is_bound and form.errors else 200)


def _refuse(form: GoLiveForm, error: FleetdeckError) -> None:
    """Show a refusal at the field that it means."""
    names = {"lengths": "length_median", "error_rate": "error_percent"}
    if error.field in names:
        form.add_error(names[error.field], error.message)
    else:
        refuse(form, error)


def _estimate(form: GoLiveForm) -> dict[str, Any]:
    given = form.cleaned_data
    estimate, cost = endpoint_golive_estimate(
        endpoint_id=int(given["endpoint"]), asked=asked_read(form.asked), places=given["places"], key=given["key"]
    )
    return {**estimate.as_json(), "cost": [f"{amount:.2f} {code}" for code, amount in cost.items()]}


def _begin(request: PageRequest, form: GoLiveForm) -> GoLiveRun:
    given = form.cleaned_data
    if not given["consent"]:
        raise InvalidInput(_("Agree to the load first."), field="consent")
    return endpoint_golive(
        endpoint_id=int(given["endpoint"]), actor=Actor.from_request(request), asked=asked_read(form.asked),
        places=given["places"], key=given["key"], consent=True,
    )  # fmt: skip


@page(Capability.FLEET_VIEW)
def golive_run(request: PageRequest, run_id: int) -> HttpResponse:
    """Show a test as it runs, and its report when it has ended."""
    run = _found(run_id)
    is_over = run.ended_at is not None
    if request.GET.get("part") == "status" and is_over:
        return HttpResponse(headers={"HX-Refresh": "true"})
    parts = report.parts_of(run, is_whole=is_over)
    context: dict[str, Any] = {
        "title": _("Go-live test of %(name)s") % {"name": run.subject_name},
        "run": run,
        "tone": run_tone(run.state, run.outcome),
        "word": report.outcome_words(run),
        "promise": report.promise_words(run),
        "parts": parts,
        "elapsed": ((run.ended_at or now()) - run.created_at).total_seconds(),
    }
    if request.GET.get("part") == "status":
        return render(request, "golive/progress.html", context)
    context |= {"steps": report.steps_of(run, parts), **report.links_of(run), **probing_tabs("golive-runs")}
    return render(request, "golive/one.html", context)


@page(Capability.FLEET_VIEW)
def golive_json(_request: PageRequest, run_id: int) -> HttpResponse:
    """Answer a test with every request, for another tool."""
    run = run_list().filter(pk=_found(run_id).pk).get()
    parts = run.parts.defer("bearer").order_by("pk")
    body = {
        **GoLiveRunSerializer(run).data,
        "columns": COLUMNS,
        "requests": {str(part.pk): {"plan": part.plan, "requests": shots_of(part)} for part in parts},
    }
    answer = HttpResponse(json.dumps(body, cls=DjangoJSONEncoder, ensure_ascii=False), content_type="application/json")
    answer["Content-Disposition"] = f'attachment; filename="golive-{run.pk}.json"'
    return answer


@require_POST
@page(Capability.GOLIVE_RUN)
def golive_stop(request: PageRequest, run_id: int) -> HttpResponse:
    """Call a test off."""
    try:
        golive_cancel(run_id=run_id, actor=Actor.from_request(request))
    except FleetdeckError as error:
        messages.error(request, error.message)
    return HttpResponseRedirect(reverse("golive-run", args=[run_id]))


@require_POST
@page(Capability.ENDPOINTS_MANAGE)
def golive_again(request: PageRequest, endpoint_id: int, rollout_id: int) -> HttpResponse:
    """Have the test of a rollout's gate run again."""
    try:
        gate_again(endpoint_id=endpoint_id, actor=Actor.from_request(request))
    except FleetdeckError as error:
        messages.error(request, error.message)
    return HttpResponseRedirect(reverse("endpoint-run", args=[endpoint_id, rollout_id]))
