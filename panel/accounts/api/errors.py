"""One shape for every error of the API, whoever raised it.

`{"type": "validation_error" | "client_error" | "server_error", "errors": [{"code", "detail", "attr"}]}`
"""

import math
from typing import Any

import structlog
from django.utils.translation import gettext as _
from drf_standardized_errors.handler import ExceptionHandler
from rest_framework import exceptions

from panel.core.database import database_unavailable
from panel.core.errors import ExternalError, FleetdeckError, InvalidInput, RateLimited, Unavailable

log = structlog.get_logger(__name__)


class MappedError(exceptions.APIException):
    """A FleetdeckError on its way out; `wait` becomes Retry-After."""

    def __init__(self, error: FleetdeckError) -> None:
        super().__init__(detail=error.message, code=error.code)
        self.status_code = error.status
        wait = error.retry_after_seconds if isinstance(error, RateLimited | ExternalError | Unavailable) else None
        self.wait = math.ceil(wait) if wait else None
        if error.status == exceptions.NotAuthenticated.status_code:
            self.auth_header = "Bearer"


def api_exception(error: FleetdeckError) -> exceptions.APIException:
    """Return what DRF understands: bad input keeps the field that it is about."""
    if isinstance(error, InvalidInput):
        detail: Any = exceptions.ErrorDetail(error.message, code=error.code)
        return exceptions.ValidationError({error.field or "non_field_errors": [detail]})
    return MappedError(error)


class ApiExceptionHandler(ExceptionHandler):
    """Maps the panel's own tree of errors; the rest is the library's."""

    def convert_known_exceptions(self, exc: Exception) -> Exception:
        """Return DRF's exception for an expected error of ours."""
        unavailable = database_unavailable(exc)
        if unavailable is not None:
            log.warning("api.database_unavailable", error=str(exc))
            return api_exception(unavailable)
        if isinstance(exc, FleetdeckError):
            return api_exception(exc)
        converted: Exception = super().convert_known_exceptions(exc)
        return converted

    def convert_unhandled_exceptions(self, exc: Exception) -> exceptions.APIException:
        """Return a 500 that tells nothing of the inside, but the request's id, by which the log has the rest."""
        if isinstance(exc, exceptions.APIException):
            return exc
        request_id = getattr(self.context["request"], "request_id", "")
        return exceptions.APIException(
            _("Something broke inside the panel. The log has it under %(id)s.") % {"id": request_id}
        )

    def report_exception(self, exc: exceptions.APIException, response: Any) -> None:
        """Log what nobody expected; an outside service that fails (502) is expected and has been logged by its client."""
        if response.status_code == MappedError.status_code:
            super().report_exception(exc, response)
