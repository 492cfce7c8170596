"""Alerts: what fires, one alert with its chart and timeline, rules with their replay, silences with what they hide."""

from datetime import timedelta
from typing import Any, Final

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from frontend.access import PageRequest, page
from frontend.alerting import listing
from frontend.alerting.curves import episode_plot
from frontend.alerting.forms import LENGTHS, RuleForm, SilenceForm, end_of
from frontend.delivery.tabs import alerting_tabs
from frontend.forms import refuse
from frontend.leasing.tabs import page_number, rows_of
from monitoring.alerts import acting
from monitoring.alerts.definitions import laid_over
from monitoring.alerts.enums import RuleKind
from monitoring.alerts.models import Episode, Rule, Silence
from monitoring.alerts.preview import preview
from monitoring.alerts.rules import base_of, kinds_of
from monitoring.alerts.selectors import (
    deliveries,
    episode_list,
    is_active,
    matched_by,
    pending_list,
    silence_list,
)  # fmt: skip
from monitoring.alerts.settings import ALLOWED, settings_checked
from monitoring.alerts.subjects import subjects_load
from monitoring.alerts.words import duration, rule_title
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.core.clock import now
from panel.core.errors import FleetdeckError, NotFound

LONGEST_ID: Final = 2**62
STATES: Final = ("firing", "pending", "silenced", "history")


@page(Capability.FLEET_VIEW)
def alerts(request: PageRequest) -> HttpResponse:
    """Show what fires, is pending, is silenced, or was."""
    at = now()
    state = request.GET.get("state", "firing")
    state = state if state in STATES else "firing"
    context: dict[str, Any] = {"title": _("Alerts"), "state": state, "as_of": at, "lengths": LENGTHS[:3]}
    if state == "pending":
        context["pending"] = [
            {"row": row, "title": rule_title(row.rule.key, row.rule.name), "for": duration(row.for_seconds)}
            for row in pending_list()
        ]
    else:
        wanted = "resolved" if state == "history" else state
        found = rows_of(episode_list(state=wanted), page_number(request.GET.get("page", "")))
        context |= {"list": found, "rows": listing.episode_rows(found.rows, at=at)}
    if request.GET.get("part") == "rows":
        return render(request, "alerts/rows.html", context)
    words = {"firing": _("Firing"), "pending": _("Pending"), "silenced": _("Silenced"), "history": _("History")}
    counts = {
        "firing": episode_list(state="firing").count(), "silenced": episode_list(state="silenced").count(),
    }  # fmt: skip
    here = reverse("alerts")
    context |= {
        "states": [
            {"href": f"{here}?state={each}", "label": words[each], "current": each == state, "count": counts.get(each)}
            for each in STATES
        ],
        **alerting_tabs("alerts"),
    }  # fmt: skip
    return render(request, "alerts/page.html", context)


def _episode(alert_id: int) -> Episode:
    found = Episode.objects.filter(pk=alert_id).first() if alert_id < LONGEST_ID else None
    if found is None:
        raise NotFound(_("There is no such alert."))
    return found


@page(Capability.FLEET_VIEW)
def alert(request: PageRequest, alert_id: int) -> HttpResponse:
    """Show one alert."""
    episode, at = _episode(alert_id), now()
    names = listing.names_of_rules([episode])
    told = deliveries([episode]).get(episode.pk, [])
    alike = episode_list(subject=(episode.subject_kind, episode.subject_id), family=episode.family).exclude(
        pk=episode.pk
    )
    context = {
        "title": episode.subject_name,
        "row": listing.episode_row(episode, names, told, at=at),
        "evidence": listing.evidence_lines(episode, names),
        "next_step": listing.next_step(episode),
        "timeline": listing.timeline(episode),
        "told": told,
        "plot": episode_plot(episode, at=at),
        "alike": listing.episode_rows(list(alike[:5]), at=at),
        "lengths": LENGTHS[:3],
        "as_of": at,
        **alerting_tabs("alerts"),
    }
    if request.GET.get("part") == "status":
        return render(request, "alerts/status.html", context)
    return render(request, "alerts/one.html", context)


def _back(request: PageRequest, alert_id: int) -> HttpResponseRedirect:
    if request.POST.get("back") == "list":
        return HttpResponseRedirect(reverse("alerts"))
    return HttpResponseRedirect(reverse("alert", args=[alert_id]))


