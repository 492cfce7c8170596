"""One's own sessions: listed, ended."""

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from frontend.access import PageRequest, page
from frontend.views.settings.tabs import settings_page
from frontend.views.settings.user_agents import browser_words
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.accounts.selectors.users import session_list
from panel.accounts.services.sessions import session_end, sessions_end_all


@page(Capability.PROFILE_EDIT)
def sessions(request: PageRequest) -> HttpResponse:
    """Show where this person is logged in."""
    rows = [
        {
            "row": row,
            "browser": browser_words(row.user_agent),
            "is_this": row.session_key == request.session.session_key,
        }
        for row in session_list(user_id=request.user.pk)
    ]
    return settings_page(request, "settings/sessions.html", "settings-sessions", title=_("Sessions"), rows=rows)


@require_POST
@page(Capability.PROFILE_EDIT)
def end(request: PageRequest, session_id: int) -> HttpResponse:
    """End one session; its sockets close within seconds."""
    session_end(actor=Actor.from_request(request), session_id=session_id)
    messages.success(request, _("The session has ended."))
    return HttpResponseRedirect(reverse("settings-sessions"))


@require_POST
@page(Capability.PROFILE_EDIT)
def end_all(request: PageRequest) -> HttpResponse:
    """Log out everywhere else."""
    actor = Actor.from_request(request)
    ended = sessions_end_all(actor=actor, user=request.user, except_key=request.session.session_key, reason="asked for")
    messages.success(
        request, ngettext("%(n)d other session has ended.", "%(n)d other sessions have ended.", ended) % {"n": ended}
    )
    return HttpResponseRedirect(reverse("settings-sessions"))
