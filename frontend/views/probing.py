"""Probes: the list, one probe with its places and phases, made, tried, changed, run now, paused, removed."""

from datetime import datetime
from typing import Any, Final

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST
from msgspec import to_builtins

from fleet.agent.probes.result import ProbeResult
from frontend.access import PageRequest, page
from frontend.forms import refuse
from frontend.leasing.tabs import page_number, rows_of
from frontend.probing import detail, listing
from frontend.probing.curves import RANGES, history
from frontend.probing.forms import ProbeForm, places
from frontend.probing.tabs import probing_tabs
from frontend.probing.words import KINDS, METRICS, place_names, server_ids, vantage_words
from monitoring.probing.models import Probe
from monitoring.probing.services import probe_check, probe_create, probe_delete, probe_run_everywhere, probe_update
from monitoring.probing.tables import PANEL
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.core.clock import now
from panel.core.errors import FleetdeckError, NotFound

_DEFAULT_RANGE: Final = "24h"


@page(Capability.FLEET_VIEW)
def probes(request: PageRequest) -> HttpResponse:
    """Show every probe; filters and page are in the address."""
    wanted, at = listing.read_filter(request.GET.dict()), now()
    found = rows_of(listing.filtered(wanted), page_number(request.GET.get("page", "")))
    context: dict[str, Any] = {
        "title": _("Probes"),
        "wanted": wanted,
        "list": found,
        "rows": listing.rows_of(found.rows, at=at),
        "as_of": at,
    }
    if request.GET.get("part") == "rows":
        return render(request, "probes/rows.html", context)
    context |= {
        "kinds": [(kind, words[0]) for kind, words in KINDS.items()],
        "places": places(),
        **probing_tabs("probes"),
    }
    return render(request, "probes/page.html", context)


@page(Capability.FLEET_VIEW)
def probe(request: PageRequest, probe_id: int) -> HttpResponse:
    """Show one probe: its places side by side, one result phase by phase, its percentiles over time."""
    found, at = listing.probe_found(probe_id), now()
    context = _status(request, found, at)
    if request.GET.get("part") == "status":
        return render(request, "probes/status.html", context)
    context |= _history(request, found, context["places"], at)
    if request.GET.get("part") == "history":
        return render(request, "probes/history.html", context)
    target = context["target"]
    context |= {
        "sample": detail.request_sample(target) if target is not None else "",
        "consequences": [
            _("It is probed no more, from nowhere."),
            _("Its percentiles of past hours go with it; its results go within 90 days."),
        ],
        "pausing": [_("Nothing is measured until it is resumed; the charts then have a gap.")],
        **probing_tabs("probes"),
    }
    return render(request, "probes/one.html", context)


def _status(request: PageRequest, found: Probe, at: datetime) -> dict[str, Any]:
    """Return what moves with each result."""
    target = listing.target_found(found)
    shown = detail.places_of(found, target, at=at)
    named = detail.result_named(found, request.GET.get("result", "")) if request.GET.get("result") else None
    newest = max(
        (row.newest for row in shown if row.newest is not None), key=lambda one: one.result["started_at"], default=None
    )
    names = place_names(server_ids(found.vantages))
    return {
        "title": found.name,
        "probe": found,
        "target": target,
        "kind": KINDS.get(str(found.target.get("kind")), ("", ""))[0],
        "where": listing.where_of(target),
        "metric": METRICS[found.metric],
        "vantages": vantage_words(found.vantages, names),
        "places": shown,
        "shown": named or newest,
        "is_named": named is not None,
        "results": detail.last_results(found, start=at - RANGES["24h"], end=at),
        "as_of": at,
    }


def _history(request: PageRequest, found: Probe, rows: list[detail.PlaceRow], at: datetime) -> dict[str, Any]:
    key = request.GET.get("range", _DEFAULT_RANGE)
    key = key if key in RANGES else _DEFAULT_RANGE
    choices = [(f"{row.server_id}.{row.connection}", f"{row.name} · {row.connection_word}") for row in rows]
    wanted = request.GET.get("place", "")
    chosen = wanted if any(wanted == choice[0] for choice in choices) else (choices[0][0] if choices else "")
    server, _dot, connection = chosen.partition(".")
    start = at - RANGES[key]
    events = detail.events_near(found, start=start, end=at)
    place = (int(server or PANEL), connection or "cold")
    return {
        "history": history(found, place=place, start=start, end=at, events=events),
        "range_key": key,
        "ranges": [("24h", _("24 h")), ("7d", _("7 d")), ("30d", _("30 d")), ("90d", _("90 d"))],
        "place_choices": choices,
        "place": chosen,
        "place_label": dict(choices).get(chosen, ""),
        "events": events,
    }


# ---- made and changed


def _shown(request: PageRequest, form: ProbeForm, status: int, **context: Any) -> HttpResponse:
    context |= {
        "form": form,
        "kind": form.kind,
        "kind_words": KINDS[form.kind],
        "first": [form[name] for name in ("name", "host", "port", "is_tls", "path", "model", "prompt", "max_tokens", "query",
                                          "server", "expected", "service") if name in form.fields],
        "when": [form[name] for name in ("vantages", "interval_seconds", "timeout_seconds", "connections", "metric",
                                         "threshold_ms", "subject_id") if name in form.fields],
        "more": [form[name] for name in ("bearer", "method", "headers", "body", "statuses", "must_contain", "must_not_contain",
                                         "follow", "server_name", "is_verified", "family", "is_control", "slow_ms")
                 if name in form.fields],
        **probing_tabs("probes"),
    }  # fmt: skip
    return render(request, "probes/form.html", context, status=status)