@require_POST
@page(Capability.ALERTS_MANAGE)
def alert_act(request: PageRequest, alert_id: int) -> HttpResponse:
    """Acknowledge, take that back, note, or silence what an alert is about."""
    actor, act = Actor.from_request(request), request.POST.get("act", "")
    text = request.POST.get("text", "")[:2000]
    try:
        if act == "acknowledge":
            acting.episode_acknowledge(actor=actor, episode_id=alert_id, text=text)
            messages.success(request, _("Acknowledged for a day: no reminders."))
        elif act == "unacknowledge":
            acting.episode_unacknowledge(actor=actor, episode_id=alert_id)
        elif act == "note":
            acting.episode_note(actor=actor, episode_id=alert_id, text=text)
        elif act == "silence":
            _silence(request, _episode(alert_id), actor)
    except FleetdeckError as error:
        messages.error(request, error.message)
    return _back(request, alert_id)


def _silence(request: PageRequest, episode: Episode, actor: Actor) -> None:
    ends_at = end_of(request.POST.get("length", "1h"), at=now())
    acting.silence_create(
        actor=actor,
        matchers={"subject": f"{episode.subject_kind}:{episode.subject_id}", "family": episode.family},
        reason=request.POST.get("reason", "").strip() or _("Silenced from alert #%(id)s") % {"id": episode.pk},
        ends_at=ends_at,
    )
    messages.success(request, _("Silenced; the end is told to whoever heard the beginning."))


@page(Capability.FLEET_VIEW)
def rules(request: PageRequest) -> HttpResponse:
    """Show every rule: what it watches, since when it fired last, how often in a week."""
    context = {"title": _("Rules"), "rows": listing.rule_rows(at=now()), **alerting_tabs("rules")}
    return render(request, "alerts/rules.html", context)


def _rule(rule_id: int) -> Rule:
    found = Rule.objects.filter(pk=rule_id).first() if rule_id < LONGEST_ID else None
    if found is None:
        raise NotFound(_("There is no such rule."))
    return found


def _rule_form(request: PageRequest, rule: Rule | None) -> RuleForm:
    kind = rule.kind if rule is not None else RuleKind.THRESHOLD
    initial: dict[str, Any] = {"is_enabled": True, "severity": "warning", "no_data": "freeze"}
    if rule is not None:
        scope = " ".join(f"{name}={value}" for name, value in rule.scope.items())
        initial = {
            **rule.settings, "name": rule.name, "severity": rule.severity, "scope": scope, "is_enabled": rule.is_enabled,
        }  # fmt: skip
    data = request.POST if request.method == "POST" else None
    is_builtin = rule is not None and rule.is_builtin
    return RuleForm(data, initial=initial, allowed=ALLOWED[kind], is_builtin=is_builtin)


@page(Capability.FLEET_VIEW)
def rule(request: PageRequest, rule_id: int) -> HttpResponse:
    """Show one rule, with a replay over the last week of one subject when asked."""
    found = _rule(rule_id)
    return _rule_page(request, found, _rule_form(request, found))


def _rule_page(request: PageRequest, found: Rule, form: RuleForm, *, status: int = 200, **more: Any) -> HttpResponse:
    definition = base_of(found)
    subjects = [
        (f"{kind}:{key}", each.name)
        for kind in kinds_of(definition)
        for key, each in sorted(subjects_load(kind, None).items(), key=lambda one: one[1].name)
    ]
    context = {
        "title": rule_title(found.key, found.name),
        "row": listing.rule_row(found, {}),
        "form": form,
        "overrides": list(found.overrides.order_by("pk")),
        "subjects": subjects[:500],
        "can_replay": definition.kind in {RuleKind.COUNT, RuleKind.THRESHOLD},
        **more,
        **alerting_tabs("rules"),
    }
    return render(request, "alerts/rule.html", context, status=status)


@page(Capability.ALERTS_MANAGE)
def rule_new(request: PageRequest) -> HttpResponse:
    """Make a rule of one's own."""
    form = _rule_form(request, None)
    if request.method == "POST" and form.is_valid():
        try:
            made = acting.rule_create(
                actor=Actor.from_request(request), name=form.cleaned_data["name"], settings=form.settings(),
                severity=form.cleaned_data["severity"] or "warning", scope=form.scope_words(),
            )  # fmt: skip
        except FleetdeckError as error:
            refuse(form, error)
        else:
            return HttpResponseRedirect(reverse("rule", args=[made.pk]))
    context = {"title": _("New rule"), "form": form, **alerting_tabs("rules")}
    return render(request, "alerts/rule_new.html", context, status=422 if form.errors else 200)


