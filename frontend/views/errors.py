"""Error pages: what happened, what to do next, and an id to quote."""

import json
import sys

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from frontend.preferences import THEME_COOKIE, known_theme
from panel.accounts.enums import Theme
from panel.accounts.models import User
from panel.core.database import database_unavailable
from panel.core.errors import FleetdeckError, RateLimited, Unavailable


def request_id(request: HttpRequest) -> str:
    """Return the id under which this request stands in the log."""
    return str(getattr(request, "request_id", ""))


def _page(request: HttpRequest, *, status: int, title: str, text: str, show_id: bool = False) -> HttpResponse:
    layout = "base.html" if isinstance(getattr(request, "user", None), User) else "bare.html"
    context = {
        "title": title,
        "text": text,
        "status": status,
        "id": request_id(request) if show_id else "",
        "layout": layout,
    }
    return render(request, "errors/error.html", context, status=status)


def expected_error(request: HttpRequest, error: FleetdeckError) -> HttpResponse:
    """Answer an expected error: a page, or a toast where a fragment was asked for."""
    if request.headers.get("HX-Request"):
        response = HttpResponse(status=error.status)
        response["HX-Trigger"] = json.dumps({"toast": {"text": error.message, "tone": "critical"}})
        response["HX-Reswap"] = "none"
    else:
        titles = {403: _("You may not do this"), 404: _("Not found"), 429: _("Too many attempts")}
        title = titles.get(error.status, _("That did not work"))
        response = _page(request, status=error.status, title=title, text=error.message, show_id=error.status >= 500)
    if isinstance(error, RateLimited | Unavailable):
        response["Retry-After"] = str(max(1, round(error.retry_after_seconds)))
    return response


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001 (Django names it)
    """Answer 400."""
    text = _("The panel could not read this request. Go back and try again.")
    return _page(request, status=400, title=_("Bad request"), text=text)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001 (Django names it)
    """Answer 403 where no capability was named."""
    return _page(request, status=403, title=_("You may not do this"), text=_("Your role does not allow it."))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001 (Django names it)
    """Answer 404."""
    text = _("There is no page or object at this address. It may have been removed, or the link may be wrong.")
    return _page(request, status=404, title=_("Not found"), text=text)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:  # noqa: ARG001 (Django names it)
    """Answer a form that came from elsewhere, or from a page that was open for too long."""
    text = _("This form was too old, or did not come from this panel. Load the page again and repeat the step.")
    return _page(request, status=403, title=_("Please try again"), text=text)


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer 500 with the error's id in the log, or 503 where the database was not to be had.

    Asks neither the database nor Valkey: they may be the cause.
    """
    unavailable = database_unavailable(sys.exc_info()[1])
    if unavailable is None:
        text = _("This is a fault of the panel. It stands in the panel's log under the id below.")
        return _bare_page(request, status=500, title=_("Something went wrong"), text=text)
    if request.headers.get("HX-Request"):
        return expected_error(request, unavailable)
    response = _bare_page(request, status=503, title=_("Not available at the moment"), text=unavailable.message)
    response["Retry-After"] = str(round(unavailable.retry_after_seconds))
    return response


def _bare_page(request: HttpRequest, *, status: int, title: str, text: str) -> HttpResponse:
    context = {
        "status": status,
        "title": title,
        "text": text,
        "id": request_id(request),
        "theme": known_theme(request.COOKIES.get(THEME_COOKIE, "")) or Theme.AUTO,
        "language": get_language(),
    }
    return HttpResponse(render_to_string("errors/server_error.html", context), status=status)
