"""Notifications: the list, one with every attempt, sent again, dismissed."""

from typing import Any, Final

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from frontend.access import PageRequest, page
from frontend.delivery.listing import attempt_rows, notice_row, notice_rows
from frontend.delivery.tabs import alerting_tabs
from frontend.leasing.tabs import page_number, rows_of
from monitoring.delivery import notices
from monitoring.delivery.enums import NoticeStatus
from monitoring.delivery.models import Channel, Notification
from monitoring.delivery.selectors import notification_list
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.core.errors import FleetdeckError, NotFound

LONGEST_ID: Final = 2**62


@page(Capability.FLEET_VIEW)
def notifications(request: PageRequest) -> HttpResponse:
    """Show what was told to whom, the newest first; filters and page are in the address."""
    status = request.GET.get("status", "")
    chosen = request.GET.get("channel", "")
    wanted: dict[str, Any] = {"status": [status] if status in NoticeStatus.values else []}
    if chosen.isascii() and chosen.isdecimal() and len(chosen) < 18:
        wanted["channel"] = int(chosen)
    found = rows_of(notification_list(**wanted), page_number(request.GET.get("page", "")))
    context = {
        "title": _("Notifications"),
        "list": found,
        "rows": notice_rows(found.rows),
        "statuses": NoticeStatus.choices,
        "status": status,
        "channels": list(Channel.objects.order_by("name").values_list("pk", "name")),
        "channel": wanted.get("channel"),
        "is_filtered": any(wanted.values()),
        **alerting_tabs("notifications"),
    }
    return render(request, "notifications/page.html", context)


def _notification(notification_id: int) -> Notification:
    found = notification_list().filter(pk=notification_id).first() if notification_id < LONGEST_ID else None
    if found is None:
        raise NotFound(_("There is no such notification."))
    return found


@page(Capability.NOTIFICATIONS_MANAGE)
def notification(request: PageRequest, notification_id: int) -> HttpResponse:
    """Show one notification with every attempt and what was said."""
    found = _notification(notification_id)
    row = notice_row(found)
    context = {
        "title": row.title,
        "row": row,
        "facts": [(name, value) for name, value in found.facts.items() if not isinstance(value, dict | list)],
        "attempts": attempt_rows(found),
        **alerting_tabs("notifications"),
    }
    return render(request, "notifications/one.html", context)


@require_POST
@page(Capability.NOTIFICATIONS_MANAGE)
def notification_resend(request: PageRequest, notification_id: int) -> HttpResponse:
    """Queue it again."""
    try:
        notices.notification_resend(notification_id=notification_id, actor=Actor.from_request(request))
    except FleetdeckError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, _("It is sent again within seconds."))
    return HttpResponseRedirect(reverse("notifications"))


@require_POST
@page(Capability.NOTIFICATIONS_MANAGE)
def notification_dismiss(request: PageRequest, notification_id: int) -> HttpResponse:
    """Take one off the banner."""
    try:
        notices.notification_dismiss(notification_id=notification_id, actor=Actor.from_request(request))
    except FleetdeckError as error:
        messages.error(request, error.message)
    return HttpResponseRedirect(reverse("notifications"))


@require_POST
@page(Capability.NOTIFICATIONS_MANAGE)
def notifications_dismiss(request: PageRequest) -> HttpResponse:
    """Take all off the banner."""
    count = notices.notifications_dismiss(actor=Actor.from_request(request))
    told = ngettext("%(count)s message is dismissed.", "%(count)s messages are dismissed.", count) % {"count": count}
    messages.success(request, told)
    return HttpResponseRedirect(reverse("notifications"))