@require_POST
@page(Capability.ALERTS_MANAGE)
def rule_act(request: PageRequest, rule_id: int) -> HttpResponse:
    """Save, replay with what is typed, or remove a rule."""
    found, actor = _rule(rule_id), Actor.from_request(request)
    form = _rule_form(request, found)
    act = request.POST.get("act", "save")
    try:
        if act == "remove":
            acting.rule_delete(actor=actor, rule_id=found.pk)
            return HttpResponseRedirect(reverse("rules"))
        if not form.is_valid():
            return _rule_page(request, found, form, status=422)
        if act == "preview":
            return _rule_page(request, found, form, replayed=_replayed(request, found, form))
        given = {
            "settings": form.settings(), "severity": form.cleaned_data["severity"], "scope": form.scope_words(),
            "is_enabled": form.cleaned_data["is_enabled"],
        }  # fmt: skip
        if not found.is_builtin:
            given["name"] = form.cleaned_data["name"]
        acting.rule_update(actor=actor, rule_id=found.pk, **given)
    except FleetdeckError as error:
        refuse(form, error)
        return _rule_page(request, found, form, status=422)
    messages.success(request, _("Saved; it is judged anew from now on."))
    return HttpResponseRedirect(reverse("rule", args=[found.pk]))


def _replayed(request: PageRequest, found: Rule, form: RuleForm) -> dict[str, Any]:
    kind, _sign, subject_id = request.POST.get("subject", "").partition(":")
    if not subject_id.isdecimal():
        return {"error": _("Choose on what to replay it.")}
    definition = laid_over(base_of(found), settings_checked(found.kind, form.settings(), is_builtin=found.is_builtin))
    try:
        result = preview(definition, (kind, int(subject_id)), at=now())
    except FleetdeckError as error:
        return {"error": error.message}
    times = ngettext("It would have fired once", "It would have fired %(count)d times", len(result.opened)) % {
        "count": len(result.opened)
    }
    sent = ngettext("and sent one message", "and sent %(count)d messages", result.messages) % {"count": result.messages}
    rows = [{"at": at, "lasted": duration(seconds)} for at, seconds in result.opened[:50]]
    return {
        "sentence": _("%(times)s in seven days, for %(time)s, %(sent)s.")
        % {"times": times, "time": duration(result.firing_seconds), "sent": sent},
        "rows": rows,
    }


@page(Capability.FLEET_VIEW)
def silences(request: PageRequest) -> HttpResponse:
    """Show what is muted, by whom, until when, and what it hides; the form shows what it would hide."""
    return _silences(request, SilenceForm(initial=_silence_initial(request)))


def _silence_initial(request: PageRequest) -> dict[str, Any]:
    return {name: request.GET[name] for name in ("subject", "rule", "family") if name in request.GET}


def _silences(request: PageRequest, form: SilenceForm, *, status: int = 200, **more: Any) -> HttpResponse:
    at = now()
    rows = [_silence_row(each, at) for each in silence_list(at=at)]
    context = {"title": _("Silences"), "rows": rows, "form": form, "as_of": at, **more, **alerting_tabs("silences")}
    return render(request, "alerts/silences.html", context, status=status)


def _silence_row(silence: Silence, at: Any) -> dict[str, Any]:
    is_over = silence.ends_at <= at
    matched = matched_by(silence.matchers) if not is_over else None
    return {
        "silence": silence,
        "what": ", ".join(f"{name}={value}" for name, value in silence.matchers.items()),
        "is_over": is_over,
        "is_active": is_active(silence, at=at),
        "is_long": not is_over and silence.starts_at < at - timedelta(days=7),
        "hides": len(matched.episodes) if matched else 0,
    }


@require_POST
@page(Capability.ALERTS_MANAGE)
def silence_new(request: PageRequest) -> HttpResponse:
    """See what a silence would hide, then make it; one that would hide nothing wants a second yes."""
    form = SilenceForm(request.POST)
    if not form.is_valid():
        return _silences(request, form, status=422)
    matchers = form.matchers()
    matched = matched_by(matchers)
    is_sure = request.POST.get("sure") == "yes" or bool(matched.total_subjects or matched.episodes)
    if request.POST.get("act") == "preview" or not is_sure:
        return _silences(request, form, matched=matched, wants_sure=not is_sure)
    data = form.cleaned_data
    try:
        acting.silence_create(
            actor=Actor.from_request(request), matchers=matchers, reason=data["reason"],
            ends_at=end_of(data["length"], at=now()), zone=form.zone_name(), window=form.window(),
            is_maintenance=data["is_maintenance"],
        )  # fmt: skip
    except FleetdeckError as error:
        refuse(form, error)
        return _silences(request, form, status=422, matched=matched)
    messages.success(request, _("Nobody is told of it until then."))
    return HttpResponseRedirect(reverse("silences"))


@require_POST
@page(Capability.ALERTS_MANAGE)
def silence_end(request: PageRequest, silence_id: int) -> HttpResponse:
    """End a silence now."""
    try:
        acting.silence_end(actor=Actor.from_request(request), silence_id=silence_id)
    except FleetdeckError as error:
        messages.error(request, error.message)
    return HttpResponseRedirect(reverse("silences"))
