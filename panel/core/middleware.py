"""What every request passes, whoever sends it: an id by which log and audit trail speak of it; no copies of the answer."""

import re
import uuid
from collections.abc import Callable
from typing import Final

import structlog
from django.http import HttpRequest, HttpResponseBase

from panel.core.addresses import client_address

HEADER: Final = "X-Request-ID"
_SHAPE: Final = re.compile(r"[A-Za-z0-9_-]{8,64}")


class RequestIdMiddleware:
    """Gives a request its id, `request.request_id`: the caller's, when it looks like one, else a new one.

    Stands before django-structlog's middleware, which reads the header and binds it to every line of the log.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Set the id before the view and the header after it."""
        given = request.headers.get(HEADER, "")
        request_id = given if _SHAPE.fullmatch(given) else uuid.uuid4().hex
        request.request_id = request_id  # type: ignore[attr-defined]
        request.META["HTTP_X_REQUEST_ID"] = request_id
        request.__dict__.pop("headers", None)  # cached from META a few lines above
        structlog.contextvars.bind_contextvars(request_id=request_id, address=client_address(request))
        response = self.get_response(request)
        response.headers[HEADER] = request_id
        return response


class NoStoreMiddleware:
    """Answers hold names, addresses and tokens: nobody on the way keeps them, nor the browser after a log-out.

    A view that knows better sets Cache-Control itself; static files do not come this way.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Say so where the view has said nothing."""
        response = self.get_response(request)
        response.headers.setdefault("Cache-Control", "private, no-store")
        return response
