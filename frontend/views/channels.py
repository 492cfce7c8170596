"""Channels: the list, one of them, made, tested, changed; and the way off a mail channel."""

from typing import Any, Final

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST

from frontend.access import PageRequest, page
from frontend.delivery.forms import SECRETS, ChannelForm, initial_of, preset_initial, secret_field
from frontend.delivery.listing import channel_row, channel_rows, notice_rows
from frontend.delivery.losing import losing
from frontend.delivery.tabs import alerting_tabs
from frontend.delivery.words import KINDS
from frontend.forms import refuse
from monitoring.delivery import channels as services
from monitoring.delivery import notices
from monitoring.delivery.enums import ChannelKind
from monitoring.delivery.models import Channel
from monitoring.delivery.rendering import stop_asked
from monitoring.delivery.selectors import channel_list, notification_list
from monitoring.notifiers.phrases import translated
from monitoring.notifiers.presets import PRESETS
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.core.errors import FleetdeckError, NotFound

LONGEST_ID: Final = 2**62


def _channel(channel_id: int) -> Channel:
    found = channel_list().filter(pk=channel_id).first() if channel_id < LONGEST_ID else None
    if found is None:
        raise NotFound(_("There is no such channel."))
    return found


@page(Capability.FLEET_VIEW)
def channels(request: PageRequest) -> HttpResponse:
    """Show every channel and how it does."""
    context = {"title": _("Channels"), "rows": channel_rows(channel_list()), **alerting_tabs("channels")}
    return render(request, "channels/page.html", context)


@page(Capability.FLEET_VIEW)
def channel(request: PageRequest, channel_id: int) -> HttpResponse:
    """Show one channel: what it gets, what it did last, what can be done with it."""
    return _one(request, channel_id)


def _one(request: PageRequest, channel_id: int, *, status: int = 200, **context: Any) -> HttpResponse:
    found = _channel(channel_id)
    lost = losing(found)
    recent = notification_list(channel=found.pk).exclude(kind="test")[:10]
    context |= {
        "title": found.name,
        "row": channel_row(found),
        "users": services.channel_users(found.pk),
        "recent": notice_rows(recent),
        "secret_names": SECRETS[found.kind],
        "consequences": [
            *lost,
            _("What is queued for it is not sent."),
            _("Its secrets are forgotten; what it was told stays as a record."),
        ],
        "disabling": [*lost, _("What is queued for it is not sent.")],
        **alerting_tabs("channels"),
    }
    return render(request, "channels/one.html", context, status=status)


@page(Capability.CHANNELS_MANAGE)
def channel_new(request: PageRequest) -> HttpResponse:
    """Choose a kind, then fill in its form."""
    kind = request.POST.get("kind") or request.GET.get("kind", "")
    if kind not in KINDS:
        kinds = [{"kind": name, "label": ChannelKind(name).label, "text": text} for name, text in KINDS.items()]
        context = {"title": _("New channel"), "kinds": kinds, "presets": PRESETS, **alerting_tabs("channels")}
        return render(request, "channels/kinds.html", context)
    preset = next((each for each in PRESETS if each.code == request.GET.get("preset")), None)
    form = ChannelForm(request.POST or None, kind=kind, initial=preset_initial(preset.code) if preset else {})
    if request.method == "POST" and form.is_valid():
        try:
            made, shown = services.channel_create(
                kind=kind,
                actor=Actor.from_request(request),
                settings=form.settings,
                secrets=form.secrets,
                **form.columns,
            )
        except FleetdeckError as error:
            refuse(form, error)
        else:
            messages.success(request, _("The channel is made. Test it now."))
            if shown:
                return _one(request, made.pk, made=shown)
            return HttpResponseRedirect(reverse("channel", args=[made.pk]))
    label = ChannelKind(kind).label
    context = {"title": _("New channel"), "form": form, "kind": kind, "kind_label": label, "preset": preset}
    return render(
        request, "channels/form.html", context | alerting_tabs("channels"), status=400 if form.is_bound else 200
    )


