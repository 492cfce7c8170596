"""API tokens: made, shown once, revoked."""

from datetime import datetime
from typing import Any, Final

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from frontend.access import PageRequest, page
from frontend.forms import TokenForm, refuse
from frontend.views.settings.tabs import settings_page
from panel.accounts.audit import Actor
from panel.accounts.capabilities import ROLE_ORDER, Capability, has_capability
from panel.accounts.enums import Role
from panel.accounts.models import ApiToken
from panel.accounts.selectors.tokens import token_list
from panel.accounts.services.tokens import token_create, token_revoke
from panel.core.clock import now
from panel.core.errors import Conflict, InvalidInput, PermissionRefused

SHOWN: Final = 200


def _roles(request: PageRequest) -> list[Role]:
    """Return the scopes that this person may give away: up to their own role."""
    return list(ROLE_ORDER[: ROLE_ORDER.index(Role(request.user.role)) + 1])


@page(Capability.TOKENS_OWN)
def tokens(request: PageRequest) -> HttpResponse:
    """List one's own tokens, or everybody's for an admin; those that ended last."""
    at = now()
    rows = [_row(token, at) for token in token_list(actor=Actor.from_request(request))[:SHOWN]]
    rows.sort(key=lambda row: row["state"] != "live")
    consequences = [
        _("Programs that use it are refused from the next request on."),
        _("This cannot be undone; make a new token instead."),
    ]
    return settings_page(
        request,
        "settings/tokens.html",
        "settings-tokens",
        title=_("API tokens"),
        rows=rows,
        shows_owner=has_capability(request.user.role, Capability.TOKENS_MANAGE),
        consequences=consequences,
    )


def _row(token: ApiToken, at: datetime) -> dict[str, Any]:
    is_over = token.expires_at is not None and token.expires_at <= at
    state = "revoked" if token.revoked_at else "expired" if is_over else "live"
    return {"token": token, "state": state, "dialog_id": f"revoke-{token.pk}"}


@never_cache
@page(Capability.TOKENS_OWN)
def token_new(request: PageRequest) -> HttpResponse:
    """Make a token. Its text is in this one answer and nowhere else, so there is no redirect."""
    template, title = "settings/token_new.html", _("New API token")
    form = TokenForm(request.POST or None, roles=_roles(request))
    if request.method != "POST":
        return settings_page(request, template, "settings-tokens", title=title, form=form)
    if form.is_valid():
        try:
            row, text = token_create(
                actor=Actor.from_request(request),
                owner=request.user,
                name=form.cleaned_data["name"],
                scope=form.cleaned_data["scope"],
                expires_at=now() + form.lifetime_chosen,
            )
        except (InvalidInput, PermissionRefused, Conflict) as error:
            refuse(form, error)
        else:
            return settings_page(
                request, "settings/token_made.html", "settings-tokens", title=_("Token made"), row=row, text=text
            )
    return settings_page(request, template, "settings-tokens", status=400, title=title, form=form)


@require_POST
@page(Capability.TOKENS_OWN)
def revoke(request: PageRequest, token_id: int) -> HttpResponse:
    """End a token for good."""
    row = token_revoke(actor=Actor.from_request(request), token_id=token_id)
    messages.success(request, _("The token “%(name)s” is revoked.") % {"name": row.name})
    return HttpResponseRedirect(reverse("settings-tokens"))
