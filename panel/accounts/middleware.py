"""What every request passes: a log-in unless the view says otherwise, and the trace of a session's use."""

from collections.abc import Callable

import structlog
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from redis.exceptions import RedisError

from panel.accounts.api.fallback import error_body
from panel.accounts.services.sessions import LAST_SEEN_RESOLUTION, session_note
from panel.core.rates import digest

log = structlog.get_logger(__name__)


class LogInMiddleware(LoginRequiredMiddleware):
    """Denies by default: a view is open to strangers only when it is marked `login_not_required`.

    Views of the REST framework are marked so by it: they authenticate by themselves, and HasCapability denies by default.
    """

    def handle_no_permission(  # type: ignore[override]  # Django lets it be any response
        self, request: HttpRequest, view_func: Callable[..., HttpResponseBase]
    ) -> HttpResponseBase:
        """Send a person to the log-in page, htmx with the whole page instead of a fragment; tell a program 401."""
        if request.path.startswith("/api/"):
            return JsonResponse(error_body(code="not_authenticated", detail=_("Log in first.")), status=401)
        if "HX-Request" in request.headers:
            answer = HttpResponse(status=401)
            answer["HX-Redirect"] = reverse("login")
            return answer
        redirect: HttpResponseBase = super().handle_no_permission(request, view_func)
        return redirect


class SessionActivityMiddleware:
    """Notes once a minute where and when a session was last used, for the list of sessions."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Note it before the view, so that the list shows the present request too."""
        key = request.session.session_key
        if key is not None and request.user.is_authenticated and self._is_due(key):
            session_note(request)
        return self.get_response(request)

    @staticmethod
    def _is_due(key: str) -> bool:
        try:
            return cache.add(f"seen:{digest(key)}", 1, timeout=LAST_SEEN_RESOLUTION.total_seconds())
        except RedisError as error:  # a list that is a little old is better than no page
            log.warning("session.activity_not_noted", error=str(error))
            return False