def _checked(request: PageRequest, form: ProbeForm, found: Probe | None, **context: Any) -> HttpResponse:
    """Try what is typed, and show what came of it beside the form."""
    tried = None
    try:
        bearer = form.cleaned_data.get("bearer")
        given: dict[str, Any] = {"target": form.target, **({"bearer": bearer} if bearer else {})}
        probe_id = found.pk if found is not None else None
        _target, result = probe_check(actor=Actor.from_request(request), probe_id=probe_id, **given)
        tried = _fresh(result)
    except FleetdeckError as error:
        refuse(form, error)
    if request.headers.get("HX-Request"):
        return render(request, "probes/check.html", {"tried": tried, "form": form})
    return _shown(request, form, 200, tried=tried, **context)


def _fresh(result: ProbeResult) -> detail.Waterfall:
    """Return a result of the panel's that has just come as bars."""
    started_at = datetime.fromtimestamp(result.started_ms / 1000, now().tzinfo)
    facts = {"server": None, "is_suspect": False, "reason": "", **to_builtins(result), "started_at": started_at}
    return detail.waterfall_of(facts, place_names(set())[PANEL])


@page(Capability.PROBES_MANAGE)
def probe_new(request: PageRequest) -> HttpResponse:
    """Choose a kind, then fill in its form; it can be tried before it is saved."""
    kind = request.POST.get("kind") or request.GET.get("kind", "")
    if kind not in KINDS:
        kinds = [{"kind": name, "label": words[0], "text": words[1]} for name, words in KINDS.items()]
        context = {"title": _("New probe"), "kinds": kinds, "query": request.GET.urlencode(), **probing_tabs("probes")}
        return render(request, "probes/kinds.html", context)
    initial = {"vantages": ["panel"], "subject_id": request.GET.get("endpoint", ""), "host": request.GET.get("host", ""),
               "name": request.GET.get("name", ""), "metric": "ttft" if kind in {"chat", "completion"} else "e2e"}  # fmt: skip
    initial |= {name: request.GET[name] for name in ("port", "path", "model", "is_tls") if name in request.GET}
    form = ProbeForm(request.POST or None, kind=kind, initial=initial)
    title = _("New probe")
    if request.method == "POST" and form.is_valid():
        if request.POST.get("act") == "check":
            return _checked(request, form, None, title=title)
        try:
            made = probe_create(actor=Actor.from_request(request), **form.settings)
        except FleetdeckError as error:
            refuse(form, error)
        else:
            messages.success(request, _("It is probed from now on."))
            return HttpResponseRedirect(reverse("probe", args=[made.pk]))
    if request.headers.get("HX-Request"):
        return render(request, "probes/check.html", {"tried": None, "form": form})
    return _shown(request, form, 400 if form.is_bound else 200, title=title)


@page(Capability.PROBES_MANAGE)
def probe_edit(request: PageRequest, probe_id: int) -> HttpResponse:
    """Change a probe; its results stay."""
    found = listing.probe_found(probe_id)
    kind = str(found.target.get("kind"))
    if kind not in KINDS:
        raise NotFound(_("This probe is of a kind that is not known here; change it over the API."))
    form = ProbeForm(request.POST or None, kind=kind, initial=ProbeForm.initial_of(found))
    title = _("Change %(name)s") % {"name": found.name}
    if request.method == "POST" and form.is_valid():
        if request.POST.get("act") == "check":
            return _checked(request, form, found, title=title, probe=found)
        try:
            probe_update(probe_id=probe_id, actor=Actor.from_request(request), **form.settings)
        except FleetdeckError as error:
            refuse(form, error)
        else:
            messages.success(request, _("Saved."))
            return HttpResponseRedirect(reverse("probe", args=[probe_id]))
    if request.headers.get("HX-Request"):
        return render(request, "probes/check.html", {"tried": None, "form": form})
    return _shown(request, form, 400 if form.is_bound else 200, title=title, probe=found)


# ---- acts


def _back(probe_id: int) -> HttpResponseRedirect:
    return HttpResponseRedirect(reverse("probe", args=[probe_id]))


@require_POST
@page(Capability.PROBES_MANAGE)
def probe_now(request: PageRequest, probe_id: int) -> HttpResponse:
    """Have all its places look at once; what the panel found is there with the answer, the others' come live."""
    try:
        found = probe_run_everywhere(probe_id=probe_id, actor=Actor.from_request(request))
    except FleetdeckError as error:
        messages.error(request, error.message)
        return _back(probe_id)
    if request.headers.get("HX-Request"):
        context = {"tried": [_fresh(result) for result in found], "probe": listing.probe_found(probe_id)}
        return render(request, "probes/ran.html", context)
    messages.success(request, _("Its places look now; agents tell within seconds."))
    return _back(probe_id)


@require_POST
@page(Capability.PROBES_MANAGE)
def probe_pause(request: PageRequest, probe_id: int) -> HttpResponse:
    """Pause or resume a probe."""
    is_on = request.POST.get("is_enabled") == "yes"
    try:
        probe_update(probe_id=probe_id, actor=Actor.from_request(request), is_enabled=is_on)
    except FleetdeckError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, _("It is probed again.") if is_on else _("It is paused."))
    return _back(probe_id)


@require_POST
@page(Capability.PROBES_MANAGE)
def probe_remove(request: PageRequest, probe_id: int) -> HttpResponse:
    """Remove a probe, when its name was typed."""
    found = listing.probe_found(probe_id)
    if request.POST.get("typed_name", "").strip() != found.name:
        messages.error(request, _("The name did not match; nothing was done."))
        return _back(probe_id)
    probe_delete(probe_id=probe_id, actor=Actor.from_request(request))
    messages.success(request, _("%(name)s is removed.") % {"name": found.name})
    return HttpResponseRedirect(reverse("probes"))
