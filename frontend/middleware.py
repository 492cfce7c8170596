"""What every page request passes: the viewer's preferences, and expected errors as pages."""

from collections.abc import Callable

import structlog
from django.http import HttpRequest, HttpResponse
from django.utils import timezone, translation

from frontend.preferences import preferences_of
from frontend.views.errors import expected_error
from panel.core.errors import FleetdeckError

log = structlog.get_logger(__name__)

# Programs talk to these: they have their own language, zone and error shape.
PROGRAM_PATHS = ("/api/", "/healthz", "/readyz", "/metrics", "/static/")


class PreferencesMiddleware:
    """Activates language and zone of the viewer for the length of one request, and answers expected errors with a page."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Serve one request."""
        if request.path.startswith(PROGRAM_PATHS):
            return self.get_response(request)
        preferences = preferences_of(request)
        request.preferences = preferences  # type: ignore[attr-defined]
        with translation.override(preferences.language), timezone.override(preferences.zone):
            request.LANGUAGE_CODE = preferences.language
            response = self.get_response(request)
            response.headers.setdefault("Content-Language", preferences.language)
            return response

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Turn an expected error of a page into its page; anything else goes on to the 500 page."""
        if not isinstance(exception, FleetdeckError) or request.path.startswith(PROGRAM_PATHS):
            return None
        log.info("page.refused", code=exception.code, status=exception.status, path=request.path)
        return expected_error(request, exception)