@page(Capability.CHANNELS_MANAGE)
def channel_edit(request: PageRequest, channel_id: int) -> HttpResponse:
    """Change a channel; its secrets stay."""
    found = _channel(channel_id)
    form = ChannelForm(request.POST or None, kind=found.kind, found=found, initial=initial_of(found))
    if request.method == "POST" and form.is_valid():
        try:
            services.channel_update(
                channel_id=found.pk, actor=Actor.from_request(request), settings=form.settings, **form.columns
            )
        except FleetdeckError as error:
            refuse(form, error)
        else:
            messages.success(request, _("Saved."))
            return HttpResponseRedirect(reverse("channel", args=[found.pk]))
    context = {
        "title": found.name,
        "form": form,
        "kind": found.kind,
        "kind_label": found.get_kind_display(),
        "found": found,
    }
    return render(
        request, "channels/form.html", context | alerting_tabs("channels"), status=400 if form.is_bound else 200
    )


@require_POST
@page(Capability.CHANNELS_MANAGE)
def channel_test(request: PageRequest, channel_id: int) -> HttpResponse:
    """Send one message now and show all that was said."""
    found = _channel(channel_id)
    try:
        _row, sent = notices.channel_test(
            channel_id=found.pk, actor=Actor.from_request(request), address=request.POST.get("address", "")
        )
    except FleetdeckError as error:
        messages.error(request, error.message)
        return HttpResponseRedirect(reverse("channel", args=[found.pk]))
    tested = {
        "is_delivered": sent.verdict.outcome == "delivered",
        "sentence": translated(sent.verdict.sentence),
        "conversation": sent.conversation,
        "seconds": sent.latency_ms / 1000,
    }
    return _one(request, found.pk, tested=tested)


@require_POST
@page(Capability.CHANNELS_MANAGE)
def channel_secrets(request: PageRequest, channel_id: int) -> HttpResponse:
    """Put one new secret in the place of the old one."""
    found = _channel(channel_id)
    name = request.POST.get("which", "")
    if name not in SECRETS[found.kind]:
        messages.error(request, _("Choose which secret to replace."))
        return HttpResponseRedirect(reverse("channel", args=[found.pk]))
    value = request.POST.get("value", "").strip()[: secret_field(name).max_length or 0]
    try:
        made = services.channel_secrets_replace(
            channel_id=found.pk, actor=Actor.from_request(request), secrets={name: value}
        )
    except FleetdeckError as error:
        messages.error(request, error.message)
        return HttpResponseRedirect(reverse("channel", args=[found.pk]))
    messages.success(request, _("The secret is replaced. Test the channel now."))
    return _one(request, found.pk, made=made) if made else HttpResponseRedirect(reverse("channel", args=[found.pk]))


@require_POST
@page(Capability.CHANNELS_MANAGE)
def channel_switch(request: PageRequest, channel_id: int) -> HttpResponse:
    """Switch a channel on or off."""
    found, actor = _channel(channel_id), Actor.from_request(request)
    if request.POST.get("is_enabled") == "yes":
        services.channel_enable(channel_id=found.pk, actor=actor)
        messages.success(request, _("It is told what happens from now on."))
    else:
        services.channel_disable(channel_id=found.pk, actor=actor)
        messages.success(request, _("It is told nothing more."))
    return HttpResponseRedirect(reverse("channel", args=[found.pk]))


@require_POST
@page(Capability.CHANNELS_MANAGE)
def channel_remove(request: PageRequest, channel_id: int) -> HttpResponse:
    """Remove a channel whose name was typed."""
    found = _channel(channel_id)
    if request.POST.get("typed_name", "").strip() != found.name:
        messages.error(request, _("The name did not match; nothing was done."))
        return HttpResponseRedirect(reverse("channel", args=[found.pk]))
    services.channel_delete(channel_id=found.pk, actor=Actor.from_request(request))
    messages.success(request, _("The channel %(name)s is removed.") % {"name": found.name})
    return HttpResponseRedirect(reverse("channels"))


@login_not_required
@csrf_exempt  # mail programs send this POST by themselves (RFC 8058); the signed link is what proves it
@require_http_methods(["GET", "POST"])
def mail_stop(request: HttpRequest, token: str) -> HttpResponse:
    """Ask whether an address shall get no more; only a POST acts, because scanners open links."""
    asked = stop_asked(token)
    if asked is None:
        context = {"title": _("This link does not work any more"), "state": "void"}
        return render(request, "channels/stop.html", context, status=404)
    if request.method == "POST":
        services.recipient_stop(channel_id=asked[0], address=asked[1])
        return render(request, "channels/stop.html", {"title": _("You get no more of these"), "state": "done"})
    context = {"title": _("Get no more of these mails?"), "state": "ask", "address": asked[1]}
    return render(request, "channels/stop.html", context)
